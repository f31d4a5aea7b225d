//! What the engine reports, as Python's exceptions.

use pyo3::PyErr;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use volta::{Error, ErrorKind};

/// The exception for an error of the engine, with its message.
pub fn raise(error: Error) -> PyErr {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::Shape => PyValueError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}
