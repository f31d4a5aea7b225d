//! A GPU that was opened: its device and queue, what it can do, its memory, its pipelines, and what went wrong.

use super::adapter;
use super::device_errors::{ErrorHints, Faults};
use super::fault_injection::Injected;
use crate::caps::{AdapterKind, Caps};
use crate::codegen::storage_type::StorageType;
use crate::lower::submission::CostModel;
use crate::memory::pool::{Arena, Pool, SIZE_CLASSES};
use crate::runtime::assertions::Assertions;
use crate::runtime::disk_cache::DiskCache;
use crate::runtime::pipeline::Pipelines;
use crate::runtime::preencode::DispatchList;
#[cfg(target_arch = "wasm32")]
use crate::runtime::work_queue::WorkQueue;
use crate::tune::TuningCache;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use volta_ir::dtype::DType;
use volta_ir::error::{Error, ErrorKind, Result};
use volta_ir::plan::memory::{DeviceLimits, Rates};
use volta_ir::telemetry::count_submission;

/// The number by which adapters of NVIDIA are known.
const NVIDIA: u32 = 0x10de;

pub(crate) struct Context {
    pub index: usize,
    /// Counts openings: what was made for a lost device is not used with its successor.
    pub generation: u64,
    pub name: String,
    /// Whether it computes on the host's processor.
    pub is_software: bool,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub caps: Caps,
    pub rules: DeviceLimits,
    pub pool: Mutex<Pool>,
    pub arena: Mutex<Arena>,
    pub timestamps: bool,
    pub pipelines: Pipelines,
    /// What waits for them.
    #[cfg(target_arch = "wasm32")]
    pub work: WorkQueue,
    /// Pipelines of earlier runs.
    pub disk_cache: Option<DiskCache>,
    /// Whether pipelines are compiled to be tried and not to be kept.
    pub on_trial: AtomicBool,
    pub cost_model: CostModel,
    /// Plans that are encoded once more when there is time.
    preencode_queue: Mutex<VecDeque<Weak<DispatchList>>>,
    /// What was tuned.
    kept: Mutex<TuningCache>,
    pub faults: Faults,
    /// The bytes of its own memory, if its driver tells.
    pub memory: Option<u64>,
    /// Indices and divisors that kernels have found fault with.
    pub assertions: Assertions,
    /// Bytes that were allocated and not given back, and those of them that tensors have.
    pub allocated_bytes: Arc<AtomicU64>,
    pub live_bytes: AtomicU64,
    /// Bytes beyond which nothing is kept for later.
    pub limit: AtomicU64,
    pub injected: Injected,
    /// What a browser still has to say of what it was asked for.
    #[cfg(target_arch = "wasm32")]
    unsettled: Mutex<VecDeque<Settling>>,
}

/// Says later whether something went wrong.
#[cfg(target_arch = "wasm32")]
type Settling = std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send>>;

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
    let context = Arc::new(Context::new(index, adapter::find(index).await?).await?);
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

/// `VOLTA_LIMITS=webgpu` opens devices with the limits and features that every WebGPU implementation has.
fn only_webgpu() -> bool {
    volta_ir::environment::values().webgpu_limits
}

const ADVICE: ErrorHints = ErrorHints {
    lost: "tensors on it are gone, new ones open it again",
    out_of_memory: "use smaller batches, f16, or checkpointing",
    patience: Duration::from_millis(200),
};

/// `VOLTA_BLOCK_BYTES` makes the pieces smaller that large tensors are split into, to test the splitting.
fn block_bytes(limits: &wgpu::Limits) -> usize {
    let asked = volta_ir::environment::values().block_bytes.unwrap_or(u64::MAX);
    // Memory of the host for a piece has room for a few words besides.
    let buffer = limits.max_buffer_size.saturating_sub(4096);
    let most = limits.max_storage_buffer_binding_size.min(buffer).min(asked).min(1 << 31);
    (most as usize & !4095).max(4096)
}

