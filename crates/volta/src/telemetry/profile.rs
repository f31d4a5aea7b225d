//! Where the time goes: kernels timed one by one.

use super::by_op::{self, OpReport, Times};
use super::trace::Trace;
use crate::call::{Call, Layer};
use crate::clock::Instant;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::kernel::Kernel;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use volta_ir::telemetry::{Recorder, set_recorder};

/// All runs of kernels that compute the same.
#[derive(Clone, Debug)]
pub struct KernelTime {
    /// The ops it computes, joined.
    pub label: String,
    /// What kind of kernel it is: `map`, `reduce`, `matmul`, …
    pub kind: &'static str,
    /// The type and shape of its last result.
    pub result: String,
    /// How often it ran.
    pub calls: u64,
    /// The time of all calls.
    pub time: Duration,
    /// Arithmetic operations of all calls.
    pub flops: u64,
    /// Bytes read and written by all calls.
    pub bytes: u64,
}

/// The kernels that ran during [`profile`], the slowest first. Printing it gives a table; so does
/// [`by_op`](Self::by_op) and [`nn::by_module`](crate::nn::by_module), and [`write_trace`](Self::write_trace) tells what happened when.
#[derive(Clone, Debug)]
pub struct Profile {
    /// One entry for every different kernel.
    pub kernels: Vec<KernelTime>,
    /// Runs of kernels that have no time, since their device has no clock for them: a GPU without timestamps.
    pub untimed: u64,
    ops: Times<String>,
    layers: Times<Option<Layer>>,
    trace: Trace,
}

