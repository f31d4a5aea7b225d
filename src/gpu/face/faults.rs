//! What goes wrong on a device: wgpu tells it to a handler, and the call that caused it, or the next one, returns it.

use crate::error::ErrorKind;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The faults of a device that nobody was told of yet.
#[derive(Clone)]
pub(super) struct Faults(Arc<Noted>);

struct Noted {
    device: wgpu::Device,
    name: String,
    first: Mutex<Option<wgpu::Error>>,
    lost: OnceLock<String>,
}

impl Faults {
    /// Those of a device that was just opened.
    pub fn of(device: &wgpu::Device, name: &str) -> Faults {
        let (first, lost) = (Mutex::new(None), OnceLock::new());
        let noted = Arc::new(Noted { device: device.clone(), name: name.to_string(), first, lost });
        // The device has the handlers, so they must not have the device.
        let faults = Arc::downgrade(&noted);
        device.on_uncaptured_error(Arc::new(move |fault| {
            if let Some(noted) = faults.upgrade() {
                noted.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
            }
        }));
        let faults = Arc::downgrade(&noted);
        device.set_device_lost_callback(move |reason, message| {
            if let Some(noted) = faults.upgrade() {
                let _ = noted.lost.set(format!("{reason:?}: {message}"));
            }
        });
        Faults(noted)
    }

    /// What has gone wrong so far, with what is being done: a loss stays, anything else is told once.
    pub fn check(&self, doing: impl FnOnce() -> String) -> Result<(), (ErrorKind, String)> {
        let Noted { device, name, first, lost } = &*self.0;
        // A loss is told when somebody asks.
        let _ = device.poll(wgpu::PollType::Poll);
        let fault = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        Err(match (lost.get(), fault) {
            (None, None) => return Ok(()),
            (Some(reason), _) => (ErrorKind::Device, format!("{name} was lost ({reason}), {}", doing())),
            (None, Some(wgpu::Error::OutOfMemory { .. })) => {
                (ErrorKind::Memory, format!("{name} is out of memory, {}", doing()))
            }
            (None, Some(fault)) => (ErrorKind::Device, format!("{name} failed, {}: {fault}", doing())),
        })
    }
}
