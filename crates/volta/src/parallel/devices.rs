//! Lists of devices, as flags and configurations write them.

use crate::device::Device;
use crate::error::{Result, bail};

/// The devices that a text names: `cpu`, `gpu`, `gpu:1`, several of these with commas between them, or `gpus` for all GPUs.
///
/// ```
/// use volta::{Device, parallel::devices_named};
/// assert_eq!(devices_named("gpu:1, cpu")?, [Device::Gpu(1), Device::Cpu]);
/// assert!(devices_named("gpu,gpu:0").unwrap_err().message().contains("gpu:0 is named twice"));
/// # Ok::<(), volta::Error>(())
/// ```
#[track_caller]
pub fn devices_named(text: &str) -> Result<Vec<Device>> {
    #[cfg(not(target_arch = "wasm32"))]
    if text.trim().eq_ignore_ascii_case("gpus") {
        let all = Device::gpus()?;
        if all.is_empty() {
            // It says what is missing.
            Device::gpu()?;
        }
        return Ok(all);
    }
    let all = text.split(',').map(str::parse).collect::<Result<Vec<Device>>>()?;
    check_devices(&all)?;
    Ok(all)
}

/// An error if there is no device, or one is there twice.
pub(super) fn check_devices(devices: &[Device]) -> Result<()> {
    if devices.is_empty() {
        bail!(Argument, "no device is named");
    }
    let twice = devices.iter().enumerate().find(|(k, device)| devices[..*k].contains(device));
    if let Some((_, device)) = twice {
        bail!(
            Argument,
            "{device} is named twice, and each device has one part of the work: VOLTA_VIRTUAL_DEVICES=2 makes two devices of one adapter"
        );
    }
    Ok(())
}
