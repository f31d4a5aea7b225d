//! The GPUs of this machine, and which of them is meant.

use crate::caps::AdapterKind;
use std::env::consts::{ARCH, OS};
use std::sync::{Mutex, OnceLock, PoisonError};
use volta_ir::error::{Error, ErrorKind, Result};

/// An adapter with its limits and features, as [`adapters`] lists them.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// The name the driver gives it; where a browser gives none, that it is the browser's.
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
    /// Operations between the threads of a subgroup. Kernels use them where all subgroups are of one size.
    pub subgroups: bool,
    /// Cooperative matrices (tensor cores): products of 16×16 halves with f32 sums.
    pub cooperative_matrices: bool,
    /// Times of kernels, measured on the device.
    pub timestamps: bool,
    /// The index `n` of `Device::Gpu(n)`; none for a software adapter that was not asked for.
    pub index: Option<usize>,
}

/// Which GPU is meant where there are several and none is asked for by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PowerPreference {
    /// Natively the fastest, in a browser the one that it takes by itself.
    #[default]
    Automatic,
    /// The one that draws the least power: in a laptop with two, the integrated one.
    LowPower,
    /// The fastest.
    HighPerformance,
}

static PREFERENCE: Mutex<PowerPreference> = Mutex::new(PowerPreference::Automatic);

/// Says which GPU those that are opened from now on are.
pub fn set_power_preference(preference: PowerPreference) {
    *PREFERENCE.lock().unwrap_or_else(PoisonError::into_inner) = preference;
}

fn power_preference() -> PowerPreference {
    *PREFERENCE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn instance() -> &'static wgpu::Instance {
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

pub(crate) fn kind(info: &wgpu::AdapterInfo) -> AdapterKind {
    match info.device_type {
        wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
        wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
        wgpu::DeviceType::VirtualGpu => AdapterKind::Virtual,
        wgpu::DeviceType::Cpu => AdapterKind::Software,
        wgpu::DeviceType::Other => AdapterKind::Other,
    }
}

/// What an adapter is called. Most browsers do not tell.
pub(crate) fn name(info: &wgpu::AdapterInfo) -> String {
    match (info.name.as_str(), kind(info)) {
        ("", AdapterKind::Software) => "the browser's software adapter".into(),
        ("", _) => "the browser's GPU".into(),
        (name, _) => name.into(),
    }
}

/// The part of an adapter's name that `VOLTA_ADAPTER` asks for.
pub(crate) fn asked_for() -> Option<String> {
    volta_ir::environment::values().adapter.clone()
}

/// What drivers answer when they are asked for adapters or devices, by one thread at a time: NVIDIA's was seen to crash where
/// several asked at once.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) async fn ask<F: Future>(question: impl FnOnce() -> F) -> F::Output {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    crate::now(question())
}

/// What the browser answers.
#[cfg(target_arch = "wasm32")]
pub(crate) async fn ask<F: Future>(question: impl FnOnce() -> F) -> F::Output {
    question().await
}

/// The adapters that there are.
#[cfg(not(target_arch = "wasm32"))]
async fn present(_: PowerPreference) -> Vec<wgpu::Adapter> {
    ask(|| instance().enumerate_adapters(wgpu::Backends::all())).await
}

/// The one adapter that the browser gives.
#[cfg(target_arch = "wasm32")]
async fn present(preference: PowerPreference) -> Vec<wgpu::Adapter> {
    let power_preference = match preference {
        PowerPreference::Automatic => wgpu::PowerPreference::None,
        PowerPreference::LowPower => wgpu::PowerPreference::LowPower,
        PowerPreference::HighPerformance => wgpu::PowerPreference::HighPerformance,
    };
    let options = wgpu::RequestAdapterOptions { power_preference, ..Default::default() };
    ask(|| instance().request_adapter(&options)).await.into_iter().collect()
}

/// All adapters, those with an index first, in its order: the one asked for, then the best real ones.
pub(crate) async fn list() -> Vec<(Option<usize>, wgpu::Adapter)> {
    let preference = power_preference();
    let all = present(preference).await;
    let known = |a: wgpu::Adapter| {
        let info = a.get_info();
        (kind(&info), info.name, a)
    };
    // A browser has one adapter and no variables that could ask for it: it has chosen already.
    let takes_software = cfg!(target_arch = "wasm32");
    let all =
        ranked(asked_for().as_deref(), takes_software, preference, all.into_iter().map(known).collect());
    repeated(volta_ir::environment::values().virtual_devices.unwrap_or(1), all)
}

