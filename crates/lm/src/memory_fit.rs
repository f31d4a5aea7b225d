//! Whether a step fits into a device's memory, what it does so that it fits, and what would fit in its place.

use crate::config::Config;
use crate::plan::StepPlan;
use crate::prepare::Prepared;
use std::fmt;
use volta::{Device, Error, ErrorKind, MemoryFit, PlanReport, Result, set_memory_limit};

/// A step's memory in numbers. Printing it gives a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepMemory {
    /// Bytes that may be in use, if there is a limit.
    pub limit: Option<u64>,
    /// The most bytes in use at once.
    pub peak_bytes: u64,
    /// What that would be without a limit.
    pub unlimited_peak_bytes: u64,
    /// Bytes that are missing.
    pub missing_bytes: u64,
    /// Kernels that compute something again, in a whole step.
    pub recomputed_kernels: u64,
    /// Their arithmetic operations.
    pub recomputed_flops: u64,
    /// Bytes that they read and write.
    pub recomputed_bytes: u64,
    /// Bytes that move to the host's memory and back, in a whole step.
    pub moved_bytes: u64,
    /// Bytes of the host's memory that they take there.
    pub host_bytes: u64,
    /// How long a step takes, as a multiple of its time without a limit, by a rough estimate.
    pub slowdown: f64,
}

impl StepPlan {
    /// The plans of a usual step with what memory there is: what the configuration says, else what has been set for the device, else
    /// what the device tells. An error that says what would fit, if they do not.
    pub fn fitting(config: &Config, prepared: &Prepared) -> Result<Option<StepPlan>> {
        let plan = StepPlan::under_limit(config, prepared)?;
        plan.as_ref().map_or(Ok(()), |plan| plan.check_memory(config, prepared))?;
        Ok(plan)
    }

    /// The same, whether they fit or not.
    pub fn under_limit(config: &Config, prepared: &Prepared) -> Result<Option<StepPlan>> {
        StepPlan::within(prepared.device, config.memory, || StepPlan::new(config, prepared))
    }

    /// The plans that `make` makes with so much memory, else with what has been set for the device, else with what the device tells.
    pub fn within(
        device: Device,
        memory: Option<u64>,
        mut make: impl FnMut() -> Result<Option<StepPlan>>,
    ) -> Result<Option<StepPlan>> {
        if memory.is_some() {
            set_memory_limit(device, memory)?;
        }
        let plan = make()?;
        let Some(there) = device.memory()?.filter(|_| memory.is_none()) else { return Ok(plan) };
        if plan.as_ref().is_none_or(|plan| plan.has_limit() || plan.peak_bytes() as u64 <= there) {
            return Ok(plan);
        }
        set_memory_limit(device, Some(there))?;
        make()
    }

    /// An error with what is needed, what there is and what would fit, if a step does not.
    pub fn check_memory(&self, config: &Config, prepared: &Prepared) -> Result<()> {
        let memory = self.memory(prepared.device)?;
        if memory.missing_bytes == 0 {
            return Ok(());
        }
        let limit = memory.limit.unwrap_or_default();
        let advice = match smaller_batch(config, prepared)? {
            Some(batch) => {
                let accumulation = config.accumulation * config.batch.div_ceil(batch);
                format!(
                    "--batch {batch} fits, with --accumulation {accumulation} for updates of as many sequences"
                )
            }
            None if config.is_half() => "make the context or the model smaller".into(),
            None => "make the context or the model smaller, or use --precision f16".into(),
        };
        let message = format!(
            "a step needs {} of memory at least, though it computes again or moves to the host whatever it can, and {} may use {}: {advice}",
            gigabytes(least_limit(config, prepared, limit, memory.missing_bytes)?),
            prepared.device,
            gigabytes(limit)
        );
        Err(Error::new(ErrorKind::Memory, message))
    }

