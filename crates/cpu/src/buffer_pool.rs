//! Memory for buffers, kept for the next step when one is dropped.

use super::huge_pages;
use std::alloc::{Layout, alloc, dealloc};
use std::any::Any;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use volta_ir::buffer::Buffer;
use volta_ir::error::{Error, ErrorKind, Result};
use volta_ir::plan::size_class::SizeClasses;
use volta_ir::telemetry::{change_pool_bytes, see_used_bytes};

/// A cache line, and the widest vector.
const ALIGNMENT: usize = 64;

/// What may lie free beyond the most that was ever in use when new memory is asked for: programs that alternate between
/// small plans find the memory of both.
const SPARE: usize = 64 << 20;

/// Whoever lends memory to a buffer; dropped with it.
pub type Owner = Box<dyn Any + Send + Sync>;

/// Memory of one size class, 64-byte aligned, or memory that somebody lends. Its contents are shared like those of an
/// `UnsafeCell`: the engine writes a buffer only while it is the only one to use it, and never one that is lent.
pub struct HostBuffer {
    data: NonNull<u8>,
    bytes: usize,
    /// `None` where the memory is the pool's.
    owner: Option<Owner>,
    /// Whether others who share it may write it.
    writable: bool,
    /// Whether others share it, or did.
    shown: AtomicBool,
}

// SAFETY: the memory belongs to the buffer; who may read or write it when is the engine's promise (see above).
unsafe impl Send for HostBuffer {}
// SAFETY: as for `Send`: there is no interior state beside the memory and a flag that is atomic.
unsafe impl Sync for HostBuffer {}

impl Buffer for HostBuffer {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_exported(&self) -> bool {
        self.is_foreign() || self.shown.load(Ordering::Relaxed)
    }

    fn is_foreign(&self) -> bool {
        self.owner.is_some()
    }
}

#[derive(Default)]
struct Pool {
    /// Free memory by size.
    free: BTreeMap<usize, Vec<FreeBlock>>,
    free_bytes: usize,
    used_bytes: usize,
    peak_used: usize,
    /// Bytes that are not to be exceeded by what is in use and what is kept for later.
    limit: Option<usize>,
}

/// Memory that nobody uses.
struct FreeBlock {
    data: NonNull<u8>,
    bytes: usize,
}

// SAFETY: free memory belongs to the pool alone.
unsafe impl Send for FreeBlock {}

impl FreeBlock {
    fn give_back(self) {
        // SAFETY: allocated with this layout, and nobody has it any more.
        unsafe { dealloc(self.data.as_ptr(), layout(self.bytes)) };
    }
}

static POOL: Mutex<Option<Pool>> = Mutex::new(None);

fn with_pool<R>(f: impl FnOnce(&mut Pool) -> R) -> R {
    let mut guard = POOL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let pool = guard.get_or_insert_default();
    let before = pool.free_bytes + pool.used_bytes;
    let result = f(pool);
    change_pool_bytes((pool.free_bytes + pool.used_bytes) as i64 - before as i64);
    result
}

/// Large memory also serves what is smaller, so that whole pages are enough.
pub(super) const SIZE_CLASSES: SizeClasses =
    SizeClasses { smallest: ALIGNMENT, largest_step: huge_pages::MIN_HUGE_BYTES };

fn class(bytes: usize) -> usize {
    SIZE_CLASSES.round(bytes)
}

/// The bytes that are in use.
pub(super) fn used_bytes() -> u64 {
    with_pool(|pool| pool.used_bytes as u64)
}

/// Keeps no free memory beyond so many bytes in all.
pub(super) fn limit(bytes: Option<u64>) {
    let released = with_pool(|pool| {
        pool.limit = bytes.map(|bytes| bytes as usize);
        pool.peak_used = pool.used_bytes;
        pool.release_down_to(pool.room(pool.free_bytes))
    });
    released.into_iter().for_each(FreeBlock::give_back);
}

