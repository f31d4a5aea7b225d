//! What can go wrong, and the call that made it so.
//!
//! Misuse is found at the call that makes it. Every op exists twice: `op(..)` panics with the error's full
//! message, `try_op(..)` returns it.

use crate::call::{self, Origin};
use crate::printable;
use std::fmt;

/// `Result` with Volta's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes that do not fit, an axis or a range outside a shape.
    Shape,
    /// An element type the op does not take.
    DType,
    /// Operands on different devices, or a device that is not there.
    Device,
    /// A gradient that cannot be had.
    Autograd,
    /// Any other argument out of its range.
    Argument,
    /// NaN or infinity found by the guards.
    NonFinite,
    /// An index outside its axis. Where a kernel finds it, whoever waits for the device next is told.
    Index,
    /// An integer that was divided by zero, of which the same holds.
    ZeroDivision,
    /// Memory that could not be had.
    Memory,
    /// A file, folder or connection that could not be read or written.
    Io,
    /// A file or a saved state that is not what it should be.
    Data,
    /// A plan that was made by `plan_only`, which runs none.
    NotRun,
    /// A computation that was stopped, as `interruptible` was told to.
    Interrupted,
}

/// An error with the op that was called, what was wrong, and the caller's line.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    origin: Origin,
}

impl Error {
    /// An error of the public call that is running on this thread.
    #[track_caller]
    #[doc(hidden)]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error::at(kind, message, call::current())
    }

    /// An error found later, of the call that `origin` names.
    #[doc(hidden)]
    pub fn at(kind: ErrorKind, message: impl Into<String>, origin: Origin) -> Self {
        // Messages quote what files say.
        Error { kind, message: printable::message(message.into()), origin }
    }

    /// A file, folder or connection that failed us while we tried to do what `attempt` says.
    #[track_caller]
    #[doc(hidden)]
    pub fn io(path: impl AsRef<std::path::Path>, error: &std::io::Error, attempt: &str) -> Self {
        let path = path.as_ref().display();
        Error::new(ErrorKind::Io, format!("cannot {attempt} ({path}): {error}"))
    }

    /// The same error with what it was about.
    #[doc(hidden)]
    pub fn with_context(mut self, what: &str) -> Self {
        self.message = printable::message(format!("{} ({what})", self.message));
        self
    }

    /// The kind, for code that decides by it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What was wrong, without the op and the line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The public op that was called.
    pub fn op(&self) -> &'static str {
        self.origin.name
    }

    /// The line of the user's program that called it.
    pub fn location(&self) -> &'static std::panic::Location<'static> {
        self.origin.location
    }

    /// Panics with the whole message, at the caller.
    #[track_caller]
    #[doc(hidden)]
    pub fn raise(self) -> ! {
        panic!("{self}")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (at {})", self.origin.label(), self.message, self.origin.location)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// Returns an error.
#[macro_export]
macro_rules! bail {
    ($kind:ident, $($message:tt)*) => {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($message)*)))
    };
}
pub use crate::bail;
