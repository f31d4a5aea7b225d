//! What a device can do at best, measured: a copy for its memory, a product for its arithmetic.

use crate::default_device::with_device;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::telemetry::{Peak, known_peak, profile, remember_peak};
use crate::tensor::Tensor;
use std::time::Duration;

/// Measures what a device can do at best, once; profiles compare ops with it from then on. Takes a fraction of a second
/// on most devices, and some hundred megabytes.
///
/// # Errors
///
/// [`ErrorKind::Device`] if the device does not tell the time that its kernels take, or is not there.
#[track_caller]
pub fn measure_peak(device: Device) -> Result<Peak> {
    let _call = crate::call::Call::enter("measure_peak");
    if let Some(peak) = known_peak(device) {
        return Ok(peak);
    }
    let peak = with_device(device, || -> Result<Peak> {
        Ok(Peak { bytes: measure_copy()?, flops: measure_product()? })
    })?;
    remember_peak(device, peak);
    Ok(peak)
}

/// Runs of which the best counts: the first ones warm up.
const RUNS: usize = 4;

/// The shortest of several runs' time in kernels.
fn best(f: impl Fn() -> Result<()>) -> Result<f64> {
    let mut shortest = Duration::MAX;
    for _ in 0..RUNS {
        let (result, profile) = profile(&f);
        result?;
        shortest = shortest.min(profile.total());
    }
    if shortest.is_zero() {
        let message = "the device does not tell how long its kernels take: it has no timestamps";
        return Err(Error::new(ErrorKind::Device, message));
    }
    Ok(shortest.as_secs_f64())
}

fn measure_copy() -> Result<f64> {
    /// More than caches hold.
    const ELEMENTS: usize = 1 << 25;
    let x = Tensor::try_full([ELEMENTS], 1.0)?.try_add(&Tensor::try_full([1], 1.0)?)?;
    x.try_realize()?;
    let seconds = best(|| x.try_neg()?.try_realize())?;
    Ok((2 * ELEMENTS * size_of::<f32>()) as f64 / seconds)
}

fn measure_product() -> Result<f64> {
    /// A product that takes this long is large enough.
    const MIN_PRODUCT_SECONDS: f64 = 5e-3;
    let (mut n, mut most) = (512usize, 0f64);
    loop {
        let x = Tensor::try_rand([n, n])?;
        x.try_realize()?;
        let seconds = best(|| x.try_matmul(&x)?.try_realize())?;
        most = most.max(2.0 * (n as f64).powi(3) / seconds);
        if seconds >= MIN_PRODUCT_SECONDS || n >= 8192 {
            return Ok(most);
        }
        n *= 2;
    }
}