fn layout(bytes: usize) -> Layout {
    let alignment = if bytes >= huge_pages::MIN_HUGE_BYTES { huge_pages::MIN_HUGE_BYTES } else { ALIGNMENT };
    Layout::from_size_align(bytes, alignment).expect("sizes were checked when the shape was made")
}

impl HostBuffer {
    fn owned(data: NonNull<u8>, bytes: usize) -> HostBuffer {
        HostBuffer { data, bytes, owner: None, writable: true, shown: AtomicBool::new(false) }
    }

    /// At least `bytes` of memory, with whatever was in it before.
    pub fn new(bytes: usize) -> Result<HostBuffer> {
        let wanted = class(bytes);
        let ((reused, released), used) = with_pool(|pool| (pool.take(wanted), pool.used_bytes));
        for piece in released {
            piece.give_back();
        }
        if let Some(FreeBlock { data, bytes }) = reused {
            see_used_bytes(used as u64);
            return Ok(HostBuffer::owned(data, bytes));
        }
        // SAFETY: the size is not zero.
        let Some(data) = NonNull::new(unsafe { alloc(layout(wanted)) }) else {
            with_pool(|pool| {
                pool.used_bytes -= wanted;
                pool.peak_used = pool.used_bytes;
            });
            return Err(Error::new(
                ErrorKind::Memory,
                format!("{wanted} bytes of memory could not be had: use smaller batches or free tensors"),
            ));
        };
        see_used_bytes(used as u64);
        if wanted >= huge_pages::MIN_HUGE_BYTES {
            huge_pages::advise(data.as_ptr(), wanted);
        }
        Ok(HostBuffer::owned(data, wanted))
    }

    /// Memory that `owner` lends for as long as it lives.
    ///
    /// # Safety
    /// What the kernels read there must be theirs to read until the owner is dropped.
    pub unsafe fn lent(data: NonNull<u8>, bytes: usize, writable: bool, owner: Owner) -> HostBuffer {
        HostBuffer { data, bytes, owner: Some(owner), writable, shown: AtomicBool::new(false) }
    }

    /// Others get its memory, and may write it whenever they like.
    pub fn show(&self) {
        self.shown.store(true, Ordering::Relaxed);
    }

    /// Whether others who share the memory may write it.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Where it begins.
    pub fn as_ptr(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    /// A buffer that is one of the CPU's.
    pub fn of(buffer: &dyn Buffer) -> &HostBuffer {
        buffer.as_any().downcast_ref().expect("a buffer of the CPU's")
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if self.owner.is_some() {
            return;
        }
        let released = with_pool(|pool| {
            pool.used_bytes -= self.bytes;
            pool.free.entry(self.bytes).or_default().push(FreeBlock { data: self.data, bytes: self.bytes });
            pool.free_bytes += self.bytes;
            pool.release_down_to(pool.room(pool.peak_used))
        });
        for piece in released {
            piece.give_back();
        }
    }
}

impl Pool {
    /// So many bytes, or what is left below the limit.
    fn room(&self, bytes: usize) -> usize {
        self.limit.map_or(bytes, |limit| bytes.min(limit.saturating_sub(self.used_bytes)))
    }

    /// A free piece for `wanted` bytes, or none after having made room for a new one: the pieces to give back to the
    /// system come with it.
    fn take(&mut self, wanted: usize) -> (Option<FreeBlock>, Vec<FreeBlock>) {
        // Under a limit everyone takes what was planned. Elsewhere the arenas of two plans differ; one that fits without using more than
        // ever serves both.
        let most = match self.limit.is_some() || wanted < huge_pages::MIN_HUGE_BYTES {
            true => wanted,
            false => (2 * wanted).min(self.peak_used.saturating_sub(self.used_bytes)).max(wanted),
        };
        let found = self.free.range(wanted..=most).next().map(|(&bytes, _)| bytes);
        let piece = found.and_then(|bytes| self.pop(bytes));
        self.used_bytes += piece.as_ref().map_or(wanted, |piece| piece.bytes);
        self.peak_used = self.peak_used.max(self.used_bytes);
        let released = match piece {
            Some(_) => Vec::new(),
            None => self.release_down_to(self.room((self.peak_used + SPARE).saturating_sub(self.used_bytes))),
        };
        (piece, released)
    }

