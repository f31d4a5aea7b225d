//! Where the time goes, by the ops that the program called, or by the layers that called them. A fused kernel's time,
//! arithmetic and traffic are shared out to the ops it computes.

use super::peak::{Peak, known_peak};
use crate::call::{Layer, Origin};
use crate::device::Device;
use crate::plan::kernel::{Kernel, KernelBody};
use std::fmt;
use std::time::Duration;

/// All that one op took. The gradient of an op is an op of its own.
#[derive(Clone, Debug)]
pub struct OpTime {
    /// The op as the program calls it: `matmul`, or `gradient of matmul`.
    pub name: String,
    /// Where it ran.
    pub device: Device,
    /// How many kernels computed it, or a part of it.
    pub calls: u64,
    /// Its share of their time.
    pub time: Duration,
    /// Its share of their arithmetic operations.
    pub flops: u64,
    /// Its share of the bytes they read and wrote.
    pub bytes: u64,
}

/// The ops that ran during a profile, the slowest first, and what their devices can do at best, as far as
/// [`measure_peak`](crate::measure_peak) has found out. Printing it gives a table.
#[derive(Clone, Debug)]
pub struct OpReport {
    /// One entry for every op and device.
    pub ops: Vec<OpTime>,
    /// The devices, each with its peak if that was measured.
    pub peaks: Vec<(Device, Option<Peak>)>,
    /// Runs of kernels that have no time, since their device has no clock for them: a GPU without timestamps.
    pub untimed: u64,
    /// What the entries are: `op`, or `module`.
    what: &'static str,
}

/// What is said besides of kernels without times.
pub(super) fn others(untimed: u64) -> String {
    match untimed {
        0 => String::new(),
        runs => {
            format!("; {runs} runs were on a device that has no clock for them (timestamp queries)")
        }
    }
}

/// So much in a second, in these units, unless nobody knows the time.
pub(super) fn rate(amount: u64, seconds: f64, unit: f64, digits: usize) -> String {
    if seconds > 0.0 { format!("{:.digits$}", amount as f64 / seconds / unit) } else { "-".to_string() }
}

/// What is reported together.
pub(super) trait Group: PartialEq + Clone {
    fn of(origin: &Origin) -> Self;
}

impl Group for String {
    fn of(origin: &Origin) -> String {
        origin.label()
    }
}

impl Group for Option<Layer> {
    fn of(origin: &Origin) -> Option<Layer> {
        origin.layer
    }
}

/// The groups that a kernel computes, each with its share: of the elements it writes, or of the multiplications, of
/// which a product has far more than elements.
fn shares<G: Group>(kernel: &Kernel) -> Vec<(G, f64)> {
    let product = match &kernel.body {
        KernelBody::Native(s) => Some(s.output.slot),
        KernelBody::Map(_) | KernelBody::Rows(_) => None,
    };
    let mut shares: Vec<(G, f64)> = Vec::new();
    for part in &kernel.parts {
        let elements = part.shape.numel().max(1) as f64;
        let weight = if product == Some(part.slot) { elements.max(kernel.flops as f64) } else { elements };
        let group = G::of(&part.origin);
        match shares.iter_mut().find(|(known, _)| *known == group) {
            Some((_, share)) => *share += weight,
            None => shares.push((group, weight)),
        }
    }
    let total: f64 = shares.iter().map(|(_, weight)| weight).sum();
    shares.iter_mut().for_each(|(_, share)| *share /= total);
    shares
}

/// Times by group; the names are found when somebody asks for a report.
pub(super) type Times<G> = Vec<(G, OpTime)>;

