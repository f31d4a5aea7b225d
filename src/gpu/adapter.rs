//! The GPUs of this machine, and which of them is meant.

use crate::error::{Error, ErrorKind, Result};
use std::sync::OnceLock;

/// What kind of device an adapter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdapterKind {
    /// A graphics card with memory of its own.
    Discrete,
    /// A GPU that shares the processor's memory.
    Integrated,
    /// A GPU lent to a virtual machine.
    Virtual,
    /// A driver that computes on the processor, such as llvmpipe. Taken only when asked for.
    Software,
    /// Unknown.
    Other,
}

/// An adapter with its limits and features, as [`adapters`] lists them.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// The name the driver gives it.
    pub name: String,
    /// What it is.
    pub kind: AdapterKind,
    /// The interface it is driven through: `Vulkan`, `Metal`, `Dx12` or `BrowserWebGpu`.
    pub backend: String,
    /// The driver and its version.
    pub driver: String,
    /// The largest piece of memory a kernel can see at once, in bytes.
    pub max_binding_bytes: u64,
    /// Buffers a kernel can see at once.
    pub max_buffers: u32,
    /// Threads in a workgroup.
    pub max_workgroup: u32,
    /// Bytes of memory that the threads of a workgroup share.
    pub workgroup_bytes: u32,
    /// Half precision in shaders.
    pub f16: bool,
    /// 64-bit integers in shaders.
    pub i64: bool,
    /// Operations between the threads of a subgroup.
    pub subgroups: bool,
    /// Cooperative matrices (tensor cores): f16 products with f32 sums.
    pub cooperative_matrices: bool,
    /// Times of kernels, measured on the device.
    pub timestamps: bool,
    /// The index `n` of `Device::Gpu(n)`; none for a software adapter that was not asked for.
    pub index: Option<usize>,
}

pub(super) fn instance() -> &'static wgpu::Instance {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    INSTANCE.get_or_init(|| {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN
            | wgpu::Backends::METAL
            | wgpu::Backends::DX12
            | wgpu::Backends::BROWSER_WEBGPU;
        // The shaders are validated in tests; the driver's own validation layers only slow things down.
        descriptor.flags = wgpu::InstanceFlags::empty();
        wgpu::Instance::new(descriptor)
    })
}

pub(super) fn kind(info: &wgpu::AdapterInfo) -> AdapterKind {
    match info.device_type {
        wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
        wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
        wgpu::DeviceType::VirtualGpu => AdapterKind::Virtual,
        wgpu::DeviceType::Cpu => AdapterKind::Software,
        wgpu::DeviceType::Other => AdapterKind::Other,
    }
}

/// The part of an adapter's name that `VOLTA_ADAPTER` asks for.
fn asked_for() -> Option<String> {
    std::env::var("VOLTA_ADAPTER").ok().filter(|name| !name.is_empty()).map(|name| name.to_lowercase())
}

/// All adapters, those with an index first, in its order: the one asked for, then the best real ones.
pub(super) async fn list() -> Vec<(Option<usize>, wgpu::Adapter)> {
    let mut all = instance().enumerate_adapters(wgpu::Backends::all()).await;
    let asked = asked_for();
    let is_asked = |a: &wgpu::Adapter| {
        asked.as_ref().is_some_and(|name| a.get_info().name.to_lowercase().contains(name))
    };
    all.sort_by_key(|a| (!is_asked(a), kind(&a.get_info()) as usize));
    let mut next = 0;
    let index = |a: &wgpu::Adapter, next: &mut usize| {
        let usable = is_asked(a) || kind(&a.get_info()) != AdapterKind::Software;
        // Asked for and not there is an error, never another adapter.
        let missing = asked.is_some() && *next == 0 && !is_asked(a);
        (usable && !missing).then(|| {
            *next += 1;
            *next - 1
        })
    };
    all.into_iter().map(|a| (index(&a, &mut next), a)).collect()
}

