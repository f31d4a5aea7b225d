//! The executor on GPUs, through WebGPU: Vulkan, Metal, DirectX 12, and the browser.
//!
//! A plan's way to the device, by folder. Each uses only those above it:
//!
//! | folder | does |
//! |---|---|
//! | `caps` `dispatch` | what an adapter can do; what a dispatch is |
//! | `codegen` | generates WGSL from fused loops; links the functions that shaders use |
//! | `kernels` | hand-written templates: products and convolutions, attention, indexing and sorting |
//! | `chunking` | splits kernels whose tensors exceed the limits of a binding |
//! | `lower` | turns a plan into dispatches: chooses kernels, fuses small ones side by side or in series, binds memory |
//! | `device` | finds adapters, opens one, reports its errors, keeps its work in order |
//! | `memory` | buffers and their pool, transfers, read-backs that are prefetched, assertions that failed |
//! | `runtime` | compiles pipelines, binds memory, submits; caches on disk, profiles, guards, recompiles plans that run often |
//! | `tune` | measures variants of a kernel and keeps the fastest |
//! | `fault_injection` | faults on demand, for tests |
//! | `raw` | a device, buffers and tensors without the engine |

mod caps;
mod chunking;
mod codegen;
mod device;
mod dispatch;
mod fault_injection;
mod kernels;
mod lower;
mod memory;
mod raw;
mod runtime;
#[cfg(test)]
mod snapshots;
#[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "a tab cannot wait for what it measures"))]
mod tune;

pub use caps::AdapterKind;
#[cfg(not(target_arch = "wasm32"))]
pub use device::adapter::adapters;
pub use device::adapter::{Adapter, PowerPreference, adapters_async, set_power_preference};
#[cfg(target_arch = "wasm32")]
pub use device::work_queue::on_compile;
#[cfg(not(target_arch = "wasm32"))]
pub use tune::tune;
pub use tune::{Tuned, Tuning};

#[doc(hidden)]
pub use fault_injection::{
    device_bytes, devices_opened, fail_next_map, fail_next_run, has_prefetched_copy, limit_memory,
    lose_device, report_out_of_memory, spoil_next_shader,
};
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub use fault_injection::{encode_ahead, watch_work};
#[doc(hidden)]
pub use memory::readback_prefetch::MAX_UNREAD_RUNS;

pub use raw::{GpuBuffer, GpuDevice, GpuTensor, shaders};
use runtime::context::Context;
use runtime::tiering::TieredProgram;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use volta_ir::buffer::Storage;
use volta_ir::dtype::DType;
use volta_ir::environment::MAX_VIRTUAL_DEVICES;
use volta_ir::error::{Error, ErrorKind, Result};
use volta_ir::plan::Plan;
use volta_ir::plan::executor::{Executor, Program, Reading, Waiting};
use volta_ir::plan::memory::DeviceLimits;

/// Opens `gpu:index`, if it is not open.
pub fn connect(index: usize) -> Result<()> {
    runtime::context::open(index).map(drop)
}

/// Opens `gpu:index` where opening waits for the browser; natively a device opens when it is first used.
pub async fn open(index: usize) -> Result<()> {
    volta_ir::environment::check()?;
    runtime::context::open_async(index).await.map(drop)
}

/// The GPUs that are open, and were not lost.
pub fn in_use() -> Vec<usize> {
    let all = runtime::context::all_opened();
    all.iter().filter(|context| !context.is_lost()).map(|context| context.index).collect()
}

/// Natively what wgpu answers is there at once.
#[cfg(not(target_arch = "wasm32"))]
fn now<F: std::future::Future>(future: F) -> F::Output {
    let answer = volta_ir::wait::wait_for(std::pin::pin!(async { Ok(future.await) }));
    answer.expect("only a browser cannot wait")
}

struct Gpu(usize);

/// The executor of `gpu:index`.
pub fn executor(index: usize) -> Result<&'static dyn Executor> {
    static GPUS: [Gpu; MAX_VIRTUAL_DEVICES] = {
        let mut all = [const { Gpu(0) }; MAX_VIRTUAL_DEVICES];
        let mut k = 0;
        while k < all.len() {
            all[k] = Gpu(k);
            k += 1;
        }
        all
    };
    match GPUS.get(index) {
        Some(gpu) => Ok(gpu),
        None => Err(Error::new(ErrorKind::Device, format!("there is no gpu:{index}"))),
    }
}

impl Executor for Gpu {
    fn rules(&self) -> Result<DeviceLimits> {
        Ok(runtime::context::open(self.0)?.rules)
    }

    fn generation(&self) -> Result<u64> {
        let context = runtime::context::open(self.0)?;
        // Programs that were made before something was tuned are not what would be made now.
        let revision = context.tuned().revision;
        Ok(context.generation << 32 | revision)
    }

    fn is_async(&self) -> bool {
        true
    }

    fn has_fast_attention(&self) -> bool {
        runtime::context::open(self.0).map_or(true, |context| !context.caps.serial_workgroups)
    }

    fn unsupported_reason(&self, dtype: DType) -> Option<String> {
        let context = runtime::context::open(self.0).ok()?;
        let why = match dtype {
            DType::F64 => "use f32, or compute on the CPU",
            DType::I64 if !context.caps.i64 => "use i32",
            _ => return None,
        };
        Some(format!("gpu:{} ({}) does not compute in {dtype}: {why}", self.0, context.name))
    }

    fn upload(&self, dtype: DType, bytes: &[u8]) -> Result<Storage> {
        memory::transfer::upload(&runtime::context::open(self.0)?.memory, dtype, bytes)
    }

    fn allocate(&self, dtype: DType, count: usize) -> Result<Storage> {
        memory::transfer::allocate(&runtime::context::open(self.0)?.memory, dtype, count)
    }

    fn write(&self, storage: &Storage, dtype: DType, start: usize, bytes: &[u8]) -> Result<()> {
        memory::transfer::write(storage, dtype, start, bytes)
    }

    fn read(&self, storage: Storage, dtype: DType, elements: Range<usize>) -> Reading {
        Box::pin(memory::transfer::read(storage, dtype, elements))
    }

    fn memory(&self) -> Result<Option<u64>> {
        Ok(runtime::context::open(self.0)?.total_bytes)
    }

    fn used_bytes(&self) -> Result<u64> {
        Ok(runtime::context::open(self.0)?.live_bytes.load(Relaxed))
    }

    fn limit_memory(&self, bytes: Option<u64>) -> Result<()> {
        let context = runtime::context::open(self.0)?;
        memory::pool::limit(&context, bytes)
    }

    fn synchronize(&self) -> Waiting {
        match runtime::context::open(self.0) {
            Ok(context) => Box::pin(memory::transfer::synchronize(&context.memory)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn prepare(&self, plan: &Plan, guarded: bool) -> Result<Box<dyn Program>> {
        let context: Arc<Context> = runtime::context::open(self.0)?;
        Ok(Box::new(TieredProgram::new(context, plan, guarded)?))
    }
}
