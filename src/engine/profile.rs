//! Where the time goes: kernels timed one by one.

use crate::plan::kernel::Kernel;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

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

/// The kernels that ran during [`profile`], the slowest first. Printing it gives a table.
#[derive(Clone, Debug)]
pub struct Profile {
    /// One entry for every different kernel.
    pub kernels: Vec<KernelTime>,
}

/// What kernels have in common that are one line of a profile: label, kind, result.
type Key = (String, &'static str, String);

thread_local! {
    static TIMES: RefCell<Option<HashMap<Key, KernelTime>>> = const { RefCell::new(None) };
}

/// Runs `f` and times every kernel that this thread runs meanwhile.
pub fn profile<R>(f: impl FnOnce() -> R) -> (R, Profile) {
    let outer = TIMES.replace(Some(HashMap::new()));
    let result = f();
    let times = TIMES.replace(outer).unwrap_or_default();
    let mut kernels: Vec<KernelTime> = times.into_values().collect();
    kernels.sort_by_key(|k| std::cmp::Reverse(k.time));
    (result, Profile { kernels })
}

/// Whether this thread is being profiled.
pub(crate) fn is_profiled() -> bool {
    TIMES.with_borrow(Option::is_some)
}

/// Adds one run of a kernel.
pub(crate) fn record_time(kernel: &Kernel, time: Duration) {
    TIMES.with_borrow_mut(|times| {
        let Some(times) = times else { return };
        let last = kernel.parts.iter().rev().find(|p| p.stored);
        let result = last.map_or(String::new(), |p| format!("{} {}", p.dtype, p.shape));
        let key = (kernel.label.clone(), kernel.kind(), result.clone());
        let entry = times.entry(key).or_insert_with(|| KernelTime {
            label: kernel.label.clone(),
            kind: kernel.kind(),
            result,
            calls: 0,
            time: Duration::ZERO,
            flops: 0,
            bytes: 0,
        });
        entry.calls += 1;
        entry.time += time;
        entry.flops += kernel.flops;
        entry.bytes += kernel.bytes_read + kernel.bytes_written;
    });
}

impl Profile {
    /// The time of all kernels.
    pub fn total(&self) -> Duration {
        self.kernels.iter().map(|k| k.time).sum()
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
            let seconds = k.time.as_secs_f64().max(1e-9);
            writeln!(
                f,
                "{:>6.1}% {:>10.3} {:>6} {:>8.1} {:>7.1}  {:<16} {:<22} {}",
                100.0 * seconds / total,
                seconds * 1e3,
                k.calls,
                k.flops as f64 / seconds / 1e9,
                k.bytes as f64 / seconds / 1e9,
                k.kind,
                k.result,
                k.label
            )?;
        }
        write!(f, "{:.3} ms in kernels", total * 1e3)
    }
}