    /// Takes free pieces out, the largest first, until no more than `most` bytes are free.
    fn release_down_to(&mut self, most: usize) -> Vec<FreeBlock> {
        let mut out = Vec::new();
        while self.free_bytes > most
            && let Some((&bytes, _)) = self.free.last_key_value()
        {
            out.extend(self.pop(bytes));
        }
        out
    }

    fn pop(&mut self, bytes: usize) -> Option<FreeBlock> {
        let list = self.free.get_mut(&bytes)?;
        let piece = list.pop();
        if list.is_empty() {
            self.free.remove(&bytes);
        }
        self.free_bytes -= piece.as_ref().map_or(0, |piece| piece.bytes);
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_close_above_and_memory_is_aligned() {
        for bytes in [huge_pages::MIN_HUGE_BYTES, 100 << 20, (1 << 32) + 1] {
            assert!(class(bytes) - bytes < huge_pages::MIN_HUGE_BYTES, "{bytes} became {}", class(bytes));
        }
        for bytes in [0, 1, 64, 65, 1000, 4097, 1 << 20, (1 << 20) + 1] {
            let c = class(bytes);
            assert!(c >= bytes && c <= (bytes + bytes / 8).max(64) + 64, "{bytes} became {c}");
            assert_eq!(HostBuffer::new(bytes).unwrap().as_ptr() as usize % ALIGNMENT, 0);
        }
    }

    #[test]
    fn memory_that_is_not_given_is_not_the_most_that_was_in_use() {
        let impossible = 1 << 60;
        let error = HostBuffer::new(impossible).err().expect("nobody has so much");
        assert_eq!(error.kind(), ErrorKind::Memory);
        assert!(volta_ir::telemetry::counters().peak_bytes < impossible as u64);
    }

    /// Memory that no step can reuse must not stay beside the memory of the next one.
    #[test]
    fn new_memory_takes_the_place_of_free_memory() {
        let mut pool = Pool::default();
        let mib = |n: usize| n << 20;
        let held = |pool: &Pool| pool.used_bytes + pool.free_bytes;
        let give = |pool: &mut Pool, bytes: usize| {
            pool.used_bytes -= bytes;
            let data = NonNull::dangling();
            pool.free.entry(bytes).or_default().push(FreeBlock { data, bytes });
            pool.free_bytes += bytes;
        };
        // An arena of 1000 MiB is free: one of 900 takes it whole, one of 400 does not.
        assert!(pool.take(mib(1000)).0.is_none());
        give(&mut pool, mib(1000));
        let (piece, released) = pool.take(mib(900));
        assert_eq!((piece.map(|piece| piece.bytes), released.len()), (Some(mib(1000)), 0));
        give(&mut pool, mib(1000));
        let (piece, released) = pool.take(mib(400));
        assert!(piece.is_none());
        assert_eq!(released.iter().map(|piece| piece.bytes).collect::<Vec<_>>(), [mib(1000)]);
        give(&mut pool, mib(400));
        // A larger one does not leave the smaller one beside it, apart from what is spare.
        assert!(pool.take(mib(1200)).0.is_none());
        assert!(held(&pool) <= mib(1200) + SPARE, "{} MiB are held", held(&pool) >> 20);
        // Small memory is taken from its own class alone.
        give(&mut pool, mib(1200));
        assert!(pool.take(1 << 10).0.is_none());
        give(&mut pool, 1 << 10);
        assert_eq!(pool.take(1 << 10).0.map(|piece| piece.bytes), Some(1 << 10));
        // Under a limit, neither does anything else take more than it asks for.
        pool.limit = Some(mib(4000));
        assert!(pool.take(mib(1000)).0.is_none());
        give(&mut pool, mib(1000));
        assert!(pool.take(mib(900)).0.is_none());
    }
}
