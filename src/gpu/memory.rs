//! Memory of a GPU: buffers that return to a pool when they are dropped, and one arena for the values inside of
//! plans, which all plans share because they run one after the other.

use super::context::Context;
use crate::error::Result;
use crate::graph::Buffer;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

/// A buffer of the device with a number of its own, under which bind groups remember it.
#[derive(Clone)]
pub(super) struct Piece {
    pub buffer: wgpu::Buffer,
    pub id: u64,
    pub bytes: u64,
}

static IDS: AtomicU64 = AtomicU64::new(1);

pub(super) fn create(context: &Context, bytes: u64) -> Result<Piece> {
    let buffer = context.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    context.check(&format!("allocating {bytes} bytes"))?;
    Ok(Piece { buffer, id: IDS.fetch_add(1, Ordering::Relaxed), bytes })
}

/// A tensor's memory: one piece, or several where it is larger than a kernel may see at once.
pub(super) struct GpuBuffer {
    pub pieces: Vec<Piece>,
    pub context: Arc<Context>,
}

impl Buffer for GpuBuffer {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Free buffers by size.
#[derive(Default)]
pub(super) struct Pool {
    free: BTreeMap<u64, Vec<Piece>>,
    bytes: u64,
}

/// Sizes are rounded so that nearly equal ones share memory: to an eighth of their power of two.
fn class(bytes: usize, block: usize) -> u64 {
    let bytes = bytes.max(256);
    let step = (bytes.next_power_of_two() / 16).max(256);
    (bytes.next_multiple_of(step).min(block)) as u64
}

impl GpuBuffer {
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<GpuBuffer> {
        let block = context.rules.block;
        let mut buffer = GpuBuffer { pieces: Vec::with_capacity(1), context: context.clone() };
        let mut rest = bytes;
        loop {
            buffer.pieces.push(take(context, class(rest.min(block), block))?);
            rest = rest.saturating_sub(block);
            if rest == 0 {
                return Ok(buffer);
            }
        }
    }

    pub fn of(buffer: &dyn Buffer) -> &GpuBuffer {
        buffer.as_any().downcast_ref().expect("a buffer of this executor")
    }
}

fn take(context: &Context, bytes: u64) -> Result<Piece> {
    let mut pool = context.pool.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(piece) = pool.free.get_mut(&bytes).and_then(Vec::pop) {
        return Ok(piece);
    }
    let piece = match create(context, bytes) {
        Ok(piece) => piece,
        // What lies idle may be what is missing.
        Err(_) if !context.is_lost() && pool.free.values().any(|free| !free.is_empty()) => {
            pool.free.clear();
            create(context, bytes)?
        }
        Err(error) => return Err(error),
    };
    pool.bytes += bytes;
    crate::engine::set_pool_bytes(pool.bytes);
    Ok(piece)
}

impl Drop for GpuBuffer {
    fn drop(&mut self) {
        let mut pool = self.context.pool.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in self.pieces.drain(..) {
            pool.free.entry(piece.bytes).or_default().push(piece);
        }
    }
}

/// Memory for what lives inside of plans.
#[derive(Default)]
pub(super) struct Arena {
    blocks: Vec<Piece>,
}

impl Arena {
    /// Blocks that hold `bytes` together; none but the last is smaller than a block.
    pub fn reserve(&mut self, context: &Context, bytes: usize) -> Result<&[Piece]> {
        let block = context.rules.block;
        let mut at = 0;
        while at * block < bytes {
            let wanted = class((bytes - at * block).min(block), block);
            match self.blocks.get(at) {
                Some(piece) if piece.bytes >= wanted => {}
                Some(_) => {
                    // Let go of the smaller one first: both at once may be too much.
                    self.blocks.truncate(at);
                    self.blocks.push(create(context, wanted)?);
                }
                None => self.blocks.push(create(context, wanted)?),
            }
            at += 1;
        }
        Ok(&self.blocks)
    }
}
