//! The clock: the system's, or the browser's, where asking the system for the time ends the program.

#[cfg(not(target_arch = "wasm32"))]
pub use std::time::Instant;
#[cfg(target_arch = "wasm32")]
pub use web_time::Instant;
