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

    /// Forgets what nobody was told of yet.
    #[cfg(target_arch = "wasm32")]
    pub fn forget(&self) {
        self.noted.first.lock().unwrap_or_else(PoisonError::into_inner).take();
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

    /// What a browser would not do, and why.
    pub fn refusal(&self, doing: &str, why: &str) -> Error {
        match self.noted.lost.get() {
            Some(_) => self.failure(None, doing),
            None => Error::new(ErrorKind::Device, format!("{}, {doing}: {why}", self.noted.who)),
        }
    }

    pub fn out_of_memory(&self, doing: &str) -> Error {
        let message =
            format!("{} is out of memory, {doing}; {}", self.noted.who, self.noted.advice.out_of_memory);
        Error::new(ErrorKind::Memory, message)
    }
}

/// What is noted: internal errors are among what a browser's promises say, and wgpu cannot tell them there.
#[cfg(not(target_arch = "wasm32"))]
const NOTED: [wgpu::ErrorFilter; 3] =
    [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal];
#[cfg(target_arch = "wasm32")]
const NOTED: [wgpu::ErrorFilter; 2] = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory];

/// Notes what goes wrong while they live: a driver may refuse a shader, and have too little memory. Scopes belong to their
/// thread, so every fault finds whoever caused it.
pub(crate) struct Scopes([wgpu::ErrorScopeGuard; NOTED.len()]);

impl Scopes {
    pub fn new(device: &wgpu::Device) -> Scopes {
        Scopes(NOTED.map(|kind| device.push_error_scope(kind)))
    }

    /// The first fault. All scopes are closed now, the last one first; only a browser takes time to say what was in them.
    pub fn close(self) -> impl Future<Output = Option<wgpu::Error>> {
        let closed: Vec<_> = self.0.into_iter().rev().map(wgpu::ErrorScopeGuard::pop).collect();
        async move {
            let mut first = None;
            for scope in closed {
                first = scope.await.or(first);
            }
            first
        }
    }
}
