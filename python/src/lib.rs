//! The native half of Volta's Python package: what Python cannot do itself, or not fast enough.
//!
//! | module | holds |
//! |---|---|
//! | `error` | what the engine reports, as Python's exceptions |
//! | `arguments` | tensors in lists of arguments and results |
//! | `tensor` | `volta.Tensor` |
//! | `nn` | parameters and the functions behind `volta.nn` |
//! | `optim` | the engine's optimizers, scaler and averages |
//! | `files` | safetensors and PyTorch's files |
//! | `parallel` | several devices at once |
//! | `distributed` | several processes at once |
//! | `models` | language models, encoders and adapters |
//! | `scopes` | mixed precision and profiles |
//! | `micrograd` | `micrograd_rs`: a scalar engine of its own |

// PyO3 writes unsafe functions; those that come out of our own macros are not told apart from ours.
#![allow(unsafe_op_in_unsafe_fn)]

mod arguments;
mod distributed;
mod error;
mod files;
mod micrograd;
mod models;
mod nn;
mod optim;
mod parallel;
mod scopes;
mod tensor;

use pyo3::prelude::*;

/// The module `volta._volta`; the packages `volta` and `micrograd_rs` take everything from it.
#[pymodule]
fn _volta(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    tensor::register(module)?;
    nn::register(module)?;
    optim::register(module)?;
    parallel::register(module)?;
    distributed::register(module)?;
    files::register(module)?;
    models::register(module)?;
    scopes::register(module)?;
    micrograd::register(module)
}
