//! Memory of a GPU: buffers that return to a pool when they are dropped, and one arena for the values inside of
//! plans, which all plans share because they run one after the other.

use super::device_memory::DeviceMemory;
use super::readback_prefetch::ReadbackHint;
use crate::caps::SIZE_CLASSES;
use crate::device::device_errors::Scopes;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use volta_ir::buffer::Buffer;
use volta_ir::error::{Error, ErrorKind, Result};
use volta_ir::telemetry::{change_pool_bytes, see_used_bytes};

/// A buffer of the device with a number of its own, under which bind groups remember it.
pub(crate) struct PooledBuffer {
    pub buffer: wgpu::Buffer,
    pub id: u64,
    pub bytes: u64,
    /// Whether the device has no such memory after all, as a browser says later.
    is_refused: Arc<AtomicBool>,
    /// Whether it lies in the host's memory.
    is_on_host: bool,
    /// The bytes that its device has given away.
    allocated_bytes: Arc<AtomicU64>,
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        // Bind groups of plans that ran with it would keep it, though nobody asks for its number again. What the device is still
        // at work with stays until that is done.
        self.buffer.destroy();
        if self.is_on_host {
            return;
        }
        self.allocated_bytes.fetch_sub(self.bytes, Relaxed);
        change_pool_bytes(-(self.bytes as i64));
    }
}

static IDS: AtomicU64 = AtomicU64::new(1);

/// What buffers of tensors and arenas are for.
const USAGE: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

fn try_create(gpu: &DeviceMemory, bytes: u64) -> Result<PooledBuffer> {
    if gpu.allocated_bytes.load(Relaxed).saturating_add(bytes) > gpu.injected.memory.load(Relaxed) {
        return Err(gpu.faults.out_of_memory(&allocating(bytes)));
    }
    let scopes = Scopes::new(&gpu.device);
    let is_refused = Arc::new(AtomicBool::new(false));
    let buffer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage: USAGE,
        mapped_at_creation: false,
    });
    watch(gpu, scopes, bytes, &is_refused)?;
    gpu.allocated_bytes.fetch_add(bytes, Relaxed);
    change_pool_bytes(bytes as i64);
    Ok(PooledBuffer {
        buffer,
        id: IDS.fetch_add(1, Relaxed),
        bytes,
        is_refused,
        is_on_host: false,
        allocated_bytes: gpu.allocated_bytes.clone(),
    })
}

/// A buffer in the host's memory that kernels see as they see the device's. Drivers put what the host may read there: nobody maps it. It
/// counts as none of the device's bytes.
fn create_on_host(gpu: &DeviceMemory, bytes: u64) -> Result<PooledBuffer> {
    let scopes = Scopes::new(&gpu.device);
    let is_refused = Arc::new(AtomicBool::new(false));
    let buffer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("values moved to the host"),
        size: bytes,
        usage: USAGE | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    watch(gpu, scopes, bytes, &is_refused)?;
    let (id, allocated_bytes) = (IDS.fetch_add(1, Relaxed), Arc::default());
    Ok(PooledBuffer { buffer, id, bytes, is_refused, is_on_host: true, allocated_bytes })
}

/// An error if the device did not give that memory.
#[cfg(not(target_arch = "wasm32"))]
fn watch(gpu: &DeviceMemory, scopes: Scopes, bytes: u64, _: &Arc<AtomicBool>) -> Result<()> {
    match crate::now(scopes.close()) {
        // A loss is among what the device has noted.
        None if gpu.is_lost() => gpu.faults.check(|| allocating(bytes)),
        None => Ok(()),
        fault => Err(gpu.faults.failure(fault, &allocating(bytes))),
    }
}

