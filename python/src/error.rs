//! What the engine reports, as Python's exceptions; and the two ways to call it, neither of which lets a panic through.

use pyo3::exceptions::{
    PyIndexError, PyMemoryError, PyOSError, PyRuntimeError, PyTypeError, PyValueError, PyZeroDivisionError,
};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use volta::{Error, ErrorKind};

/// How the engine says that an axis or an index does not exist; Python has an exception for it.
const OUT_OF_RANGE: &str = "out of range for";

/// Ops that have another name in Python.
const RENAMED: [(&str, &str); 6] = [
    ("where_", "where"),
    ("to_dtype", "to"),
    ("to_device", "to"),
    ("recip", "reciprocal"),
    ("max_with_index", "max"),
    ("min_with_index", "min"),
];

/// The name of an op as Python knows it.
fn name(op: &'static str) -> &'static str {
    let found = RENAMED.iter().find(|(rust, _)| *rust == op);
    found.map_or(op.strip_suffix("_dim").unwrap_or(op), |(_, python)| python)
}

/// The exception for an error of the engine, with its op and message. Python's traceback names the line.
pub fn raise(error: Error) -> PyErr {
    let message = format!("{}: {}", name(error.op()), error.message());
    match error.kind() {
        ErrorKind::Index => PyIndexError::new_err(message),
        ErrorKind::ZeroDivision => PyZeroDivisionError::new_err(message),
        ErrorKind::Shape if message.contains(OUT_OF_RANGE) => PyIndexError::new_err(message),
        ErrorKind::Shape | ErrorKind::Argument | ErrorKind::Data => PyValueError::new_err(message),
        ErrorKind::DType => PyTypeError::new_err(message),
        ErrorKind::Memory => PyMemoryError::new_err(message),
        ErrorKind::Io => PyOSError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// What a panic carried: Python's exception, if Python code that the engine called raised it, or a message.
fn caught(payload: Box<dyn Any + Send>) -> PyErr {
    match payload.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(payload) => {
            let message = payload.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| payload.downcast_ref::<&str>().copied());
            PyRuntimeError::new_err(message.unwrap_or("the engine failed").to_string())
        }
    }
}

/// Takes Python's exception through the engine, which cannot carry it, to whoever called the engine.
pub fn throw(error: PyErr) -> ! {
    resume_unwind(Box::new(error))
}

/// Calls the engine for something short, such as recording an op.
pub fn call<T>(f: impl FnOnce() -> volta::Result<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(f)).map_err(caught)?.map_err(raise)
}

/// Raises `KeyboardInterrupt` if Ctrl-C was pressed. A handler of the program's own runs when the engine is done: it may want to
/// compute something.
fn interrupted(py: Python<'_>) -> PyResult<()> {
    let signals = py.import("signal")?;
    let handler = signals.call_method1("getsignal", (signals.getattr("SIGINT")?,))?;
    if handler.is(&signals.getattr("default_int_handler")?) { py.check_signals() } else { Ok(()) }
}

/// Calls the engine for something that may take long: other threads of Python run meanwhile, and a signal that
/// comes stops it, and raises its exception.
pub fn run<T: Send>(py: Python<'_>, f: impl FnOnce() -> volta::Result<T> + Send) -> PyResult<T> {
    let signal: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let raised = signal.clone();
    let stops = move || {
        let Err(error) = Python::attach(interrupted) else { return false };
        *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        true
    };
    let result = py.detach(|| catch_unwind(AssertUnwindSafe(|| volta::interruptible(stops, f))));
    if let Some(error) = signal.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    py.check_signals()?;
    result.map_err(caught)?.map_err(raise)
}
