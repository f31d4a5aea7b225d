//! What is done with gradients before a step.

use crate::arguments::TensorArg;
use crate::error::call;
use crate::tensor::{PyTensor, record};
use pyo3::prelude::*;
use volta::Tensor;

fn plain(parameters: Vec<TensorArg>) -> Vec<Tensor> {
    parameters.into_iter().map(|p| p.0).collect()
}

/// Scales all gradients down so that their norm together is at most `max_norm`; returns what it was.
#[pyfunction]
fn clip_grad_norm(parameters: Vec<TensorArg>, max_norm: f64) -> PyResult<PyTensor> {
    record(|| volta::try_clip_grad_norm(&plain(parameters), max_norm))
}

/// Brings every element of every gradient between −`limit` and `limit`.
#[pyfunction]
fn clip_grad_value(parameters: Vec<TensorArg>, limit: f64) -> PyResult<()> {
    call(|| volta::try_clip_grad_value(&plain(parameters), limit))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(clip_grad_norm, module)?)?;
    module.add_function(wrap_pyfunction!(clip_grad_value, module)?)
}
