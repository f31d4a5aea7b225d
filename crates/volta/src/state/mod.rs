//! What modules, optimizers, schedulers and loaders must remember to go on where they stopped.

mod dict;
mod rng;

pub use dict::StateDict;

use crate::error::{Result, bail};
use crate::tensor::Tensor;
use std::collections::BTreeMap;

/// Something that can stop and go on later, to the same bits.
pub trait Stateful {
    /// Everything it must remember. Tensors are its own, not copies.
    fn state(&self) -> State;

    /// Goes on from `state`. After an error nothing has changed.
    fn load_state(&mut self, state: &State) -> Result<()>;
}

/// Values and tensors by name; names are joined with dots.
#[derive(Clone, Default)]
pub struct State {
    /// Numbers and texts.
    pub values: BTreeMap<String, Value>,
    /// Tensors.
    pub tensors: StateDict,
}

/// A number or a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
}

impl State {
    /// Nothing yet.
    pub fn new() -> State {
        State::default()
    }

    /// With one more value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> State {
        self.values.insert(name.to_string(), value.into());
        self
    }

    /// With one more tensor.
    #[must_use]
    pub fn with_tensor(mut self, name: &str, tensor: Tensor) -> State {
        self.tensors.insert(name, tensor);
        self
    }

    /// With all of `part` under names that begin with `name` and a dot.
    #[must_use]
    pub fn with_part(mut self, name: &str, part: &State) -> State {
        for (key, value) in &part.values {
            self.values.insert(format!("{name}.{key}"), value.clone());
        }
        for (key, tensor) in part.tensors.iter() {
            self.tensors.insert(format!("{name}.{key}"), tensor.clone());
        }
        self
    }

    /// What stands under names that begin with `name` and a dot.
    pub fn part(&self, name: &str) -> State {
        let inner = |key: &str| key.strip_prefix(name)?.strip_prefix('.').map(String::from);
        State {
            values: self.values.iter().filter_map(|(k, v)| Some((inner(k)?, v.clone()))).collect(),
            tensors: self.tensors.renamed(inner),
        }
    }

    /// The whole number of a name.
    pub fn int(&self, name: &str) -> Result<i64> {
        match self.values.get(name) {
            Some(Value::Int(n)) => Ok(*n),
            found => wrong("a whole number", name, found),
        }
    }

    /// The number of a name.
    pub fn float(&self, name: &str) -> Result<f64> {
        match self.values.get(name) {
            Some(Value::Float(x)) => Ok(*x),
            Some(Value::Int(n)) => Ok(*n as f64),
            found => wrong("a number", name, found),
        }
    }

    /// The text of a name.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.values.get(name) {
            Some(Value::Text(text)) => Ok(text),
            found => wrong("a text", name, found),
        }
    }

    /// The tensor of a name.
    pub fn tensor(&self, name: &str) -> Result<&Tensor> {
        match self.tensors.get(name) {
            Some(t) => Ok(t),
            None => bail!(Data, "the saved state has no tensor {name:?}"),
        }
    }
}

fn wrong<T>(what: &str, name: &str, found: Option<&Value>) -> Result<T> {
    match found {
        Some(value) => bail!(Data, "{name:?} of the saved state is {value:?} where {what} is needed"),
        None => bail!(Data, "the saved state has no {name:?}"),
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::Int(n)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value::Float(x)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_names_apart() {
        let part = State::new().with("steps", 3).with_tensor("m", Tensor::vector(&[1.0]));
        let whole = State::new().with("rate", 0.5).with_part("adam", &part).with_part("ada", &State::new());
        assert_eq!(whole.part("adam").int("steps").unwrap(), 3);
        assert_eq!(whole.part("adam").tensor("m").unwrap().to_vec::<f32>(), [1.0]);
        assert!(whole.part("ada").values.is_empty());
        assert_eq!(whole.float("rate").unwrap(), 0.5);
    }

    #[test]
    fn what_is_missing_or_of_another_kind_is_named() {
        let state = State::new().with("name", "x");
        assert!(state.int("steps").unwrap_err().message().contains("\"steps\""));
        assert!(state.float("name").unwrap_err().message().contains("a number"));
    }
}
