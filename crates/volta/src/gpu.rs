//! GPUs: adapters, opening one in a browser, tuning, and a device, buffers and tensors without the engine.
//!
//! ```no_run
//! use std::sync::Arc;
//! use volta::gpu::{GpuDevice, GpuTensor, adapters};
//!
//! for adapter in adapters() {
//!     println!("{} ({})", adapter.name, adapter.backend);
//! }
//! let relu = async {
//!     let device = Arc::new(GpuDevice::new().await?);
//!     let x = GpuTensor::from_slice(&[1.0, -2.0], &[2], device)?;
//!     Ok::<_, volta::Error>(x.relu().await?.to_vec().await)
//! };
//! assert_eq!(pollster::block_on(relu)?, [1.0, 0.0]);
//! # Ok::<(), volta::Error>(())
//! ```

#[cfg(not(target_arch = "wasm32"))]
pub use volta_gpu::adapters;
pub use volta_gpu::{
    Adapter, AdapterKind, GpuBuffer, GpuDevice, GpuTensor, PowerPreference, Tuned, Tuning, adapters_async,
    set_power_preference, shaders,
};
#[doc(hidden)]
pub use volta_gpu::{
    device_bytes, devices_opened, fail_next_map, fail_next_run, limit_memory, lose_device,
    report_out_of_memory, spoil_next_shader,
};

use crate::device::Device;
use crate::error::Result;
#[cfg(not(target_arch = "wasm32"))]
use crate::{call::Call, error::bail, telemetry::plans_of};
#[cfg(not(target_arch = "wasm32"))]
use std::time::Duration;

/// Opens `gpu:index` where opening waits for the browser; natively a device opens when it is first used.
pub async fn open(index: usize) -> Result<Device> {
    volta_gpu::open(index).await?;
    Ok(Device::Gpu(index))
}

/// Finds out which variant of each product, convolution and attention of a step is the fastest on `device`, and
/// keeps to it from then on, in this program and in later ones: the choices are written to the folder of compiled
/// kernels (see `VOLTA_CACHE`), for this adapter, driver and version of Volta.
///
/// Runs `step`, looks at the plans that it ran, and tries every variant that fits the adapter's limits on each different
/// problem in them, those with the most arithmetic first, until `budget` is spent. The default variant stays unless another
/// one takes 3 % less. Problems that were tuned before are not tried again. Results change by no more than rounding.
///
/// `progress` hears how many variants were tried, and how many there are.
///
/// ```no_run
/// use std::time::Duration;
/// use volta::{Device, Tensor, gpu::tune, with_device};
/// let device = Device::gpu()?;
/// let found = tune(device, Duration::from_secs(20), |_, _| (), || {
///     with_device(device, || Tensor::rand([512, 512]).try_matmul(&Tensor::rand([512, 512]))?.try_realize())
/// })?;
/// println!("{found}");
/// # Ok::<(), volta::Error>(())
/// ```
///
/// # Errors
///
/// What `step` returns; [`ErrorKind::Device`](crate::ErrorKind::Device) if `device` is not a GPU, or was lost;
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the choices, which hold for this program, could not be written for later ones.
#[cfg(not(target_arch = "wasm32"))]
#[track_caller]
pub fn tune(
    device: Device,
    budget: Duration,
    progress: impl FnMut(usize, usize),
    step: impl FnOnce() -> Result<()>,
) -> Result<Tuning> {
    let _call = Call::enter("tune");
    let Device::Gpu(index) = device else {
        bail!(Device, "only GPUs are tuned: the CPU has one way for everything");
    };
    volta_gpu::connect(index)?;
    let (done, plans) = plans_of(device, step);
    done?;
    // What the step itself takes, compiling included, is not the tuner's time.
    volta_gpu::tune(index, &plans, budget, progress)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_not_tuned() {
        let error =
            tune(Device::Cpu, Duration::ZERO, |_, _| (), || Ok(())).expect_err("there is nothing to tune");
        assert!(error.message().contains("only GPUs"), "{error}");
    }
}
