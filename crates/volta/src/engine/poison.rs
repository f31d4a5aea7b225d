//! Memory that a run was given, and had begun to overwrite when it failed: what was computed of it is lost.

use super::capture::Capture;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Buffer;
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

/// In the place of values that were overwritten.
struct Poisoned;

impl Buffer for Poisoned {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_gone(&self) -> bool {
        true
    }
}

/// An error if these values were overwritten.
pub(super) fn check(values: &dyn Buffer) -> Result<()> {
    if values.as_any().is::<Poisoned>() {
        let message = "this was to be computed in the place of its operands by a run that failed, and these are overwritten: \
                       make it anew, or load it";
        return Err(Error::new(ErrorKind::Memory, message));
    }
    Ok(())
}

/// The memory that a run is given. If it ends without returning it, by an error or a panic, and has begun, whoever asks again
/// is told so instead of being given numbers that are computed of others.
pub(super) struct DonationGuard<'a> {
    capture: &'a Capture,
    pub begun: Cell<bool>,
}

impl<'a> DonationGuard<'a> {
    pub fn by(capture: &'a Capture) -> DonationGuard<'a> {
        DonationGuard { capture, begun: Cell::new(false) }
    }

    /// The run has succeeded.
    pub fn returned(self) {
        self.begun.set(false);
    }
}

impl Drop for DonationGuard<'_> {
    fn drop(&mut self) {
        if self.begun.get() {
            self.capture.donors().for_each(|node| node.realize(Arc::new(Poisoned)));
        }
    }
}
