//! Running totals of what the engine has done.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static COMPILED: AtomicU64 = AtomicU64::new(0);
static REPLAYED: AtomicU64 = AtomicU64::new(0);
static KERNELS: AtomicU64 = AtomicU64::new(0);
static HOST_COPIES: AtomicU64 = AtomicU64::new(0);
static POOL_BYTES: AtomicU64 = AtomicU64::new(0);

/// Totals since the program started, of all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Plans compiled because their structure was new.
    pub plans_compiled: u64,
    /// Plans run again without compiling.
    pub plans_replayed: u64,
    /// Kernels run.
    pub kernels_run: u64,
    /// Tensors copied between the host and a device: uploads and reads.
    pub host_copies: u64,
    /// Bytes the memory pool holds now, in use and free.
    pub pool_bytes: u64,
}

/// The totals now.
pub fn counters() -> Counters {
    Counters {
        plans_compiled: COMPILED.load(Relaxed),
        plans_replayed: REPLAYED.load(Relaxed),
        kernels_run: KERNELS.load(Relaxed),
        host_copies: HOST_COPIES.load(Relaxed),
        pool_bytes: POOL_BYTES.load(Relaxed),
    }
}

pub(super) fn count_compile() {
    COMPILED.fetch_add(1, Relaxed);
}

pub(super) fn count_replay() {
    REPLAYED.fetch_add(1, Relaxed);
}

pub(crate) fn count_kernels(n: u64) {
    KERNELS.fetch_add(n, Relaxed);
}

pub(crate) fn count_host_copy() {
    HOST_COPIES.fetch_add(1, Relaxed);
}

pub(crate) fn set_pool_bytes(bytes: u64) {
    POOL_BYTES.store(bytes, Relaxed);
}
