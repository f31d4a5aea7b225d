//! What goes wrong on a device: wgpu tells it to handlers, and the call that caused it, or the next one, returns it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
#[cfg(not(target_arch = "wasm32"))]
use volta_ir::clock::Instant;
use volta_ir::error::{Error, ErrorKind, Result};

/// The faults of a device that nobody was told of yet.
#[derive(Clone)]
pub(crate) struct Faults {
    device: wgpu::Device,
    noted: Arc<RecordedErrors>,
}

/// What to do about a fault, as errors say it.
pub(crate) struct ErrorHints {
    pub lost: &'static str,
    pub out_of_memory: &'static str,
    /// How long a refusal waits for the loss that may be its reason.
    #[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "a tab cannot wait"))]
    pub patience: Duration,
}

/// What the handlers write. The device has them, so they must not have the device.
struct RecordedErrors {
    who: String,
    advice: &'static ErrorHints,
    first: Mutex<Option<wgpu::Error>>,
    lost: OnceLock<String>,
}

impl RecordedErrors {
    fn note(&self, fault: wgpu::Error) {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }
}

impl Faults {
    /// Those of a device that was just opened, and is called `who`.
    pub fn of(device: &wgpu::Device, who: String, advice: &'static ErrorHints) -> Faults {
        let noted = Arc::new(RecordedErrors { who, advice, first: Mutex::new(None), lost: OnceLock::new() });
        let told = noted.clone();
        device.on_uncaptured_error(Arc::new(move |fault| told.note(fault)));
        let told = noted.clone();
        device.set_device_lost_callback(move |reason, message| {
            let _ = told.lost.set(format!("{reason:?}: {message}"));
        });
        Faults { device: device.clone(), noted }
    }

    /// What the device is called.
    pub fn who(&self) -> &str {
        &self.noted.who
    }

    /// A fault that the driver told of.
    pub fn note(&self, fault: wgpu::Error) {
        self.noted.note(fault);
    }

    /// Whether the device was lost: everything on it is gone.
    pub fn is_lost(&self) -> bool {
        self.noted.lost.get().is_some()
    }

    /// What has gone wrong so far, with what is being done: a loss stays, anything else is told once.
    pub fn check(&self, doing: impl FnOnce() -> String) -> Result<()> {
        let fault = self.noted.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        if fault.is_none() && !self.is_lost() {
            return Ok(());
        }
        Err(self.failure(fault, &doing()))
    }

    /// [`check`](Self::check), with what the device only tells when it is asked, as that it was lost.
    pub fn ask(&self, doing: impl FnOnce() -> String) -> Result<()> {
        let _ = self.device.poll(wgpu::PollType::Poll);
        self.check(doing)
    }

    /// What the user is told of a fault.
    pub fn failure(&self, fault: Option<wgpu::Error>, doing: &str) -> Error {
        // Losing the device may be the reason.
        let _ = self.device.poll(wgpu::PollType::Poll);
        #[cfg(not(target_arch = "wasm32"))]
        if matches!(fault, Some(wgpu::Error::Validation { .. })) {
            self.wait_for_a_loss();
        }
        let (who, advice) = (&self.noted.who, self.noted.advice.lost);
        let message = match (self.noted.lost.get(), fault) {
            (Some(reason), _) => format!("{who} was lost ({reason}), {doing}; {advice}"),
            (None, Some(wgpu::Error::OutOfMemory { .. })) => return self.out_of_memory(doing),
            (None, Some(fault)) => format!("{who}, {doing}: {fault}"),
            (None, None) => format!("{who} failed, {doing}"),
        };
        Error::new(ErrorKind::Device, message)
    }

    /// What was made for a lost device is invalid, and another thread that asks the device may be the one that is told why, a
    /// moment later.
    #[cfg(not(target_arch = "wasm32"))]
    fn wait_for_a_loss(&self) {
        let start = Instant::now();
        while !self.is_lost() && start.elapsed() < self.noted.advice.patience {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn out_of_memory(&self, doing: &str) -> Error {
        let message =
            format!("{} is out of memory, {doing}; {}", self.noted.who, self.noted.advice.out_of_memory);
        Error::new(ErrorKind::Memory, message)
    }
}

/// Notes what goes wrong while they live: a driver may refuse a shader, and have too little memory. Scopes belong to their
/// thread, so every fault finds whoever caused it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) struct Scopes([wgpu::ErrorScopeGuard; 3]);

#[cfg(not(target_arch = "wasm32"))]
impl Scopes {
    pub fn new(device: &wgpu::Device) -> Scopes {
        use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
        Scopes([Validation, OutOfMemory, Internal].map(|kind| device.push_error_scope(kind)))
    }

    /// The first of them, once all scopes are closed, the last one first.
    pub fn fault(self) -> Option<wgpu::Error> {
        let found: Vec<wgpu::Error> =
            self.0.into_iter().rev().filter_map(|scope| crate::now(scope.pop())).collect();
        found.into_iter().next_back()
    }
}

/// A tab cannot wait for scopes: without them, the device notes what goes wrong, and the next plan that runs tells it.
#[cfg(target_arch = "wasm32")]
pub(crate) struct Scopes;

#[cfg(target_arch = "wasm32")]
impl Scopes {
    pub fn new(_: &wgpu::Device) -> Scopes {
        Scopes
    }

    pub fn fault(self) -> Option<wgpu::Error> {
        None
    }
}
