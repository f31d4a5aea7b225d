//! Warnings: what a program goes on in spite of, said on standard error.

use std::fmt::Display;
use std::io::Write;

/// Says so. Where standard error takes nothing, there is nobody left to tell, and no reason to panic as `eprintln!` does.
pub fn warn(message: impl Display) {
    let _ = writeln!(std::io::stderr(), "warning: {message}");
}
