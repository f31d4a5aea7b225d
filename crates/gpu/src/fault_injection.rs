//! For tests: faults on demand, which a driver has once in a long while, and what a device was asked for and does by itself.

use crate::memory::pool::GpuBuffer;
use crate::runtime::context;
use std::sync::atomic::Ordering::Relaxed;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::{Arc, atomic::AtomicBool};
use volta_ir::buffer::Buffer;
use volta_ir::error::Result;

/// How many devices were opened so far, in all. For tests.
#[doc(hidden)]
pub fn devices_opened() -> u64 {
    context::GENERATIONS.load(Relaxed)
}

/// The bytes that the driver has given away for `gpu:index`, if it tells. For tests.
#[doc(hidden)]
pub fn device_bytes(index: usize) -> Result<Option<u64>> {
    let report = context::open(index)?.device.generate_allocator_report();
    Ok(report.map(|report| report.total_allocated_bytes))
}

/// Encodes the commands of one plan that waits for it, as is done where the device computes; false if none waits. For tests.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub fn encode_ahead(index: usize) -> Result<bool> {
    let context = context::open(index)?;
    Ok(context.idle.work_one(&context.device))
}

/// Becomes true when the device has done what `gpu:index` was asked for until now, and somebody has waited for that. For tests.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub fn watch_work(index: usize) -> Result<Arc<AtomicBool>> {
    let is_done = Arc::new(AtomicBool::new(false));
    let seen = is_done.clone();
    context::open(index)?.queue.on_submitted_work_done(move || seen.store(true, Relaxed));
    Ok(is_done)
}

/// Whether a buffer has been copied to the host before anybody asked for its values. For tests.
#[doc(hidden)]
pub fn has_prefetched_copy(buffer: &dyn Buffer) -> bool {
    GpuBuffer::of(buffer).readback.copy.lock().is_ok_and(|copy| copy.is_some())
}

/// Destroys the device of `gpu:index`, as if its driver had reset it. For tests.
#[doc(hidden)]
pub fn lose_device(index: usize) -> Result<()> {
    let context = context::open(index)?;
    context.device.destroy();
    // The loss is told when what was submitted is done with.
    let _ = context.device.poll(wgpu::PollType::wait_indefinitely());
    Ok(())
}

/// Lets `gpu:index` have no more than so many bytes, as if it were a smaller device. For tests.
#[doc(hidden)]
pub fn limit_memory(index: usize, bytes: u64) -> Result<()> {
    context::open(index)?.injected.memory.store(bytes, Relaxed);
    Ok(())
}

/// Spoils the next shader that `gpu:index` compiles. For tests.
#[doc(hidden)]
pub fn spoil_next_shader(index: usize) -> Result<()> {
    context::open(index)?.injected.bad_shader.store(true, Relaxed);
    Ok(())
}

/// Lets the next read from `gpu:index` fail when it is mapped. For tests.
#[doc(hidden)]
pub fn fail_next_map(index: usize) -> Result<()> {
    context::open(index)?.injected.bad_map.store(true, Relaxed);
    Ok(())
}

/// Lets the next run of a plan on `gpu:index` have commands that are not valid. For tests.
#[doc(hidden)]
pub fn fail_next_run(index: usize) -> Result<()> {
    context::open(index)?.injected.bad_run.store(true, Relaxed);
    Ok(())
}

/// Has the driver of `gpu:index` say that it is out of memory. For tests.
#[doc(hidden)]
pub fn report_out_of_memory(index: usize) -> Result<()> {
    context::open(index)?.faults.note(wgpu::Error::OutOfMemory { source: "no memory is left".into() });
    Ok(())
}