    /// What memory a step takes.
    pub fn memory(&self, device: Device) -> Result<StepMemory> {
        let fits = || self.plans().filter_map(|(_, plan)| plan.fit);
        let sum = |of: fn(&MemoryFit) -> u64| -> u64 {
            self.plans().map(|(times, plan)| times * plan.fit.as_ref().map_or(0, of)).sum()
        };
        // Plans that take long count for more.
        let weight = |plan: &PlanReport| (plan.flops() + plan.traffic()) as f64;
        let whole: f64 = self.plans().map(|(times, plan)| times as f64 * weight(plan)).sum();
        let slowed = self
            .plans()
            .map(|(times, plan)| times as f64 * weight(plan) * plan.fit.map_or(1.0, |fit| fit.slowdown));
        let unlimited =
            self.plans().map(|(_, plan)| plan.fit.map_or(plan.peak_bytes, |fit| fit.unlimited_peak_bytes));
        Ok(StepMemory {
            limit: volta::memory_limit(device)?,
            peak_bytes: self.peak_bytes() as u64,
            unlimited_peak_bytes: unlimited.max().unwrap_or(0) as u64,
            missing_bytes: fits().map(|fit| fit.needed_bytes.saturating_sub(fit.room)).max().unwrap_or(0)
                as u64,
            recomputed_kernels: sum(|fit| fit.recomputed_kernels as u64),
            recomputed_flops: sum(|fit| fit.recomputed_flops),
            recomputed_bytes: sum(|fit| fit.recomputed_bytes),
            moved_bytes: sum(|fit| fit.moved_bytes),
            host_bytes: fits().map(|fit| fit.host_bytes).max().unwrap_or(0) as u64,
            slowdown: if whole > 0.0 { slowed.sum::<f64>() / whole } else { 1.0 },
        })
    }
}

/// A limit under which a step fits, if it misses so many bytes under this one: the least that the planner knows of, rounded up to what can
/// be read and typed.
fn least_limit(config: &Config, prepared: &Prepared, limit: u64, missing: u64) -> Result<u64> {
    /// Plans that are tried: with more room another plan may be found.
    const MAX_TRIES: usize = 8;
    let device = prepared.device;
    let (mut least, mut missing) = (limit, missing);
    for _ in 0..MAX_TRIES {
        least = readable(least + missing.max(least / 64));
        set_memory_limit(device, Some(least))?;
        let plan = StepPlan::new(config, prepared);
        let found = plan.and_then(|plan| plan.map_or(Ok(0), |plan| Ok(plan.memory(device)?.missing_bytes)));
        set_memory_limit(device, Some(limit))?;
        missing = found?;
        if missing == 0 {
            break;
        }
    }
    Ok(least)
}

/// The next number of bytes that [`gigabytes`] prints exactly.
fn readable(bytes: u64) -> u64 {
    bytes.next_multiple_of(if bytes < 1_000_000_000 { 100_000 } else { 10_000_000 })
}

/// The largest half, quarter or further part of the batch that fits.
fn smaller_batch(config: &Config, prepared: &Prepared) -> Result<Option<usize>> {
    let mut batch = config.batch / 2;
    while batch > 0 {
        let smaller = config.with(&[("batch", &batch.to_string())])?;
        let plan = StepPlan::estimate(&smaller, prepared.gpt.options.vocabulary, prepared.device)?;
        if plan.is_none_or(|plan| plan.memory(prepared.device).is_ok_and(|memory| memory.missing_bytes == 0))
        {
            return Ok(Some(batch));
        }
        batch /= 2;
    }
    Ok(None)
}

fn gigabytes(bytes: u64) -> String {
    if bytes < 1_000_000_000 {
        format!("{:.1} MB", bytes as f64 / 1e6)
    } else {
        format!("{:.2} GB", bytes as f64 / 1e9)
    }
}

impl fmt::Display for StepMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit.map_or("none was set, and the device tells of none".into(), gigabytes);
        writeln!(f, "memory limit          {limit}")?;
        if self.unlimited_peak_bytes != self.peak_bytes {
            writeln!(f, "peak without a limit  {}", gigabytes(self.unlimited_peak_bytes))?;
        }
        writeln!(f, "peak                  {}", gigabytes(self.peak_bytes))?;
        writeln!(
            f,
            "computed again        {} kernels, {:.2} GFLOP, {} read and written",
            self.recomputed_kernels,
            self.recomputed_flops as f64 / 1e9,
            gigabytes(self.recomputed_bytes)
        )?;
        writeln!(
            f,
            "moved                 {} to the host's memory and back, where they take {}",
            gigabytes(self.moved_bytes),
            gigabytes(self.host_bytes)
        )?;
        write!(f, "estimated step        {:.2} times as long as without a limit", self.slowdown)
    }
}
