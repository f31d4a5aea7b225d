//! The GPUs that are open, and what running plans on one takes: its memory, its pipelines, what was tuned.

use super::disk_cache::DiskCache;
use super::pipeline::Pipelines;
use super::tuning_cache::TuningCache;
use crate::device::adapter;
use crate::device::open_device::OpenDevice;
use crate::lower::submission::CostModel;
use crate::memory::device_memory::DeviceMemory;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use volta_ir::error::Result;
#[cfg(target_arch = "wasm32")]
use volta_ir::error::{Error, ErrorKind};

/// An open GPU with all that it keeps. It derefs to its memory, and that to the device.
pub(crate) struct Context {
    pub memory: Arc<DeviceMemory>,
    /// Counts openings: what was made for a lost device is not used with its successor.
    pub generation: u64,
    pub pipelines: Pipelines,
    /// Pipelines of earlier runs.
    pub disk_cache: Option<DiskCache>,
    /// Whether pipelines are compiled to be tried and not to be kept.
    pub on_trial: AtomicBool,
    pub cost_model: CostModel,
    /// What was tuned.
    tuned: Mutex<TuningCache>,
}

impl Deref for Context {
    type Target = DeviceMemory;

    fn deref(&self) -> &DeviceMemory {
        &self.memory
    }
}

static CONTEXTS: Mutex<Vec<Option<Arc<Context>>>> = Mutex::new(Vec::new());
/// Devices that were opened so far.
pub(crate) static GENERATIONS: AtomicU64 = AtomicU64::new(0);

fn contexts() -> MutexGuard<'static, Vec<Option<Arc<Context>>>> {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn opened(index: usize) -> Option<Arc<Context>> {
    contexts().get(index)?.clone().filter(|c| !c.is_lost())
}

/// All that were opened.
pub(crate) fn all_opened() -> Vec<Arc<Context>> {
    contexts().iter().flatten().cloned().collect()
}

/// The context of `gpu:index`, opened if it is not, or if it was lost.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn open(index: usize) -> Result<Arc<Context>> {
    static OPENING: Mutex<()> = Mutex::new(());
    if let Some(context) = opened(index) {
        return Ok(context);
    }
    // Of threads that begin at once, one opens it for all.
    let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    crate::now(open_if_needed(index))
}

/// As [`open`]: natively nothing waits.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) async fn open_async(index: usize) -> Result<Arc<Context>> {
    open(index)
}

/// The context of `gpu:index`, which must be open: a browser's tab cannot wait.
#[cfg(target_arch = "wasm32")]
pub(crate) fn open(index: usize) -> Result<Arc<Context>> {
    opened(index).ok_or_else(|| {
        let was_lost = contexts().get(index).is_some_and(Option::is_some);
        let (what, then) =
            if was_lost { ("was lost, and what was on it is gone", "") } else { ("is not open", " first") };
        let message = format!("gpu:{index} {what}: call volta::gpu::open({index}).await{then}");
        Error::new(ErrorKind::Device, message)
    })
}

#[cfg(target_arch = "wasm32")]
pub(crate) use open_if_needed as open_async;

pub(crate) async fn open_if_needed(index: usize) -> Result<Arc<Context>> {
    if let Some(context) = opened(index) {
        return Ok(context);
    }
    let context = Arc::new(Context::new(OpenDevice::new(index, adapter::find(index).await?).await?));
    let mut all = contexts();
    if all.len() <= index {
        all.resize(index + 1, None);
    }
    // Somebody else may have been faster, in a tab.
    if let Some(there) = all[index].clone().filter(|c| !c.is_lost()) {
        return Ok(there);
    }
    all[index] = Some(context.clone());
    Ok(context)
}

impl Context {
    fn new(device: OpenDevice) -> Context {
        Context {
            generation: 1 + GENERATIONS.fetch_add(1, Ordering::Relaxed),
            pipelines: Mutex::default(),
            disk_cache: DiskCache::open(&device.device, &device.adapter),
            on_trial: AtomicBool::new(false),
            cost_model: CostModel::of(adapter::kind(&device.adapter)),
            tuned: Mutex::new(TuningCache::open(&device.adapter, &device.caps)),
            memory: Arc::new(DeviceMemory::new(device)),
        }
    }

    /// What was tuned.
    pub fn tuned(&self) -> MutexGuard<'_, TuningCache> {
        self.tuned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
