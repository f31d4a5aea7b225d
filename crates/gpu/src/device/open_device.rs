//! A GPU that was opened: its device and queue, what it can do, and what went wrong with it.

use super::adapter;
use super::device_errors::{ErrorHints, Faults};
use super::idle_queue::IdleQueue;
use super::injected_faults::InjectedFaults;
use super::work_queue::{Ordered, WorkQueue};
use crate::caps::{AdapterKind, Caps, SIZE_CLASSES};
use crate::codegen::storage_type::StorageType;
#[cfg(target_arch = "wasm32")]
use std::collections::VecDeque;
use std::sync::Arc;
#[cfg(target_arch = "wasm32")]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use volta_ir::dtype::DType;
use volta_ir::error::{Error, ErrorKind, Result};
use volta_ir::plan::memory::{DeviceLimits, Rates};
use volta_ir::telemetry::count_submission;

/// The number by which adapters of NVIDIA are known.
const NVIDIA: u32 = 0x10de;

pub(crate) struct OpenDevice {
    pub index: usize,
    pub name: String,
    /// Whether it computes on the host's processor.
    pub is_software: bool,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub adapter: wgpu::AdapterInfo,
    pub caps: Caps,
    pub rules: DeviceLimits,
    pub timestamps: bool,
    /// The bytes of its own memory, if its driver tells.
    pub total_bytes: Option<u64>,
    /// What waits for its place in the device's order of work.
    pub work: Arc<WorkQueue>,
    /// What is done while the host waits for the device.
    pub idle: IdleQueue,
    pub faults: Faults,
    pub injected: InjectedFaults,
    /// What a browser still has to say of what it was asked for.
    #[cfg(target_arch = "wasm32")]
    unsettled: Mutex<VecDeque<Settling>>,
}

/// Says later whether something went wrong.
#[cfg(target_arch = "wasm32")]
type Settling = std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send>>;

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

/// What it takes to move a byte to the host's memory or back, in bytes of the device's own memory; 0 where values do not move: an
/// integrated GPU's memory is the host's, and only Vulkan's drivers are known to keep in the host's memory what the host may read. A card
/// reads its own memory some sixty times as fast as the host's, on whose memory a software adapter stands in for one.
fn host_byte(kind: AdapterKind, backend: wgpu::Backend) -> usize {
    match kind {
        _ if backend != wgpu::Backend::Vulkan => 0,
        AdapterKind::Discrete | AdapterKind::Virtual => 64,
        AdapterKind::Software => 4,
        AdapterKind::Integrated | AdapterKind::Other => 0,
    }
}

impl OpenDevice {
    pub async fn new(index: usize, adapter: wgpu::Adapter) -> Result<OpenDevice> {
        use wgpu::Features as F;
        let info = adapter.get_info();
        let name = adapter::name(&info);
        let cooperative = adapter::has_cooperative(&adapter) && !only_webgpu();
        let mut wanted =
            F::SHADER_F16 | F::SHADER_INT64 | F::SUBGROUP | F::TIMESTAMP_QUERY | F::PIPELINE_CACHE;
        if cooperative {
            wanted |= F::EXPERIMENTAL_COOPERATIVE_MATRIX;
        }
        // What kernels see may lie in the host's memory.
        let kind = adapter::kind(&info);
        let host_byte = host_byte(kind, info.backend);
        if host_byte > 0 {
            wanted |= F::MAPPABLE_PRIMARY_BUFFERS;
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
            rates: Rates {
                flops_per_byte: 64,
                kernel_bytes: 4 << 20,
                host_byte: if features.contains(F::MAPPABLE_PRIMARY_BUFFERS) { host_byte } else { 0 },
            },
        };
        let is_software = kind == AdapterKind::Software;
        let faults = Faults::of(&device, format!("gpu:{index} ({name})"), &ADVICE);
        #[cfg(unix)]
        super::shutdown::register(&device, &faults, is_software);
        Ok(OpenDevice {
            faults,
            index,
            name,
            is_software,
            total_bytes: adapter::memory(&adapter),
            timestamps: features.contains(F::TIMESTAMP_QUERY),
            device,
            queue,
            adapter: info,
            caps,
            rules,
            work: Arc::default(),
            idle: IdleQueue::default(),
            injected: InjectedFaults::default(),
            #[cfg(target_arch = "wasm32")]
            unsettled: Mutex::default(),
        })
    }

    /// Does it now, if nothing waits, or else behind what does.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn in_order<T>(&self, job: impl FnOnce() -> T) -> Ordered<T> {
        self.work.in_order(job)
    }

    /// Does it now, if nothing waits, or else behind what does.
    #[cfg(target_arch = "wasm32")]
    pub fn in_order<T: 'static>(&self, job: impl FnOnce() -> T + 'static) -> Ordered<T> {
        self.work.in_order(job)
    }

    /// Has whoever reads something next wait for that, and told if it went wrong.
    #[cfg(target_arch = "wasm32")]
    pub fn before_reading(&self, settling: impl Future<Output = Result<()>> + Send + 'static) {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).push_back(Box::pin(settling));
    }

    /// Waits for what a browser still has to say of what it was asked for; natively everything was said at once.
    pub async fn await_reports(&self) -> Result<()> {
        #[cfg(target_arch = "wasm32")]
        loop {
            let next = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(settling) = next else { break };
            settling.await?;
        }
        Ok(())
    }

    /// Gives the device something to do.
    pub fn submit(&self, commands: wgpu::CommandBuffer) -> wgpu::SubmissionIndex {
        #[cfg(unix)]
        super::shutdown::wait_at_the_end();
        count_submission();
        self.queue.submit([commands])
    }

    /// Has the device begin with what was written to it.
    pub fn flush(&self) {
        #[cfg(unix)]
        super::shutdown::wait_at_the_end();
        self.queue.submit([]);
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