impl Context {
    async fn new(index: usize, adapter: wgpu::Adapter) -> Result<Context> {
        use wgpu::Features as F;
        let info = adapter.get_info();
        let name = adapter::name(&info);
        let cooperative = adapter::has_cooperative(&adapter) && !only_webgpu();
        let mut wanted =
            F::SHADER_F16 | F::SHADER_INT64 | F::SUBGROUP | F::TIMESTAMP_QUERY | F::PIPELINE_CACHE;
        if cooperative {
            wanted |= F::EXPERIMENTAL_COOPERATIVE_MATRIX;
        }
        if only_webgpu() {
            wanted = F::empty();
        }
        let features = adapter.features() & wanted;
        let limits = if only_webgpu() { wgpu::Limits::default() } else { adapter.limits() };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("volta"),
            required_features: features,
            required_limits: limits.clone(),
            // SAFETY: cooperative matrices are the only experimental feature, used in shaders that tests validate.
            experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            trace: wgpu::Trace::Off,
        };
        let (device, queue) = adapter::ask(|| adapter.request_device(&descriptor)).await.map_err(|e| {
            Error::new(ErrorKind::Device, format!("gpu:{index} ({name}) could not be opened: {e}"))
        })?;
        // Subgroups of one size are used as such; where it varies, shaders do without.
        let fixed = info.subgroup_min_size == info.subgroup_max_size && info.subgroup_min_size >= 4;
        // Vulkan's memory model knows parts of vectors by themselves; WebGPU does not.
        let component_stores = info.backend == wgpu::Backend::Vulkan && !only_webgpu();
        let caps = Caps {
            f16: features.contains(F::SHADER_F16),
            i64: features.contains(F::SHADER_INT64),
            subgroup: (features.contains(F::SUBGROUP) && fixed).then_some(info.subgroup_min_size),
            // Their tiles are filled part by part.
            cooperative: cooperative && component_stores,
            // A browser does not tell whose adapter it is.
            elides_f16_roundtrip: info.vendor == NVIDIA || info.backend == wgpu::Backend::BrowserWebGpu,
            component_stores,
            // Natively a software adapter is there to test what others run.
            serial_workgroups: cfg!(target_arch = "wasm32") && adapter::kind(&info) == AdapterKind::Software,
            invocations: limits.max_compute_invocations_per_workgroup,
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
        };
        let f16 = caps.f16;
        let mut sizes = [0; DType::ALL.len()];
        for dtype in DType::ALL {
            sizes[dtype as usize] = if dtype == DType::F64 { 8 } else { StorageType::of(dtype, f16).size() };
        }
        let rules = DeviceLimits {
            alignment: 256.max(limits.min_storage_buffer_offset_alignment as usize),
            block: block_bytes(&limits),
            regions: 3,
            slots: limits.max_storage_buffers_per_shader_stage as usize,
            // One workgroup walks along it.
            max_fused_row: 1 << 16,
            min_rows_unsplit: 2048,
            columns: true,
            prologues: true,
            horizontal_fusion: true,
            sizes,
            size_classes: SIZE_CLASSES,
            rates: Rates { flops_per_byte: 64, kernel_bytes: 4 << 20 },
        };
        Ok(Context {
            faults: Faults::of(&device, format!("gpu:{index} ({name})"), &ADVICE),
            index,
            generation: 1 + GENERATIONS.fetch_add(1, Ordering::Relaxed),
            is_software: adapter::kind(&info) == AdapterKind::Software,
            cost_model: CostModel::of(adapter::kind(&info)),
            disk_cache: DiskCache::open(&device, &info),
            on_trial: AtomicBool::new(false),
            kept: Mutex::new(TuningCache::open(&info, &caps)),
            preencode_queue: Mutex::default(),
            memory: adapter::memory(&adapter),
            name,
            timestamps: features.contains(F::TIMESTAMP_QUERY),
            device,
            queue,
            caps,
            rules,
            pool: Mutex::default(),
            arena: Mutex::default(),
            pipelines: Mutex::default(),
            #[cfg(target_arch = "wasm32")]
            work: WorkQueue::default(),
            assertions: Assertions::default(),
            allocated_bytes: Arc::default(),
            live_bytes: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            injected: Injected::default(),
            #[cfg(target_arch = "wasm32")]
            unsettled: Mutex::default(),
        })
    }

    /// What was tuned.
    pub fn kept(&self) -> MutexGuard<'_, TuningCache> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans that are encoded once more when there is time.
    pub fn preencode_queue(&self) -> MutexGuard<'_, VecDeque<Weak<DispatchList>>> {
        self.preencode_queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has whoever reads something next wait for that, and told if it went wrong.
    #[cfg(target_arch = "wasm32")]
    pub fn before_reading(&self, settling: impl Future<Output = Result<()>> + Send + 'static) {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).push_back(Box::pin(settling));
    }

    /// Waits for what a browser still has to say of what it was asked for; natively everything was said at once.
    pub async fn settle(&self) -> Result<()> {
        #[cfg(target_arch = "wasm32")]
        loop {
            let next = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(settling) = next else { break };
            settling.await?;
        }
        Ok(())
    }

    /// Gives the device something to do.
    pub fn submit(&self, commands: wgpu::CommandBuffer) {
        #[cfg(unix)]
        super::shutdown::wait_at_the_end();
        self.queue.submit([commands]);
        count_submission();
    }

    /// Its name, for errors.
    pub fn who(&self) -> &str {
        self.faults.who()
    }

    /// Whether it was lost: everything on it is gone.
    pub fn is_lost(&self) -> bool {
        self.faults.is_lost()
    }
}
