//! Scratch memory that threads keep between calls.

use crate::huge_pages;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;

/// Cache-line aligned, uninitialised memory.
pub(crate) struct Buffer {
    data: *mut u8,
    bytes: usize,
}

const ALIGN: usize = 64;

thread_local! {
    /// Buffers this thread is not using at the moment. A stack, because a thread that waits for its
    /// tasks may meanwhile run a task of another product, which needs buffers of its own.
    static IDLE: RefCell<Vec<Buffer>> = const { RefCell::new(Vec::new()) };
}

impl Buffer {
    fn layout(bytes: usize) -> Layout {
        let alignment = if bytes >= huge_pages::MIN_HUGE_BYTES { huge_pages::MIN_HUGE_BYTES } else { ALIGN };
        Layout::from_size_align(bytes, alignment).expect("a buffer's size fits the address space")
    }

    fn new(bytes: usize) -> Buffer {
        // SAFETY: the size is not zero.
        let data = unsafe { alloc(Buffer::layout(bytes)) };
        if data.is_null() {
            handle_alloc_error(Buffer::layout(bytes));
        }
        if bytes >= huge_pages::MIN_HUGE_BYTES {
            huge_pages::advise(data, bytes);
        }
        Buffer { data, bytes }
    }

    pub fn pointer<T>(&self) -> *mut T {
        self.data.cast()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.data, Buffer::layout(self.bytes)) };
    }
}

/// Runs `work` with scratch memory for `len` elements, aligned to cache lines, contents undefined.
pub(crate) fn with_scratch<T, R>(len: usize, work: impl FnOnce(*mut T) -> R) -> R {
    let bytes = (len * size_of::<T>()).max(ALIGN);
    let buffer = IDLE.with_borrow_mut(|idle| {
        // The smallest that is large enough; otherwise the smallest of all makes way for a larger.
        let fit = (0..idle.len()).filter(|&i| idle[i].bytes >= bytes).min_by_key(|&i| idle[i].bytes);
        match fit {
            Some(i) => Some(idle.swap_remove(i)),
            None => {
                let smallest = (0..idle.len()).min_by_key(|&i| idle[i].bytes);
                if let Some(i) = smallest {
                    drop(idle.swap_remove(i));
                }
                None
            }
        }
    });
    let buffer = buffer.unwrap_or_else(|| Buffer::new(bytes.next_power_of_two()));
    let result = work(buffer.pointer());
    // A thread that is shutting down has no list any more; the buffer is freed then.
    let _ = IDLE.try_with(|idle| idle.borrow_mut().push(buffer));
    result
}
