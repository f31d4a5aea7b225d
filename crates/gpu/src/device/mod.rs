//! The device: finding adapters, opening one with its limits and abilities, its errors, its end, and faults for tests.

pub(super) mod adapter;
#[cfg(target_arch = "wasm32")]
pub(super) mod browser;
pub(super) mod context;
pub(super) mod device_errors;
pub(super) mod fault_injection;
#[cfg(unix)]
pub(super) mod shutdown;
