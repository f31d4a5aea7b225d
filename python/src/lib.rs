//! The native half of Volta's Python package: what Python cannot do itself, or not fast enough.
//!
//! | module | holds |
//! |---|---|
//! | `error` | what the engine reports, as Python's exceptions |
//! | `tensor` | `volta.Tensor` |

mod error;
mod tensor;

use pyo3::prelude::*;

/// The module `volta._volta`; the packages `volta` and `micrograd_rs` take everything from it.
#[pymodule]
fn _volta(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    tensor::register(module)
}
