//! What devices can do at best, as far as it was measured.

use crate::device::Device;
use std::sync::{Mutex, PoisonError};

/// What a device does in a second, at best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Bytes read and written by a copy of a large tensor.
    pub bytes: f64,
    /// Arithmetic operations of a large product of f32 matrices.
    pub flops: f64,
}

static KNOWN: Mutex<Vec<(Device, Peak)>> = Mutex::new(Vec::new());

/// What was measured of a device.
pub(crate) fn known_peak(device: Device) -> Option<Peak> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.iter().find(|(other, _)| *other == device).map(|(_, peak)| *peak)
}

/// Profiles compare ops with it from now on.
pub(crate) fn remember_peak(device: Device, peak: Peak) {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).push((device, peak));
}