/// What kernels have in common that are one line of a profile: label, kind, result.
type Key = (String, &'static str, String);

/// What was heard so far.
struct Totals {
    times: HashMap<Key, KernelTime>,
    untimed: u64,
    ops: Times<String>,
    layers: Times<Option<Layer>>,
    trace: Trace,
}

/// Adds up what the executors tell.
struct Recording(Mutex<Totals>);

impl Recording {
    fn begin() -> Arc<Recording> {
        Arc::new(Recording(Mutex::new(Totals {
            times: HashMap::new(),
            untimed: 0,
            ops: Vec::new(),
            layers: Vec::new(),
            trace: Trace::begin(),
        })))
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder for Recording {
    fn kernel(&self, kernel: &Kernel, time: Option<Duration>) {
        let (device, totals) = (DEVICE.get(), &mut *self.totals());
        let key = (kernel.label.clone(), kernel.kind(), kernel.result());
        let entry = totals.times.entry(key).or_insert_with(|| KernelTime {
            label: kernel.label.clone(),
            kind: kernel.kind(),
            result: kernel.result(),
            calls: 0,
            time: Duration::ZERO,
            flops: 0,
            bytes: 0,
        });
        totals.untimed += u64::from(time.is_none());
        let time = time.unwrap_or_default();
        entry.calls += 1;
        entry.time += time;
        entry.flops += kernel.flops;
        entry.bytes += kernel.bytes_read + kernel.bytes_written;
        by_op::add(&mut totals.ops, kernel, device, time);
        by_op::add(&mut totals.layers, kernel, device, time);
    }

    fn kernel_at(&self, kernel: &Kernel, start: Instant, time: Duration) {
        self.totals().trace.kernel(kernel, DEVICE.get(), start, time);
    }

    fn host(&self, name: &'static str, start: Instant) {
        self.totals().trace.host(name, start);
    }
}

thread_local! {
    /// Where this thread's kernels run.
    static DEVICE: Cell<Device> = const { Cell::new(Device::Cpu) };
}

/// What this thread runs next runs there.
pub(crate) fn set_device(device: Device) {
    DEVICE.set(device);
}

/// Runs `f` and times every kernel that this thread runs meanwhile.
///
/// ```
/// use volta::Tensor;
/// let x = Tensor::randn([256, 256]);
/// let (y, profile) = volta::profile(|| x.matmul(&x).relu().sum().item::<f32>());
/// println!("{profile}\n{}", profile.by_op());
/// assert!(y > 0.0 && profile.by_op().ops.iter().any(|op| op.name == "matmul"));
/// ```
pub fn profile<R>(f: impl FnOnce() -> R) -> (R, Profile) {
    let profiler = Profiler::begin();
    let result = f();
    (result, profiler.end())
}

/// A [`profile`] between two calls, on one thread, for scopes that are not closures. Those inside one another end in the
/// opposite order.
pub struct Profiler {
    recording: Arc<Recording>,
    outer: Option<Arc<dyn Recorder>>,
}

impl Profiler {
    /// Begins to time the kernels of this thread.
    pub fn begin() -> Profiler {
        let recording = Recording::begin();
        let outer = set_recorder(Some(recording.clone()));
        Profiler { recording, outer }
    }

    /// What ran on this thread since it began.
    pub fn end(self) -> Profile {
        set_recorder(self.outer);
        let totals = &mut *self.recording.totals();
        let mut kernels: Vec<KernelTime> = std::mem::take(&mut totals.times).into_values().collect();
        kernels.sort_by_key(|k| std::cmp::Reverse(k.time));
        Profile {
            kernels,
            untimed: totals.untimed,
            ops: std::mem::take(&mut totals.ops),
            layers: std::mem::take(&mut totals.layers),
            trace: std::mem::replace(&mut totals.trace, Trace::begin()),
        }
    }
}

impl Profile {
    /// The time of all kernels.
    pub fn total(&self) -> Duration {
        self.kernels.iter().map(|k| k.time).sum()
    }

    /// The time by the ops that the program called, forward and gradient apart. What fused kernels took is shared out.
    pub fn by_op(&self) -> OpReport {
        OpReport::new("op", &self.ops, self.untimed, String::clone)
    }

    /// The time by the layers that called the ops, each under the name that `name` gives it.
    pub(crate) fn by_layer(&self, name: impl Fn(&Option<Layer>) -> String) -> OpReport {
        OpReport::new("module", &self.layers, self.untimed, name)
    }

    /// What [`write_trace`](Self::write_trace) writes, as a text.
    pub fn trace_json(&self) -> String {
        let mut text = Vec::new();
        self.trace.write(&mut text).expect("memory takes all that is written");
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Writes what happened when, in the form of Chrome's trace events, which <https://ui.perfetto.dev> opens: what the
    /// host did with plans (`capture`, `plan`, `prepare`, `submit`, `wait`) and the kernels of each device. A GPU's
    /// clock is set to the host's with every plan.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the file cannot be written.
    #[track_caller]
    pub fn write_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        let _call = Call::enter("write_trace");
        let path = path.as_ref();
        let written = File::create(path).map(BufWriter::new).and_then(|mut file| {
            self.trace.write(&mut file)?;
            file.flush()
        });
        written.map_err(|e| Error::new(ErrorKind::Io, format!("{} cannot be written: {e}", path.display())))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total().as_secs_f64().max(f64::MIN_POSITIVE);
        writeln!(
            f,
            "{:>7} {:>10} {:>6} {:>8} {:>7}  {:<16} {:<22} computes",
            "share", "ms", "calls", "GFLOP/s", "GB/s", "kernel", "result"
        )?;
        for k in &self.kernels {
            let seconds = k.time.as_secs_f64();
            writeln!(
                f,
                "{:>6.1}% {:>10.3} {:>6} {:>8} {:>7}  {:<16} {:<22} {}",
                100.0 * seconds / total,
                seconds * 1e3,
                k.calls,
                by_op::rate(k.flops, seconds, 1e9, 1),
                by_op::rate(k.bytes, seconds, 1e9, 1),
                k.kind,
                k.result,
                k.label
            )?;
        }
        write!(f, "{:.3} ms in kernels{}", total * 1e3, by_op::others(self.untimed))
    }
}
