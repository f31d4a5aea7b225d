//! Which device is meant.

use crate::error::{Error, bail};
use std::fmt;
use std::str::FromStr;

/// A device by its number; Volta's `Device` is one that can be asked for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceId {
    /// The host's processor.
    Cpu,
    /// A GPU by its index.
    Gpu(usize),
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceId::Cpu => f.write_str("cpu"),
            DeviceId::Gpu(index) => write!(f, "gpu:{index}"),
        }
    }
}

impl FromStr for DeviceId {
    type Err = Error;

    fn from_str(name: &str) -> Result<DeviceId, Error> {
        match name.trim().to_lowercase().as_str() {
            "cpu" => Ok(DeviceId::Cpu),
            "gpu" => Ok(DeviceId::Gpu(0)),
            other => match other.strip_prefix("gpu:").and_then(|n| n.parse().ok()) {
                Some(index) => Ok(DeviceId::Gpu(index)),
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
        for device in [DeviceId::Cpu, DeviceId::Gpu(0), DeviceId::Gpu(3)] {
            assert_eq!(device.to_string().parse::<DeviceId>().unwrap(), device);
        }
        let error = "tpu".parse::<DeviceId>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
    }
}
