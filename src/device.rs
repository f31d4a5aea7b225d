//! Where tensors live.

use crate::error::{Error, bail};
use std::fmt;
use std::str::FromStr;

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

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Gpu(index) => write!(f, "gpu:{index}"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    /// `cpu`, `gpu`, `gpu:1`; `gpu` is `gpu:0`. Whether the device is there shows when it is used.
    fn from_str(name: &str) -> Result<Device, Error> {
        match name.trim().to_lowercase().as_str() {
            "cpu" => Ok(Device::Cpu),
            "gpu" => Ok(Device::Gpu(0)),
            other => match other.strip_prefix("gpu:").and_then(|n| n.parse().ok()) {
                Some(index) => Ok(Device::Gpu(index)),
                None => bail!(Argument, "{name:?} is no device: use cpu, gpu or gpu:N"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn devices_are_read_as_they_are_printed() {
        for device in [Device::Cpu, Device::Gpu(0), Device::Gpu(3)] {
            assert_eq!(device.to_string().parse::<Device>().unwrap(), device);
        }
        let error = "tpu".parse::<Device>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
    }
}