/// Adds one run of a kernel to what its ops, or layers, took.
pub(super) fn add<G: Group>(times: &mut Times<G>, kernel: &Kernel, device: Device, time: Duration) {
    for (group, share) in shares::<G>(kernel) {
        let known = times.iter().position(|(g, op)| *g == group && op.device == device);
        let k = known.unwrap_or_else(|| {
            let name = String::new();
            times.push((group, OpTime { name, device, calls: 0, time: Duration::ZERO, flops: 0, bytes: 0 }));
            times.len() - 1
        });
        let op = &mut times[k].1;
        op.calls += 1;
        op.time += time.mul_f64(share);
        op.flops += (kernel.flops as f64 * share).round() as u64;
        op.bytes += ((kernel.bytes_read + kernel.bytes_written) as f64 * share).round() as u64;
    }
}

impl OpReport {
    /// Of groups, each under the name that `name` gives it; entries of one name become one.
    pub(super) fn new<G>(
        what: &'static str,
        times: &Times<G>,
        untimed: u64,
        name: impl Fn(&G) -> String,
    ) -> OpReport {
        let mut ops: Vec<OpTime> = Vec::new();
        for (group, time) in times {
            let name = name(group);
            match ops.iter_mut().find(|op| op.name == name && op.device == time.device) {
                Some(op) => {
                    op.calls += time.calls;
                    op.time += time.time;
                    op.flops += time.flops;
                    op.bytes += time.bytes;
                }
                None => ops.push(OpTime { name, ..time.clone() }),
            }
        }
        ops.sort_by_key(|op| std::cmp::Reverse(op.time));
        let mut peaks: Vec<(Device, Option<Peak>)> = Vec::new();
        for op in &ops {
            if !peaks.iter().any(|(device, _)| *device == op.device) {
                peaks.push((op.device, known_peak(op.device)));
            }
        }
        OpReport { ops, peaks, untimed, what }
    }

    /// How close an op comes to what its device can do, in arithmetic or in traffic, whichever is closer; none where
    /// the device's peak was not measured.
    pub fn share_of_peak(&self, op: &OpTime) -> Option<f64> {
        let (_, peak) = self.peaks.iter().find(|(device, _)| *device == op.device)?;
        let (peak, seconds) = ((*peak)?, op.time.as_secs_f64());
        let share = (op.flops as f64 / peak.flops).max(op.bytes as f64 / peak.bytes) / seconds;
        (seconds > 0.0).then_some(share)
    }
}

impl fmt::Display for OpReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.ops.iter().map(|op| op.time).sum::<Duration>().as_secs_f64().max(f64::MIN_POSITIVE);
        writeln!(
            f,
            "{:>7} {:>10} {:>6} {:>9} {:>9} {:>7} {:>8} {:>6}  {:<6} {}",
            "share", "ms", "calls", "MB", "GFLOP", "GB/s", "TFLOP/s", "peak", "device", self.what
        )?;
        for op in &self.ops {
            let seconds = op.time.as_secs_f64();
            let peak = self.share_of_peak(op).map_or("-".into(), |share| format!("{:.0}%", 100.0 * share));
            writeln!(
                f,
                "{:>6.1}% {:>10.3} {:>6} {:>9.2} {:>9.3} {:>7} {:>8} {peak:>6}  {:<6} {}",
                100.0 * seconds / total,
                seconds * 1e3,
                op.calls,
                op.bytes as f64 / 1e6,
                op.flops as f64 / 1e9,
                rate(op.bytes, seconds, 1e9, 1),
                rate(op.flops, seconds, 1e12, 3),
                op.device.to_string(),
                op.name
            )?;
        }
        for (device, peak) in &self.peaks {
            match peak {
                Some(Peak { bytes, flops }) => writeln!(
                    f,
                    "peak of {device}: {:.1} GB/s and {:.3} TFLOP/s, measured by a copy and an f32 product",
                    bytes / 1e9,
                    flops / 1e12
                )?,
                None => writeln!(f, "peak of {device}: unknown (volta::measure_peak measures it)")?,
            }
        }
        write!(f, "{:.3} ms in kernels{}", total * 1e3, others(self.untimed))
    }
}
