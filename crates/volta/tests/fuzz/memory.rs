//! An allocator that counts what each thread has: what a reader takes is bounded, and tells how much it did.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// No reader may take as much, whatever a file says: the machine would suffer.
const MAX_LIVE_BYTES: usize = 4 << 30;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    static TOTAL: Cell<usize> = const { Cell::new(0) };
}

/// Whether this thread may have so many bytes more; they are counted.
fn grow(bytes: usize) -> bool {
    // Where the thread ends there is nothing to count any more.
    LIVE.try_with(|live| {
        let now = live.get().saturating_add(bytes);
        if now > MAX_LIVE_BYTES {
            return false;
        }
        live.set(now);
        PEAK.with(|peak| peak.set(peak.get().max(now)));
        TOTAL.with(|total| total.set(total.get().saturating_add(bytes)));
        true
    })
    .unwrap_or(true)
}

fn shrink(bytes: usize) {
    let _ = LIVE.try_with(|live| live.set(live.get().saturating_sub(bytes)));
}

// SAFETY: all work is the system's allocator's; null is what it may give, too.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !grow(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !grow(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !grow(size) {
            return std::ptr::null_mut();
        }
        shrink(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// What some work on this thread took.
pub struct Taken {
    /// The most bytes at a time.
    pub peak: usize,
    /// All bytes that were asked for, one after the other: a measure of the work that no other process disturbs.
    pub total: usize,
}

pub fn measured<T>(work: impl FnOnce() -> T) -> (T, Taken) {
    let (live, total) = (LIVE.get(), TOTAL.get());
    PEAK.set(live);
    let result = work();
    (result, Taken { peak: PEAK.get() - live, total: TOTAL.get() - total })
}
