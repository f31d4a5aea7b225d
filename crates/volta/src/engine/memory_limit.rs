//! How much of a device's memory plans may take.

use super::{Prepared, executor};
use crate::call::Call;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::Plan;
use crate::plan::executor::Executor;
use crate::plan::graph::PlanGraph;
use crate::plan::memory::DeviceLimits;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A part of the limit that plans leave to whatever else comes to life between two runs: one for each so many bytes.
const SPARE_PART: u64 = 64;

/// What is known of a device.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The limit that somebody has set.
    set: Option<u64>,
    /// Whether a plan had to be changed for what the device has: from then on steps are one plan.
    is_tight: bool,
}

static DEVICES: Mutex<BTreeMap<u64, Known>> = Mutex::new(BTreeMap::new());

fn devices() -> MutexGuard<'static, BTreeMap<u64, Known>> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn known(device: Device) -> Known {
    devices().get(&super::device_number(device)).copied().unwrap_or_default()
}

/// The most memory that may be in use on a device at a time: by tensors, and inside of a step. A step that would take more computes
/// some values again instead of keeping them, or moves them to the host's memory and back, to the same bits, which takes longer; [`PlanReport::fit`](crate::PlanReport::fit)
/// tells what that costs. If even that is not enough, the step is an error that says how much it needs.
///
/// `None` stands for what the device tells of itself: the memory of a GPU, if its driver tells, and no limit on the CPU. A step on a GPU
/// with a limit of its own begins when all of it is recorded.
///
/// ```
/// use volta::{Device, set_memory_limit};
/// set_memory_limit(Device::Cpu, Some(6_000_000_000))?;
/// # set_memory_limit(Device::Cpu, None)?;
/// # Ok::<(), volta::Error>(())
/// ```
#[track_caller]
pub fn set_memory_limit(device: Device, bytes: Option<u64>) -> Result<()> {
    let _call = Call::enter("set_memory_limit");
    executor(device)?.limit_memory(bytes)?;
    devices().insert(super::device_number(device), Known { set: bytes, is_tight: false });
    Ok(())
}

/// The most memory that may be in use on a device: what was set, or what the device tells of itself. `None` if there is no limit.
#[track_caller]
pub fn memory_limit(device: Device) -> Result<Option<u64>> {
    let _call = Call::enter("memory_limit");
    Ok(of(device, executor(device)?)?.map(|limit| limit.bytes))
}

/// A limit, and what is in use.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    device: Device,
    bytes: u64,
    used: u64,
    /// Whether somebody has set it: what a device tells of itself is only its size.
    is_set: bool,
}

/// The limit of a device. What the CPU tells is what is free just now, and no limit.
pub(super) fn of(device: Device, executor: &dyn Executor) -> Result<Option<Limit>> {
    let set = known(device).set;
    let bytes = match set {
        None if device.is_gpu() => executor.memory()?,
        set => set,
    };
    let Some(bytes) = bytes else { return Ok(None) };
    Ok(Some(Limit { device, bytes, used: executor.used_bytes()?, is_set: set.is_some() }))
}

/// Whether a step may come near the limit.
pub(super) fn is_near(device: Device, executor: &dyn Executor) -> Result<bool> {
    let Known { set, is_tight } = known(device);
    if set.is_some() || is_tight {
        return Ok(true);
    }
    Ok(executor.memory()?.is_some_and(|bytes| executor.used_bytes().is_ok_and(|used| used > bytes / 2)))
}

/// Whether a plan that was made before can run under this limit, and would not be another one.
pub(super) fn suits(found: &Prepared, limit: Option<Limit>) -> bool {
    let same = found.limit.map(|limit| limit.bytes) == limit.map(|limit| limit.bytes);
    match found.plan.fit {
        // Without a limit nobody has counted.
        None => limit.is_none(),
        Some(fit) => {
            let needed = (fit.needed_bytes + found.program.scratch_bytes(&found.plan)) as u64;
            let fits = limit.is_none_or(|limit| limit.used + needed <= limit.bytes || !limit.is_set);
            fits && (same || !fit.is_changed())
        }
    }
}

impl Limit {
    /// The bytes that a plan may take besides its inputs, of which some are only assumed to be there.
    pub fn room(
        &self,
        graph: &PlanGraph,
        rules: &DeviceLimits,
        assumed: impl Iterator<Item = usize>,
    ) -> usize {
        let assumed: usize = assumed.map(|n| rules.allocated(rules.bytes(graph, n))).sum();
        let taken = self.used + self.bytes / SPARE_PART + assumed as u64;
        usize::try_from(self.bytes.saturating_sub(taken)).unwrap_or(usize::MAX)
    }

    /// Notes that a plan was changed; an error if it takes more than there is all the same, beside what was `reserved` for kernels. Where
    /// nobody has set the limit, the driver decides.
    pub fn check(&self, plan: &Plan, reserved: usize) -> Result<()> {
        let Some(fit) = plan.fit else { return Ok(()) };
        if fit.is_changed() || !fit.fits() {
            devices().entry(super::device_number(self.device)).or_default().is_tight = true;
        }
        if fit.fits() || !self.is_set {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Memory, self.shortage(fit.needed_bytes + reserved)))
    }

    /// What is missing, and what would help.
    fn shortage(&self, needed: usize) -> String {
        let taken = self.used + needed as u64;
        let least = taken + taken / (SPARE_PART - 1) + 1;
        format!(
            "this step needs at least {} of memory on {}, though it computes again or moves to the host whatever it can, and the limit is {} ({} are in use \
             by tensors): set a limit of {} bytes, make the batch smaller and add up gradients, or use linear_cross_entropy in the \
             place of large logits, f16, or a smaller model",
            gigabytes(least),
            self.device,
            gigabytes(self.bytes),
            gigabytes(self.used),
            least,
        )
    }
}

fn gigabytes(bytes: u64) -> String {
    match bytes {
        ..10_000_000 => format!("{:.3} MB", bytes as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}
