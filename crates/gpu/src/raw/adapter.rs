//! The adapter of the face: the one that `gpu:0` means.

use crate::device::adapter;

/// The adapter, or why there is none.
pub(super) async fn find() -> Result<wgpu::Adapter, String> {
    let missing =
        |error: volta_ir::error::Error| format!("No suitable GPU adapter found: {}", error.message());
    adapter::find(0).await.map_err(missing)
}

/// Opens an adapter with all that it can hold.
pub(super) async fn open(gpu: &wgpu::Adapter) -> Result<(wgpu::Device, wgpu::Queue), String> {
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("volta"),
        required_features: wgpu::Features::empty(),
        required_limits: gpu.limits(),
        experimental_features: wgpu::ExperimentalFeatures::disabled(),
        memory_hints: wgpu::MemoryHints::Performance,
        trace: wgpu::Trace::Off,
    };
    adapter::ask(|| gpu.request_device(&descriptor))
        .await
        .map_err(|error| format!("{} could not be opened: {error}", gpu.get_info().name))
}
