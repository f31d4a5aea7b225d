//! Saved states, on their way to Python and back.

use crate::arguments::TensorArg;
use crate::error::run;
use crate::tensor::copied;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use volta::{Result, State, Tensor, Value};

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

/// The tensors are copied, now: what is written later to the arrays that they came from is no part of the state.
pub fn from_python(py: Python<'_>, (values, tensors): Saved) -> PyResult<State> {
    let mut state = State::new();
    for (name, item) in values {
        let value = match item {
            Item::Int(n) => Value::Int(n),
            Item::Float(x) => Value::Float(x),
            Item::Text(text) => Value::Text(text),
        };
        state.values.insert(name, value);
    }
    let copies = run(py, || {
        let copies: Vec<(String, Tensor)> =
            tensors.into_iter().map(|(name, t)| Ok((name, copied(&t.0.detach())?))).collect::<Result<_>>()?;
        volta::try_realize_all(&copies.iter().map(|(_, t)| t.clone()).collect::<Vec<_>>())?;
        Ok(copies)
    })?;
    copies.into_iter().for_each(|(name, tensor)| {
        state.tensors.insert(name, tensor);
    });
    Ok(state)
}