/// A browser says later whether it gave that memory: before anything is read that may have been computed with it.
#[cfg(target_arch = "wasm32")]
fn watch(gpu: &DeviceMemory, scopes: Scopes, bytes: u64, is_refused: &Arc<AtomicBool>) -> Result<()> {
    gpu.faults.check(|| allocating(bytes))?;
    let (closed, faults, is_refused) = (scopes.close(), gpu.faults.clone(), is_refused.clone());
    gpu.before_reading(async move {
        let Some(fault) = closed.await else { return Ok(()) };
        is_refused.store(true, Relaxed);
        // Whatever else went wrong did so for want of it.
        faults.forget();
        Err(faults.failure(Some(fault), &allocating(bytes)))
    });
    Ok(())
}

fn allocating(bytes: u64) -> String {
    format!("allocating {bytes} bytes")
}

/// A new buffer. Where memory is missing, what lies idle in the pool is given back first.
pub(crate) fn create(gpu: &DeviceMemory, bytes: u64) -> Result<PooledBuffer> {
    if gpu.allocated_bytes.load(Relaxed).saturating_add(bytes) > gpu.limit.load(Relaxed) {
        give_back_idle(gpu)?;
    }
    match try_create(gpu, bytes) {
        Err(error) if error.kind() == ErrorKind::Memory => {
            if give_back_idle(gpu)? {
                try_create(gpu, bytes)
            } else {
                Err(error)
            }
        }
        other => other,
    }
}

/// Gives back what lies idle in the pool. Whether there was anything.
fn give_back_idle(gpu: &DeviceMemory) -> Result<bool> {
    let idle = std::mem::take(&mut locked(&gpu.pool).free);
    if idle.values().all(BTreeMap::is_empty) {
        return Ok(false);
    }
    drop(idle);
    // Memory is given back when the device is done with it.
    #[cfg(not(target_arch = "wasm32"))]
    super::transfer::wait(gpu)?;
    Ok(true)
}

/// Keeps nothing beyond so many bytes for later, from now on.
pub(crate) fn limit(gpu: &DeviceMemory, bytes: Option<u64>) -> Result<()> {
    gpu.limit.store(bytes.unwrap_or(u64::MAX), Relaxed);
    if gpu.allocated_bytes.load(Relaxed) > gpu.limit.load(Relaxed) {
        gpu.arena.lock().unwrap_or_else(PoisonError::into_inner).blocks.clear();
        give_back_idle(gpu)?;
    }
    Ok(())
}

fn locked(pool: &Mutex<Pool>) -> MutexGuard<'_, Pool> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tensor's memory: one piece, or several where it is larger than a kernel may see at once.
pub(crate) struct GpuBuffer {
    pub pieces: Vec<PooledBuffer>,
    pub gpu: Arc<DeviceMemory>,
    pub readback: ReadbackHint,
    /// Why what was to be in it was never computed.
    failed: OnceLock<Error>,
}

impl Buffer for GpuBuffer {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_gone(&self) -> bool {
        self.gpu.is_lost()
    }
}

/// Free buffers by size, and by age: a step that asks for the same sizes in the same order as the one before it gets the
/// same buffers, for which there are bind groups already.
#[derive(Default)]
pub(crate) struct Pool {
    free: BTreeMap<u64, BTreeMap<u64, PooledBuffer>>,
}

fn class(bytes: usize, block: usize) -> u64 {
    SIZE_CLASSES.round(bytes).min(block) as u64
}

impl GpuBuffer {
    pub fn new(gpu: &Arc<DeviceMemory>, bytes: usize) -> Result<GpuBuffer> {
        let block = gpu.rules.block;
        let readback = ReadbackHint::default();
        let (pieces, failed) = (Vec::with_capacity(1), OnceLock::new());
        let mut buffer = GpuBuffer { pieces, gpu: gpu.clone(), readback, failed };
        let mut rest = bytes;
        loop {
            let piece = take(gpu, class(rest.min(block), block))?;
            see_used_bytes(gpu.live_bytes.fetch_add(piece.bytes, Relaxed) + piece.bytes);
            buffer.pieces.push(piece);
            rest = rest.saturating_sub(block);
            if rest == 0 {
                return Ok(buffer);
            }
        }
    }

