//! Memory for buffers, kept for the next step when one is dropped.

use super::huge;
use crate::engine::change_pool_bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Buffer;
use std::alloc::{Layout, alloc, dealloc};
use std::any::Any;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Mutex;

/// A cache line, and the widest vector.
const ALIGNMENT: usize = 64;

/// Whoever lends memory to a buffer; dropped with it.
pub(crate) type Owner = Box<dyn Any + Send + Sync>;

/// Memory of one size class, 64-byte aligned, or memory that somebody lends. Its contents are shared like those of an
/// `UnsafeCell`: the engine writes a buffer only while it is the only one to use it, and never one that is lent.
pub(crate) struct HostBuffer {
    data: NonNull<u8>,
    bytes: usize,
    /// `None` where the memory is the pool's.
    owner: Option<Owner>,
    /// Whether others who share it may write it.
    writable: bool,
}

// SAFETY: the memory belongs to the buffer; who may read or write it when is the engine's promise (see above).
unsafe impl Send for HostBuffer {}
// SAFETY: as for `Send`: there is no interior state beside the memory.
unsafe impl Sync for HostBuffer {}

impl Buffer for HostBuffer {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_foreign(&self) -> bool {
        self.owner.is_some()
    }
}

#[derive(Default)]
struct Pool {
    /// Free memory by size.
    free: BTreeMap<usize, Vec<Free>>,
    free_bytes: usize,
    used_bytes: usize,
    peak_used: usize,
}

struct Free(NonNull<u8>);
// SAFETY: free memory belongs to the pool alone.
unsafe impl Send for Free {}

static POOL: Mutex<Option<Pool>> = Mutex::new(None);

fn with_pool<R>(f: impl FnOnce(&mut Pool) -> R) -> R {
    let mut guard = POOL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let pool = guard.get_or_insert_default();
    let before = pool.free_bytes + pool.used_bytes;
    let result = f(pool);
    change_pool_bytes((pool.free_bytes + pool.used_bytes) as i64 - before as i64);
    result
}

/// Sizes are rounded so that nearly equal ones share memory: to a sixteenth of their power of two.
fn class(bytes: usize) -> usize {
    let bytes = bytes.max(ALIGNMENT);
    let step = (bytes.next_power_of_two() / 16).max(ALIGNMENT);
    bytes.next_multiple_of(step)
}

fn layout(bytes: usize) -> Layout {
    let alignment = if bytes >= huge::LARGE { huge::LARGE } else { ALIGNMENT };
    Layout::from_size_align(bytes, alignment).expect("sizes were checked when the shape was made")
}

impl HostBuffer {
    /// At least `bytes` of memory, with whatever was in it before.
    pub fn new(bytes: usize) -> Result<HostBuffer> {
        let bytes = class(bytes);
        let reused = with_pool(|pool| {
            pool.used_bytes += bytes;
            pool.peak_used = pool.peak_used.max(pool.used_bytes);
            let found = pool.free.get_mut(&bytes).and_then(Vec::pop);
            if found.is_some() {
                pool.free_bytes -= bytes;
            }
            found
        });
        let data = match reused {
            Some(Free(data)) => data,
            // SAFETY: the size is not zero.
            None => match NonNull::new(unsafe { alloc(layout(bytes)) }) {
                Some(data) => {
                    if bytes >= huge::LARGE {
                        huge::advise(data.as_ptr(), bytes);
                    }
                    data
                }
                None => {
                    with_pool(|pool| pool.used_bytes -= bytes);
                    return Err(Error::new(
                        ErrorKind::Memory,
                        format!(
                            "{bytes} bytes of memory could not be had: use smaller batches or free tensors"
                        ),
                    ));
                }
            },
        };
        Ok(HostBuffer { data, bytes, owner: None, writable: true })
    }

    /// Memory that `owner` lends for as long as it lives.
    ///
    /// # Safety
    /// What the kernels read there must be theirs to read until the owner is dropped.
    pub unsafe fn lent(data: NonNull<u8>, bytes: usize, writable: bool, owner: Owner) -> HostBuffer {
        HostBuffer { data, bytes, owner: Some(owner), writable }
    }

    /// Whether others who share the memory may write it.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.data.as_ptr()
    }

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
            pool.free.entry(self.bytes).or_default().push(Free(self.data));
            pool.free_bytes += self.bytes;
            pool.surplus()
        });
        for (data, bytes) in released {
            // SAFETY: allocated with this layout, and nobody has it any more.
            unsafe { dealloc(data.as_ptr(), layout(bytes)) };
        }
    }
}

impl Pool {
    /// Free memory beyond what was ever in use at once goes back to the system, the largest first.
    fn surplus(&mut self) -> Vec<(NonNull<u8>, usize)> {
        let mut out = Vec::new();
        while self.free_bytes > self.peak_used {
            let Some((&bytes, list)) = self.free.iter_mut().next_back() else { break };
            if let Some(Free(data)) = list.pop() {
                out.push((data, bytes));
                self.free_bytes -= bytes;
            }
            if list.is_empty() {
                self.free.remove(&bytes);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_close_above_and_memory_is_aligned() {
        for bytes in [0, 1, 64, 65, 1000, 4097, 1 << 20, (1 << 20) + 1] {
            let c = class(bytes);
            assert!(c >= bytes && c <= (bytes + bytes / 8).max(64) + 64, "{bytes} became {c}");
            assert_eq!(HostBuffer::new(bytes).unwrap().as_ptr() as usize % ALIGNMENT, 0);
        }
    }
}
