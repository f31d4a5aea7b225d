//! Faults that a device was told to have. `fault_injection` tells it.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// What a device was told to do wrong.
pub(crate) struct InjectedFaults {
    /// Bytes that can be had of it, in all.
    pub memory: AtomicU64,
    /// The next shader that is compiled is not valid.
    pub bad_shader: AtomicBool,
    /// What is read next cannot be mapped.
    pub bad_map: AtomicBool,
    /// The next run has a dispatch without a shader.
    pub bad_run: AtomicBool,
}

impl Default for InjectedFaults {
    fn default() -> Self {
        InjectedFaults {
            memory: AtomicU64::new(u64::MAX),
            bad_shader: AtomicBool::new(false),
            bad_map: AtomicBool::new(false),
            bad_run: AtomicBool::new(false),
        }
    }
}