    /// Says why what is to be in it will not be.
    #[cfg(target_arch = "wasm32")]
    pub fn fail(&self, error: &Error) {
        let _ = self.failed.set(error.clone());
    }

    /// An error if what is to be in it was never computed.
    pub fn check(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    pub fn of(buffer: &dyn Buffer) -> &GpuBuffer {
        buffer.as_any().downcast_ref().expect("a buffer of this executor")
    }
}

fn take(gpu: &DeviceMemory, bytes: u64) -> Result<PooledBuffer> {
    let idle = locked(&gpu.pool).free.get_mut(&bytes).and_then(BTreeMap::pop_first);
    idle.map_or_else(|| create(gpu, bytes), |(_, piece)| Ok(piece))
}

impl Drop for GpuBuffer {
    fn drop(&mut self) {
        // What a lost device gave is of no use.
        if self.gpu.is_lost() {
            return;
        }
        let mut pool = locked(&self.gpu.pool);
        for piece in self.pieces.drain(..) {
            self.gpu.live_bytes.fetch_sub(piece.bytes, Relaxed);
            if !piece.is_refused.load(Relaxed) {
                pool.free.entry(piece.bytes).or_default().insert(piece.id, piece);
            }
        }
    }
}

/// Memory for what lives inside of plans.
#[derive(Default)]
pub(crate) struct Arena {
    /// None where no plan needed one yet.
    blocks: Vec<Option<PooledBuffer>>,
}

impl Arena {
    /// Blocks of at least so many `bytes` each, and of so many in the `host`'s memory.
    pub fn reserve(
        &mut self,
        gpu: &DeviceMemory,
        bytes: &[usize],
        host: &[usize],
    ) -> Result<&[Option<PooledBuffer>]> {
        let count = bytes.len().max(host.len());
        if self.blocks.len() < count {
            self.blocks.resize_with(count, || None);
        }
        for (block, &bytes) in self.blocks.iter_mut().zip(host).filter(|(_, bytes)| **bytes > 0) {
            if block.as_ref().is_none_or(|piece| piece.bytes < bytes as u64) {
                *block = None;
                *block = Some(create_on_host(gpu, class(bytes, gpu.rules.block))?);
            }
        }
        self.free_what_is_too_much(gpu, bytes)?;
        for (block, &bytes) in self.blocks.iter_mut().zip(bytes).filter(|(_, bytes)| **bytes > 0) {
            let wanted = class(bytes, gpu.rules.block);
            if block.as_ref().is_none_or(|piece| piece.bytes < wanted || piece.is_refused.load(Relaxed)) {
                // Let go of the smaller one first: both at once may be too much.
                *block = None;
                *block = Some(create(gpu, wanted)?);
            }
        }
        Ok(&self.blocks)
    }

    /// Where there is a limit, and the blocks of plans that ran before and those that this one needs would exceed it, lets go of those
    /// that are of no use to it.
    fn free_what_is_too_much(&mut self, gpu: &DeviceMemory, bytes: &[usize]) -> Result<()> {
        let limit = gpu.limit.load(Relaxed);
        let has = |block: &Option<PooledBuffer>| block.as_ref().map_or(0, |piece| piece.bytes);
        let wanted = |k: usize| bytes.get(k).map_or(0, |&bytes| class(bytes, gpu.rules.block));
        let more: u64 =
            self.blocks.iter().enumerate().map(|(k, block)| wanted(k).saturating_sub(has(block))).sum();
        if more == 0 || gpu.allocated_bytes.load(Relaxed).saturating_add(more) <= limit {
            return Ok(());
        }
        let is_idle = |k: usize| bytes.get(k).is_none_or(|bytes| *bytes == 0);
        let idle = |(k, block): (usize, &mut Option<PooledBuffer>)| {
            block.take_if(|piece| is_idle(k) && !piece.is_on_host)
        };
        if self.blocks.iter_mut().enumerate().filter_map(idle).count() == 0 {
            return Ok(());
        }
        #[cfg(not(target_arch = "wasm32"))]
        super::transfer::wait(gpu)?;
        Ok(())
    }
}
