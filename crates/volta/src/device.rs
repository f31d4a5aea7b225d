//! Where tensors live.

use crate::error::Error;
use std::fmt;
use std::str::FromStr;
use volta_ir::device::DeviceId;

/// A place that holds tensors and runs plans.
///
/// `Device::gpu()` finds the best real GPU, `Device::auto()` takes it or else the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Device {
    /// The host's processor.
    #[default]
    Cpu,
    /// A GPU by its index: 0 is the best one, or the one that `VOLTA_ADAPTER` names.
    Gpu(usize),
}

impl Device {
    /// The host's processor.
    pub const fn cpu() -> Device {
        Device::Cpu
    }

    /// Whether it is a GPU.
    pub const fn is_gpu(self) -> bool {
        matches!(self, Device::Gpu(_))
    }
}

impl From<DeviceId> for Device {
    fn from(id: DeviceId) -> Device {
        match id {
            DeviceId::Cpu => Device::Cpu,
            DeviceId::Gpu(index) => Device::Gpu(index),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = match *self {
            Device::Cpu => DeviceId::Cpu,
            Device::Gpu(index) => DeviceId::Gpu(index),
        };
        fmt::Display::fmt(&id, f)
    }
}

impl FromStr for Device {
    type Err = Error;

    /// `cpu`, `gpu`, `gpu:1`; `gpu` is `gpu:0`. Whether the device is there shows when it is used.
    fn from_str(name: &str) -> Result<Device, Error> {
        name.parse::<DeviceId>().map(Device::from)
    }
}
