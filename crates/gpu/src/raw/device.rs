//! A GPU that was opened, with the pipelines of its shaders.

use super::adapter;
use crate::device::device_errors::{ErrorHints, Faults};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use volta_ir::call::Origin;
use volta_ir::error::{Error, ErrorKind, Result};

const ADVICE: ErrorHints = ErrorHints {
    lost: "buffers on it are gone, open it again with GpuDevice::new",
    out_of_memory: "drop buffers that are not needed any more, or use smaller ones",
    patience: Duration::ZERO,
};

/// A GPU: its device and queue, and what is known of it.
pub struct GpuDevice {
    device: wgpu::Device,
    queue: wgpu::Queue,
    info: wgpu::AdapterInfo,
    pub(super) faults: Faults,
    /// By source.
    pipelines: Mutex<HashMap<&'static str, wgpu::ComputePipeline>>,
}

impl GpuDevice {
    /// Opens the adapter that `VOLTA_ADAPTER` names by a part of its name, or else the best real GPU
    /// (discrete, integrated, virtual), with the platform's own interface: Vulkan, Metal, DirectX 12 or
    /// WebGPU.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Device`] where there is none; the message says what to install. Software adapters are not
    /// taken unless `VOLTA_ADAPTER` names one.
    #[track_caller]
    pub fn new() -> impl Future<Output = Result<GpuDevice>> {
        let origin = Origin::here("GpuDevice::new");
        let failed = move |message| Error::at(ErrorKind::Device, message, origin);
        async move {
            let adapter = adapter::find().await.map_err(failed)?;
            let (device, queue) = adapter::open(&adapter).await.map_err(failed)?;
            let info = adapter.get_info();
            let faults = Faults::of(&device, info.name.clone(), &ADVICE);
            Ok(GpuDevice { device, queue, info, faults, pipelines: Mutex::default() })
        }
    }

    /// The adapter's name, backend, kind and driver.
    pub fn info(&self) -> &wgpu::AdapterInfo {
        &self.info
    }

    /// The device of wgpu.
    pub fn device(&self) -> &wgpu::Device {
        &self.device
    }

    /// The queue of wgpu.
    pub fn queue(&self) -> &wgpu::Queue {
        &self.queue
    }

    /// The pipeline of a shader with the entry point `main`, compiled the first time.
    pub(super) fn pipeline(&self, source: &'static str) -> wgpu::ComputePipeline {
        let mut pipelines = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        let compile = || {
            let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: None,
                source: wgpu::ShaderSource::Wgsl(source.into()),
            });
            self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: None,
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            })
        };
        pipelines.entry(source).or_insert_with(compile).clone()
    }

    /// Runs a shader over buffers, which are bound in order, in `groups` workgroups. More than fit into one
    /// dimension are spread over two, with some beyond the end.
    pub(super) fn run(&self, source: &'static str, buffers: &[&wgpu::Buffer], groups: u64) -> Result<()> {
        if groups == 0 {
            return Ok(());
        }
        let pipeline = self.pipeline(source);
        let entries: Vec<wgpu::BindGroupEntry> = buffers
            .iter()
            .enumerate()
            .map(|(k, buffer)| wgpu::BindGroupEntry {
                binding: k as u32,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let bound = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let across = groups.min(u64::from(self.device.limits().max_compute_workgroups_per_dimension));
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &bound, &[]);
            pass.dispatch_workgroups(across as u32, groups.div_ceil(across) as u32, 1);
        }
        self.queue.submit([encoder.finish()]);
        self.check(|| "running a shader".into())
    }

    /// What has gone wrong so far.
    pub(super) fn check(&self, doing: impl FnOnce() -> String) -> Result<()> {
        self.faults.ask(doing)
    }
}

impl fmt::Debug for GpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuDevice({}, {:?})", self.info.name, self.info.backend)
    }
}