/// Each adapter that can be used as so many devices, which follow each other. An adapter opens as often as it is asked to: each device
/// has memory and a queue of its own.
fn repeated<A: Clone>(times: usize, all: Vec<(Option<usize>, A)>) -> Vec<(Option<usize>, A)> {
    let devices = |(index, adapter): (Option<usize>, A)| {
        let indices = match index {
            Some(index) => (index * times..(index + 1) * times).map(Some).collect(),
            None => vec![None],
        };
        indices.into_iter().map(move |index| (index, adapter.clone()))
    };
    all.into_iter().flat_map(devices).collect()
}

/// Adapters by kind and name, in the order of [`list`].
fn ranked<A>(
    asked: Option<&str>,
    takes_software: bool,
    preference: PowerPreference,
    mut all: Vec<(AdapterKind, String, A)>,
) -> Vec<(Option<usize>, A)> {
    let is_asked = |name: &str| asked.is_some_and(|asked| name.to_lowercase().contains(asked));
    let saves_power =
        |kind: AdapterKind| preference == PowerPreference::LowPower && kind == AdapterKind::Integrated;
    all.sort_by_key(|(kind, name, _)| (!is_asked(name), !saves_power(*kind), *kind as usize));
    // Asked for and not there is an error, never another adapter.
    let none = asked.is_some() && !all.first().is_some_and(|(_, name, _)| is_asked(name));
    let mut indices = 0..;
    let index = |(kind, name, adapter): (AdapterKind, String, A)| {
        let usable = is_asked(&name) || takes_software || kind != AdapterKind::Software;
        ((usable && !none).then(|| indices.next()).flatten(), adapter)
    };
    all.into_iter().map(index).collect()
}

/// Every adapter of this machine. On the web, where finding them waits, use [`adapters_async`].
#[cfg(not(target_arch = "wasm32"))]
pub fn adapters() -> Vec<Adapter> {
    crate::now(adapters_async())
}

/// Every adapter of this machine.
pub async fn adapters_async() -> Vec<Adapter> {
    list().await.into_iter().map(|(index, adapter)| describe(index, &adapter)).collect()
}

pub(crate) fn has_cooperative(adapter: &wgpu::Adapter) -> bool {
    use wgpu::CooperativeScalarType::{F16, F32};
    adapter.features().contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX)
        && adapter
            .cooperative_matrix_properties()
            .iter()
            .any(|p| (p.m_size, p.n_size, p.k_size) == (16, 16, 16) && p.ab_type == F16 && p.cr_type == F32)
}

/// The bytes of memory that an adapter can use, if its driver tells. Drivers that compute on the processor say what they like.
pub(crate) fn memory(adapter: &wgpu::Adapter) -> Option<u64> {
    let kind = kind(&adapter.get_info());
    if kind == AdapterKind::Software {
        return None;
    }
    heap_bytes(adapter, kind).or_else(|| budget(adapter)).filter(|&bytes| bytes > 0)
}

/// The bytes of the heaps that Vulkan tells of: what a card has is its own, what other GPUs use is the host's in part.
#[cfg(any(target_os = "linux", target_os = "windows"))]
fn heap_bytes(adapter: &wgpu::Adapter, kind: AdapterKind) -> Option<u64> {
    let counts = |heap: &&Heap| kind != AdapterKind::Discrete || heap.is_own;
    Some(heaps(adapter)?.iter().filter(counts).map(|heap| heap.bytes).sum())
}

#[cfg(not(any(target_os = "linux", target_os = "windows")))]
fn heap_bytes(_: &wgpu::Adapter, _: AdapterKind) -> Option<u64> {
    None
}

/// The budget that DXGI gives to this process in the memory next to the adapter, when it is asked.
#[cfg(target_os = "windows")]
fn budget(adapter: &wgpu::Adapter) -> Option<u64> {
    // SAFETY: the adapter lives as long as this, and is only asked.
    let dx12 = unsafe { adapter.as_hal::<wgpu::hal::api::Dx12>() }?;
    // `DXGI_MEMORY_SEGMENT_GROUP_LOCAL` is 0.
    let (group, mut info) = (Default::default(), Default::default());
    // SAFETY: the adapter's first node is always there, and the answer has memory of its own.
    unsafe { dx12.as_raw().QueryVideoMemoryInfo(0, group, &mut info) }.ok()?;
    Some(info.Budget)
}

/// What Metal recommends to use at most.
#[cfg(target_vendor = "apple")]
fn budget(adapter: &wgpu::Adapter) -> Option<u64> {
    use objc2_metal::MTLDevice;
    // SAFETY: the adapter lives as long as this, and is only asked.
    let metal = unsafe { adapter.as_hal::<wgpu::hal::api::Metal>() }?;
    Some(metal.raw_device().recommendedMaxWorkingSetSize())
}

#[cfg(not(any(target_os = "windows", target_vendor = "apple")))]
fn budget(_: &wgpu::Adapter) -> Option<u64> {
    None
}

