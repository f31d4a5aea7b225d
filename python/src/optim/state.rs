//! Saved states, on their way to Python and back.

use crate::arguments::TensorArg;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use volta::{State, Value};

/// A number or a text.
#[derive(FromPyObject, IntoPyObject)]
pub enum Item {
    Int(i64),
    Float(f64),
    Text(String),
}

/// Numbers and texts by name, and tensors by name.
pub type Saved = (BTreeMap<String, Item>, Vec<(String, TensorArg)>);

pub fn to_python(state: &State) -> Saved {
    let values = state.values.iter().map(|(name, value)| {
        let item = match value {
            Value::Int(n) => Item::Int(*n),
            Value::Float(x) => Item::Float(*x),
            Value::Text(text) => Item::Text(text.clone()),
        };
        (name.clone(), item)
    });
    // What Python gets is what they are now: the engine goes on with its own.
    let tensors = state.tensors.iter().map(|(name, t)| (name.to_string(), TensorArg(t.variable())));
    (values.collect(), tensors.collect())
}

pub fn from_python((values, tensors): Saved) -> State {
    let mut state = State::new();
    for (name, item) in values {
        let value = match item {
            Item::Int(n) => Value::Int(n),
            Item::Float(x) => Value::Float(x),
            Item::Text(text) => Value::Text(text),
        };
        state.values.insert(name, value);
    }
    for (name, tensor) in tensors {
        state.tensors.insert(name, tensor.0);
    }
    state
}