/// Every adapter of this machine. On the web, where finding them waits, use [`adapters_async`].
#[cfg(not(target_arch = "wasm32"))]
pub fn adapters() -> Vec<Adapter> {
    super::now(adapters_async())
}

/// Every adapter of this machine.
pub async fn adapters_async() -> Vec<Adapter> {
    list().await.into_iter().map(|(index, adapter)| describe(index, &adapter)).collect()
}

pub(super) fn has_cooperative(adapter: &wgpu::Adapter) -> bool {
    use wgpu::CooperativeScalarType::{F16, F32};
    adapter.features().contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX)
        && adapter
            .cooperative_matrix_properties()
            .iter()
            .any(|p| (p.m_size, p.n_size, p.k_size) == (16, 16, 16) && p.ab_type == F16 && p.cr_type == F32)
}

fn describe(index: Option<usize>, adapter: &wgpu::Adapter) -> Adapter {
    use wgpu::Features as F;
    let (info, limits, features) = (adapter.get_info(), adapter.limits(), adapter.features());
    Adapter {
        kind: kind(&info),
        backend: format!("{:?}", info.backend),
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_string(),
        name: info.name,
        max_binding_bytes: limits.max_storage_buffer_binding_size,
        max_buffers: limits.max_storage_buffers_per_shader_stage,
        max_workgroup: limits.max_compute_invocations_per_workgroup,
        workgroup_bytes: limits.max_compute_workgroup_storage_size,
        f16: features.contains(F::SHADER_F16),
        i64: features.contains(F::SHADER_INT64),
        subgroups: features.contains(F::SUBGROUP),
        cooperative_matrices: has_cooperative(adapter),
        timestamps: features.contains(F::TIMESTAMP_QUERY),
        index,
    }
}

/// The adapter that `gpu:index` means.
pub(super) async fn find(index: usize) -> Result<wgpu::Adapter> {
    let all = list().await;
    let names: Vec<String> = all.iter().map(|(_, a)| a.get_info().name).collect();
    let found = all.into_iter().find(|(i, _)| *i == Some(index)).map(|(_, a)| a);
    found.ok_or_else(|| Error::new(ErrorKind::Device, missing(index, &names)))
}

/// What to say when there is no such adapter.
fn missing(index: usize, names: &[String]) -> String {
    if let Some(name) = asked_for() {
        return format!(
            "no adapter's name contains {name:?}, which VOLTA_ADAPTER asks for; there are: {}",
            if names.is_empty() { "none".to_string() } else { names.join(", ") }
        );
    }
    if index > 0 {
        return format!(
            "there is no gpu:{index}; `volta::gpu::adapters()` lists the adapters of this machine"
        );
    }
    let mut message = format!("no GPU was found. {}", INSTALL);
    if let Some(software) = names.first() {
        message += &format!(
            " There is a software adapter ({software}): set VOLTA_ADAPTER to a part of its name to use it, slowly."
        );
    }
    message
}

#[cfg(target_os = "linux")]
const INSTALL: &str = "On Linux a GPU needs its Vulkan driver: mesa-vulkan-drivers for AMD and Intel, the \
                       proprietary driver (with libvulkan1) for NVIDIA; `vulkaninfo --summary` shows what is there.";
#[cfg(target_os = "windows")]
const INSTALL: &str = "On Windows install the GPU vendor's current driver (DirectX 12 or Vulkan).";
#[cfg(target_os = "macos")]
const INSTALL: &str = "On macOS any Mac with Metal works; inside a virtual machine there may be none.";
#[cfg(target_arch = "wasm32")]
const INSTALL: &str = "This browser has no WebGPU, or it is turned off.";
#[cfg(not(any(target_os = "linux", target_os = "windows", target_os = "macos", target_arch = "wasm32")))]
const INSTALL: &str = "Install a Vulkan driver for it.";
