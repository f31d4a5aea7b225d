//! Large pages for large buffers: fewer misses of the address cache when a product or a map streams through them.

/// The size and alignment from which a buffer asks for large pages.
pub(super) const MIN_HUGE_BYTES: usize = 2 << 20;

/// Asks the system to back this memory with large pages. Whether it does changes nothing but speed.
#[cfg(target_os = "linux")]
pub(super) fn advise(data: *mut u8, bytes: usize) {
    unsafe extern "C" {
        /// Of the C library, which the standard library links on this system.
        fn madvise(address: *mut std::ffi::c_void, length: usize, advice: std::ffi::c_int)
        -> std::ffi::c_int;
    }
    const MADV_HUGEPAGE: std::ffi::c_int = 14;
    // SAFETY: the range was just allocated, and this advice does not change its contents. An error (an old
    // kernel) leaves everything as it was.
    unsafe { madvise(data.cast(), bytes, MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
pub(super) fn advise(_data: *mut u8, _bytes: usize) {}
