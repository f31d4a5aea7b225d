//! The end of a thread, and of a program. When a program ends, drivers take themselves apart, and crash if they are still at
//! work: a software adapter, for one, compiles shaders while they run. So a thread waits for what it has submitted before it
//! ends. For the thread that ends the program, too, that comes before anything that C's `atexit` was told of.

use super::device_errors::Faults;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a thread that is over waits for a device. One in software compiles shaders meanwhile, on cores that others may be
/// using, and a program that ends before that crashes.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_WITH_SOFTWARE: Duration = Duration::from_secs(600);

/// A device that threads wait for when they end.
#[derive(Clone)]
struct Awaited {
    device: wgpu::Device,
    faults: Faults,
    is_software: bool,
}

static OPENED: Mutex<Vec<Awaited>> = Mutex::new(Vec::new());

/// Has threads that end wait for this device, too. Those that were lost are let go.
pub(super) fn register(device: &wgpu::Device, faults: &Faults, is_software: bool) {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.retain(|awaited| !awaited.faults.is_lost());
    opened.push(Awaited { device: device.clone(), faults: faults.clone(), is_software });
}

thread_local! {
    static LEAVING: Leaving = const { Leaving };
}

/// What a thread has that has submitted something.
struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        // What belongs to this thread may be gone by now, also what wgpu has there: another one waits.
        let waiting = std::thread::Builder::new().spawn(|| {
            let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for Awaited { device, is_software, .. } in opened {
                let patience = if is_software { PATIENCE_WITH_SOFTWARE } else { PATIENCE };
                let wait = wgpu::PollType::Wait { submission_index: None, timeout: Some(patience) };
                // A device that is lost, or takes longer, is left alone.
                let _ = device.poll(wait);
            }
        });
        // Without threads there is nobody to wait.
        let _ = waiting.map(|thread| thread.join());
    }
}

/// Has this thread wait at its end.
pub(crate) fn wait_at_the_end() {
    // What it submits while it ends is waited for no more.
    let _ = LEAVING.try_with(|_| ());
}
