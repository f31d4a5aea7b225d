//! Where a command runs: the flag `--device`, or else `VOLTA_DEVICE`, or else what the command takes by itself.

use super::output::Failure;
use std::str::FromStr;
use volta::{Device, environment, set_default_device};

/// A device as flags name it.
#[derive(Clone, Copy, Debug)]
pub enum DeviceName {
    /// A GPU if there is one, else the CPU.
    Auto,
    This(Device),
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(name: &str) -> Result<DeviceName, String> {
        if name.trim().eq_ignore_ascii_case("auto") {
            return Ok(DeviceName::Auto);
        }
        name.parse().map(DeviceName::This).map_err(|_| "must be auto, cpu, gpu or gpu:N".to_string())
    }
}

/// The flag of commands that take a GPU if there is one.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct DeviceFlag {
    /// Where to run: auto, cpu, gpu or gpu:N [default: VOLTA_DEVICE, or else auto]
    #[arg(long)]
    device: Option<DeviceName>,
}

impl DeviceFlag {
    /// Opens the device.
    pub fn open(self) -> Result<Device, Failure> {
        open(self.device, DeviceName::Auto)
    }
}

/// Opens the device that a flag or else `VOLTA_DEVICE` names, or else another one, and makes it the default. One that is not
/// there is an error here, and not of whatever is put on it first.
pub fn open(flag: Option<DeviceName>, otherwise: DeviceName) -> Result<Device, Failure> {
    let name = match flag {
        Some(name) => name,
        None => environment::device()?.map_or(otherwise, DeviceName::This),
    };
    let device = match name {
        DeviceName::Auto => Device::auto(),
        DeviceName::This(device) => device,
    };
    device.synchronize()?;
    set_default_device(device);
    Ok(device)
}
