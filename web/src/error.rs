//! Volta's errors as JavaScript's: the same sentence, and the kind as a property.

use volta::{Error, ErrorKind};
use wasm_bindgen::JsValue;

/// What a call returns to JavaScript.
pub type Thrown<T> = Result<T, JsValue>;

/// The name of a kind in JavaScript.
fn name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Shape => "shape",
        ErrorKind::DType => "dtype",
        ErrorKind::Device => "device",
        ErrorKind::Autograd => "autograd",
        ErrorKind::Argument => "argument",
        ErrorKind::NonFinite => "non-finite",
        ErrorKind::Index => "index",
        ErrorKind::ZeroDivision => "zero-division",
        ErrorKind::Memory => "memory",
        ErrorKind::Io => "io",
        ErrorKind::Data => "data",
        ErrorKind::NotRun => "not-run",
        ErrorKind::Interrupted => "interrupted",
        _ => "other",
    }
}

/// A JavaScript error of a kind.
pub fn thrown(kind: &str, message: &str) -> JsValue {
    let error: JsValue = js_sys::Error::new(message).into();
    // Setting a property of a new object does not fail.
    let _ = js_sys::Reflect::set(&error, &"kind".into(), &kind.into());
    error
}

/// Volta's error: the op that was called, and what was wrong. Its line is one of this module's, which nobody asked for.
pub fn js(error: Error) -> JsValue {
    thrown(name(error.kind()), &format!("{}: {}", error.op(), error.message()))
}

/// An argument that a call cannot do anything with.
pub fn argument(message: &str) -> JsValue {
    thrown("argument", message)
}
