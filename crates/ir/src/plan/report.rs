//! What a plan is, for people: its kernels, what each fuses, traffic, arithmetic and memory.

use super::Plan;
use super::kernel::KernelBody;
use super::limit::MemoryFit;
use std::fmt;

/// One kernel of a plan.
#[derive(Clone, Debug)]
pub struct KernelReport {
    /// The ops the user called that it computes, joined.
    pub label: String,
    /// What kind of kernel it is: `map`, `reduce`, `matmul`, …
    pub kind: &'static str,
    /// The primitives it computes, in order.
    pub ops: Vec<&'static str>,
    /// How many tensors one program serves.
    pub instances: usize,
    /// Bytes read from memory.
    pub bytes_read: u64,
    /// Bytes written to memory.
    pub bytes_written: u64,
    /// Arithmetic operations.
    pub flops: u64,
}

/// A compiled plan in numbers. Printing it gives a table.
#[derive(Clone, Debug)]
pub struct PlanReport {
    /// The kernels in the order they run.
    pub kernels: Vec<KernelReport>,
    /// The most bytes in use at once: inputs, outputs and intermediate values.
    pub peak_bytes: usize,
    /// Bytes of intermediate values, all sharing one arena.
    pub arena_bytes: usize,
    /// What was done so that the plan takes no more memory than there is, if there is a limit.
    pub fit: Option<MemoryFit>,
}

impl PlanReport {
    #[doc(hidden)]
    pub fn of(plan: &Plan) -> PlanReport {
        let kernels = plan.kernels.iter().map(|k| {
            let instances = if let KernelBody::Map(maps) = &k.body { maps.len() } else { 1 };
            KernelReport {
                label: k.label.clone(),
                kind: k.kind(),
                ops: k.parts.iter().map(|p| p.op).collect(),
                instances,
                bytes_read: k.bytes_read,
                bytes_written: k.bytes_written,
                flops: k.flops,
            }
        });
        PlanReport {
            kernels: kernels.collect(),
            peak_bytes: plan.layout.peak_bytes,
            arena_bytes: plan.layout.arena_bytes(),
            fit: plan.fit,
        }
    }

    /// Bytes read and written by all kernels.
    pub fn traffic(&self) -> u64 {
        self.kernels.iter().map(|k| k.bytes_read + k.bytes_written).sum()
    }

    /// Arithmetic operations of all kernels.
    pub fn flops(&self) -> u64 {
        self.kernels.iter().map(|k| k.flops).sum()
    }
}

/// `1.5 MB`, `2.0 GFLOP`: a number with its thousands as a letter.
fn scaled(x: u64, unit: &str) -> String {
    let mut value = x as f64;
    let mut letters = ["", "k", "M", "G", "T", "P"].iter();
    let mut letter = letters.next().expect("six letters");
    while value >= 1000.0
        && let Some(next) = letters.next()
    {
        value /= 1000.0;
        letter = next;
    }
    if letter.is_empty() { format!("{value:.0} {unit}") } else { format!("{value:.1} {letter}{unit}") }
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>3}  {:<16} {:>10} {:>10} {:>11}  computes",
            "", "kernel", "reads", "writes", "arithmetic"
        )?;
        for (i, k) in self.kernels.iter().enumerate() {
            let kind =
                if k.instances > 1 { format!("{} ×{}", k.kind, k.instances) } else { k.kind.to_string() };
            let (read, written) = (scaled(k.bytes_read, "B"), scaled(k.bytes_written, "B"));
            writeln!(
                f,
                "{i:>3}  {kind:<16} {read:>10} {written:>10} {:>11}  {}",
                scaled(k.flops, "FLOP"),
                k.label
            )?;
        }
        write!(
            f,
            "{} kernels, {} moved, {}, peak memory {} of which {} intermediate",
            self.kernels.len(),
            scaled(self.traffic(), "B"),
            scaled(self.flops(), "FLOP"),
            scaled(self.peak_bytes as u64, "B"),
            scaled(self.arena_bytes as u64, "B"),
        )
    }
}
