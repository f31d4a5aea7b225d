//! Where tensors live.

use std::fmt;

/// A place that holds tensors and runs plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Device {
    /// The host's processor.
    #[default]
    Cpu,
}

impl Device {
    /// The host's processor.
    pub const fn cpu() -> Device {
        Device::Cpu
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
        }
    }
}
