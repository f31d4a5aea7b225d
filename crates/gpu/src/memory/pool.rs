//! Memory of a GPU: buffers that return to a pool when they are dropped, and one arena for the values inside of
//! plans, which all plans share because they run one after the other.

use super::readback_prefetch::ReadbackHint;
use crate::device::context::Context;
use crate::device::device_errors::Scopes;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use volta_ir::buffer::Buffer;
use volta_ir::error::{Error, ErrorKind, Result};
use volta_ir::plan::size_class::SizeClasses;
use volta_ir::telemetry::{change_pool_bytes, see_used_bytes};

/// A buffer of the device with a number of its own, under which bind groups remember it.
pub(crate) struct PooledBuffer {
    pub buffer: wgpu::Buffer,
    pub id: u64,
    pub bytes: u64,
    /// Whether the device has no such memory after all, as a browser says later.
    is_refused: Arc<AtomicBool>,
    /// The bytes that its device has given away.
    allocated_bytes: Arc<AtomicU64>,
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        // Bind groups of plans that ran with it would keep it, though nobody asks for its number again. What the device is still
        // at work with stays until that is done.
        self.buffer.destroy();
        self.allocated_bytes.fetch_sub(self.bytes, Relaxed);
        change_pool_bytes(-(self.bytes as i64));
    }
}

static IDS: AtomicU64 = AtomicU64::new(1);

fn try_create(context: &Context, bytes: u64) -> Result<PooledBuffer> {
    if context.allocated_bytes.load(Relaxed).saturating_add(bytes) > context.injected.memory.load(Relaxed) {
        return Err(context.faults.out_of_memory(&allocating(bytes)));
    }
    let scopes = Scopes::new(&context.device);
    let is_refused = Arc::new(AtomicBool::new(false));
    let buffer = context.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    watch(context, scopes, bytes, &is_refused)?;
    context.allocated_bytes.fetch_add(bytes, Relaxed);
    change_pool_bytes(bytes as i64);
    Ok(PooledBuffer {
        buffer,
        id: IDS.fetch_add(1, Relaxed),
        bytes,
        is_refused,
        allocated_bytes: context.allocated_bytes.clone(),
    })
}

/// An error if the device did not give that memory.
#[cfg(not(target_arch = "wasm32"))]
fn watch(context: &Context, scopes: Scopes, bytes: u64, _: &Arc<AtomicBool>) -> Result<()> {
    match crate::now(scopes.close()) {
        // A loss is among what the device has noted.
        None if context.is_lost() => context.faults.check(|| allocating(bytes)),
        None => Ok(()),
        fault => Err(context.faults.failure(fault, &allocating(bytes))),
    }
}

/// A browser says later whether it gave that memory: before anything is read that may have been computed with it.
#[cfg(target_arch = "wasm32")]
fn watch(context: &Context, scopes: Scopes, bytes: u64, is_refused: &Arc<AtomicBool>) -> Result<()> {
    context.faults.check(|| allocating(bytes))?;
    let (closed, faults, is_refused) = (scopes.close(), context.faults.clone(), is_refused.clone());
    context.before_reading(async move {
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
pub(crate) fn create(context: &Context, bytes: u64) -> Result<PooledBuffer> {
    if context.allocated_bytes.load(Relaxed).saturating_add(bytes) > context.limit.load(Relaxed) {
        give_back_idle(context)?;
    }
    match try_create(context, bytes) {
        Err(error) if error.kind() == ErrorKind::Memory => {
            if give_back_idle(context)? {
                try_create(context, bytes)
            } else {
                Err(error)
            }
        }
        other => other,
    }
}

/// Gives back what lies idle in the pool. Whether there was anything.
fn give_back_idle(context: &Context) -> Result<bool> {
    let idle = std::mem::take(&mut locked(&context.pool).free);
    if idle.values().all(BTreeMap::is_empty) {
        return Ok(false);
    }
    drop(idle);
    // Memory is given back when the device is done with it.
    #[cfg(not(target_arch = "wasm32"))]
    super::transfer::wait(context)?;
    Ok(true)
}

/// Keeps nothing beyond so many bytes for later, from now on.
pub(crate) fn limit(context: &Context, bytes: Option<u64>) -> Result<()> {
    context.limit.store(bytes.unwrap_or(u64::MAX), Relaxed);
    if context.allocated_bytes.load(Relaxed) > context.limit.load(Relaxed) {
        context.arena.lock().unwrap_or_else(PoisonError::into_inner).blocks.clear();
        give_back_idle(context)?;
    }
    Ok(())
}

fn locked(pool: &Mutex<Pool>) -> MutexGuard<'_, Pool> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tensor's memory: one piece, or several where it is larger than a kernel may see at once.
pub(crate) struct GpuBuffer {
    pub pieces: Vec<PooledBuffer>,
    pub context: Arc<Context>,
    pub outlook: ReadbackHint,
    /// Why what was to be in it was never computed.
    failed: OnceLock<Error>,
}

impl Buffer for GpuBuffer {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_gone(&self) -> bool {
        self.context.is_lost()
    }
}

/// Free buffers by size, and by age: a step that asks for the same sizes in the same order as the one before it gets the
/// same buffers, for which there are bind groups already.
#[derive(Default)]
pub(crate) struct Pool {
    free: BTreeMap<u64, BTreeMap<u64, PooledBuffer>>,
}

/// Sizes of pieces of memory.
pub(crate) const SIZE_CLASSES: SizeClasses = SizeClasses { smallest: 256, largest_step: usize::MAX };

fn class(bytes: usize, block: usize) -> u64 {
    SIZE_CLASSES.round(bytes).min(block) as u64
}

impl GpuBuffer {
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<GpuBuffer> {
        let block = context.rules.block;
        let outlook = ReadbackHint::default();
        let (pieces, failed) = (Vec::with_capacity(1), OnceLock::new());
        let mut buffer = GpuBuffer { pieces, context: context.clone(), outlook, failed };
        let mut rest = bytes;
        loop {
            let piece = take(context, class(rest.min(block), block))?;
            see_used_bytes(context.live_bytes.fetch_add(piece.bytes, Relaxed) + piece.bytes);
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

fn take(context: &Context, bytes: u64) -> Result<PooledBuffer> {
    let idle = locked(&context.pool).free.get_mut(&bytes).and_then(BTreeMap::pop_first);
    idle.map_or_else(|| create(context, bytes), |(_, piece)| Ok(piece))
}

impl Drop for GpuBuffer {
    fn drop(&mut self) {
        // What a lost device gave is of no use.
        if self.context.is_lost() {
            return;
        }
        let mut pool = locked(&self.context.pool);
        for piece in self.pieces.drain(..) {
            self.context.live_bytes.fetch_sub(piece.bytes, Relaxed);
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
    /// Blocks of at least so many `bytes` each.
    pub fn reserve(&mut self, context: &Context, bytes: &[usize]) -> Result<&[Option<PooledBuffer>]> {
        if self.blocks.len() < bytes.len() {
            self.blocks.resize_with(bytes.len(), || None);
        }
        for (block, &bytes) in self.blocks.iter_mut().zip(bytes).filter(|(_, bytes)| **bytes > 0) {
            let wanted = class(bytes, context.rules.block);
            if block.as_ref().is_none_or(|piece| piece.bytes < wanted || piece.is_refused.load(Relaxed)) {
                // Let go of the smaller one first: both at once may be too much.
                *block = None;
                *block = Some(create(context, wanted)?);
            }
        }
        Ok(&self.blocks)
    }
}
