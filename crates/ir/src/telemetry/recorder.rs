//! Who hears what kernels and the host take while a thread is profiled.

use crate::clock::Instant;
use crate::plan::kernel::Kernel;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// Hears what a thread runs.
pub trait Recorder: Send + Sync {
    /// One run of a kernel took so long; `None` where its device has no clock for it.
    fn kernel(&self, kernel: &Kernel, time: Option<Duration>);

    /// A kernel, or a part of it, ran from then on for so long.
    fn kernel_at(&self, kernel: &Kernel, start: Instant, time: Duration);

    /// The host did this from then until now.
    fn host(&self, name: &'static str, start: Instant);
}

thread_local! {
    static RECORDER: RefCell<Option<Arc<dyn Recorder>>> = const { RefCell::new(None) };
}

/// From now on `recorder` hears what this thread runs. Who heard it before.
pub fn set_recorder(recorder: Option<Arc<dyn Recorder>>) -> Option<Arc<dyn Recorder>> {
    RECORDER.replace(recorder)
}

/// Whether this thread is being profiled.
pub fn is_profiled() -> bool {
    RECORDER.with_borrow(Option::is_some)
}

fn record(tell: impl FnOnce(&dyn Recorder)) {
    RECORDER.with_borrow(|recorder| recorder.as_deref().map(tell));
}

/// Adds one run of a kernel.
pub fn record_time(kernel: &Kernel, time: Duration) {
    record(|recorder| recorder.kernel(kernel, Some(time)));
}

/// Adds one run of a kernel on a device that has no clock for it.
pub fn record_untimed(kernel: &Kernel) {
    record(|recorder| recorder.kernel(kernel, None));
}

/// Puts a run of a kernel, or of a part of it, into the trace.
pub fn trace_kernel(kernel: &Kernel, start: Instant, time: Duration) {
    record(|recorder| recorder.kernel_at(kernel, start, time));
}

/// What the host does, from now until this is dropped.
pub struct Span(&'static str, Option<Instant>);

/// Begins a span of the trace, if there is one.
pub fn span(name: &'static str) -> Span {
    Span(name, is_profiled().then(Instant::now))
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(start) = self.1 {
            record(|recorder| recorder.host(self.0, start));
        }
    }
}