/// A memory that an adapter uses.
#[cfg(any(target_os = "linux", target_os = "windows"))]
struct Heap {
    bytes: u64,
    /// Whether it is the adapter's own.
    is_own: bool,
}

/// All of them, as Vulkan tells; wgpu does not.
#[cfg(any(target_os = "linux", target_os = "windows"))]
fn heaps(adapter: &wgpu::Adapter) -> Option<Vec<Heap>> {
    /// `VK_MEMORY_HEAP_DEVICE_LOCAL_BIT`.
    const DEVICE_LOCAL: u32 = 1;
    // SAFETY: the adapter lives as long as this, and is only asked.
    let vulkan = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }?;
    let instance = vulkan.shared_instance().raw_instance();
    // SAFETY: the physical device is one of this instance's, and a query needs nothing else.
    let memory = unsafe { instance.get_physical_device_memory_properties(vulkan.raw_physical_device()) };
    let heaps = memory.memory_heaps.iter().take(memory.memory_heap_count as usize);
    let heaps = heaps.map(|heap| Heap { bytes: heap.size, is_own: heap.flags.as_raw() & DEVICE_LOCAL != 0 });
    Some(heaps.collect())
}

fn describe(index: Option<usize>, adapter: &wgpu::Adapter) -> Adapter {
    use wgpu::Features as F;
    let (info, limits, features) = (adapter.get_info(), adapter.limits(), adapter.features());
    Adapter {
        kind: kind(&info),
        backend: format!("{:?}", info.backend),
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_string(),
        name: name(&info),
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
pub(crate) async fn find(index: usize) -> Result<wgpu::Adapter> {
    volta_ir::environment::check()?;
    let all = list().await;
    let names: Vec<String> = all.iter().map(|(_, a)| a.get_info().name).collect();
    let devices = all.iter().filter(|(index, _)| index.is_some()).count();
    let found = all.into_iter().find(|(i, _)| *i == Some(index)).map(|(_, a)| a);
    found
        .ok_or_else(|| Error::new(ErrorKind::Device, missing(asked_for().as_deref(), index, devices, &names)))
}

/// What to say when there is no such adapter, but so many devices.
fn missing(asked: Option<&str>, index: usize, devices: usize, names: &[String]) -> String {
    let (no_gpu, install) = ("no GPU was found.", install(OS, ARCH));
    if let Some(name) = asked
        && index == 0
    {
        let missing = format!("no adapter's name contains {name:?}, which VOLTA_ADAPTER asks for;");
        return if names.is_empty() {
            format!("{missing} there are none. {install}")
        } else {
            format!("{missing} there are: {}", names.join(", "))
        };
    }
    if index > 0 {
        let advice = match devices {
            _ if names.is_empty() => format!("{no_gpu} {install}"),
            0 => "`volta::gpu::adapters()` lists the adapters of this machine".to_string(),
            1 => "this machine has gpu:0 alone".to_string(),
            _ => format!("this machine has gpu:0 to gpu:{}", devices - 1),
        };
        return format!("there is no gpu:{index}; {advice}");
    }
    let mut message = format!("{no_gpu} {install}");
    if let Some(software) = names.first() {
        message += &format!(
            " There is a software adapter ({software}): set VOLTA_ADAPTER to a part of its name to use it, slowly."
        );
    }
    message
}

/// What a machine with this system and architecture needs for a GPU.
fn install(system: &str, architecture: &str) -> &'static str {
    match (architecture, system) {
        ("wasm32", _) => "This browser has no WebGPU, or it is turned off.",
        (_, "linux") => {
            "On Linux a GPU needs its Vulkan driver: mesa-vulkan-drivers for AMD and Intel, the proprietary driver (with \
             libvulkan1) for NVIDIA; `vulkaninfo --summary` shows what is there."
        }
        (_, "windows") => "On Windows install the GPU vendor's current driver (DirectX 12 or Vulkan).",
        (_, "macos") => "On macOS any Mac with Metal works; inside a virtual machine there may be none.",
        _ => "Install a Vulkan driver for it.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in order, each with its index.
    fn order(asked: Option<&str>) -> Vec<(&'static str, Option<usize>)> {
        order_where(false, PowerPreference::Automatic, asked)
    }

    fn order_where(
        takes_software: bool,
        preference: PowerPreference,
        asked: Option<&str>,
    ) -> Vec<(&'static str, Option<usize>)> {
        let all = [
            (AdapterKind::Software, "llvmpipe (LLVM 19)"),
            (AdapterKind::Integrated, "Intel Arc"),
            (AdapterKind::Discrete, "NVIDIA H200"),
        ];
        let all = all.map(|(kind, name)| (kind, name.to_string(), name)).to_vec();
        ranked(asked, takes_software, preference, all)
            .into_iter()
            .map(|(index, name)| (name, index))
            .collect()
    }

    #[test]
    fn the_best_real_adapter_is_the_first_and_a_software_one_none() {
        assert_eq!(
            order(None),
            [("NVIDIA H200", Some(0)), ("Intel Arc", Some(1)), ("llvmpipe (LLVM 19)", None)]
        );
    }

    #[test]
    fn an_adapter_may_count_as_several_devices() {
        let all = vec![(Some(0), "H200"), (Some(1), "Arc"), (None, "llvmpipe")];
        assert_eq!(repeated(1, all.clone()), all);
        let twice = repeated(2, all);
        assert_eq!(twice[..4], [(Some(0), "H200"), (Some(1), "H200"), (Some(2), "Arc"), (Some(3), "Arc")]);
        assert_eq!(twice[4..], [(None, "llvmpipe")]);
    }

    #[test]
    fn a_browser_s_software_adapter_is_one_to_open() {
        let any = PowerPreference::Automatic;
        assert_eq!(order_where(true, any, None)[2], ("llvmpipe (LLVM 19)", Some(2)));
        let only = vec![(AdapterKind::Software, "SwiftShader".to_string(), ())];
        assert_eq!(ranked(None, true, any, only.clone())[0].0, Some(0));
        assert_eq!(ranked(None, false, any, only)[0].0, None);
    }

    #[test]
    fn whoever_wants_to_save_power_gets_the_integrated_one_first() {
        let first = |preference, asked| order_where(false, preference, asked)[0];
        assert_eq!(first(PowerPreference::LowPower, None), ("Intel Arc", Some(0)));
        assert_eq!(first(PowerPreference::HighPerformance, None), ("NVIDIA H200", Some(0)));
        assert_eq!(first(PowerPreference::LowPower, Some("llvmpipe")), ("llvmpipe (LLVM 19)", Some(0)));
    }

    #[test]
    fn the_adapter_that_is_asked_for_comes_first_whatever_it_is() {
        let first = |asked| order(Some(asked))[0];
        assert_eq!(first("llvmpipe"), ("llvmpipe (LLVM 19)", Some(0)));
        assert_eq!(first("arc"), ("Intel Arc", Some(0)));
        assert_eq!(order(Some("llvmpipe"))[1], ("NVIDIA H200", Some(1)));
    }

    /// Wherever there is a Vulkan driver, software ones included.
    #[cfg(any(target_os = "linux", target_os = "windows"))]
    #[test]
    fn vulkan_tells_what_memory_an_adapter_has() {
        let all = crate::now(list());
        for (_, adapter) in all.iter().filter(|(_, a)| a.get_info().backend == wgpu::Backend::Vulkan) {
            let heaps = heaps(adapter).expect("a Vulkan adapter");
            assert!(heaps.iter().any(|heap| heap.bytes > 1 << 20), "{}", adapter.get_info().name);
            let is_software = kind(&adapter.get_info()) == AdapterKind::Software;
            assert_eq!(memory(adapter).is_none(), is_software, "{}", adapter.get_info().name);
        }
    }

    #[test]
    fn no_other_adapter_takes_the_place_of_one_that_is_missing() {
        assert!(order(Some("radeon")).iter().all(|(_, index)| index.is_none()));
        let message = missing(Some("radeon"), 0, 0, &["NVIDIA H200".into()]);
        assert!(message.contains("radeon") && message.contains("NVIDIA H200"), "{message}");
    }

    #[test]
    fn without_an_adapter_it_says_what_to_install_and_what_there_is() {
        assert!(missing(None, 0, 0, &[]).contains(install(OS, ARCH)));
        for (system, architecture, word) in [
            ("linux", "x86_64", "mesa-vulkan-drivers"),
            ("windows", "x86_64", "DirectX 12"),
            ("macos", "aarch64", "Metal"),
            ("unknown", "wasm32", "browser"),
            ("freebsd", "x86_64", "Vulkan"),
        ] {
            assert!(install(system, architecture).contains(word), "{system}");
        }
        let message = missing(None, 0, 0, &["llvmpipe".into()]);
        assert!(
            message.contains(install(OS, ARCH))
                && message.contains("llvmpipe")
                && message.contains("VOLTA_ADAPTER")
        );
        for (asked, index) in [(Some("llvmpipe"), 0), (None, 3)] {
            assert!(missing(asked, index, 0, &[]).contains(install(OS, ARCH)), "{asked:?}, {index}");
        }
        let message = missing(None, 3, 2, &["NVIDIA H200".into()]);
        assert!(
            message.contains("gpu:0 to gpu:1")
                && message.contains("gpu:3")
                && !message.contains(install(OS, ARCH)),
            "{message}"
        );
    }
}
