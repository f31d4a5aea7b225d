//! Running totals of what the engine has done.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

static COMPILED: AtomicU64 = AtomicU64::new(0);
static REPLAYED: AtomicU64 = AtomicU64::new(0);
static KERNELS: AtomicU64 = AtomicU64::new(0);
static UPLOADS: AtomicU64 = AtomicU64::new(0);
static READS: AtomicU64 = AtomicU64::new(0);
static SUBMISSIONS: AtomicU64 = AtomicU64::new(0);
static BIND_GROUPS: AtomicU64 = AtomicU64::new(0);
static SHADERS: AtomicU64 = AtomicU64::new(0);
static POOL_BYTES: AtomicI64 = AtomicI64::new(0);
static USED_BYTES: AtomicU64 = AtomicU64::new(0);
static PEAK_BYTES: AtomicU64 = AtomicU64::new(0);

/// Totals since the program started, of all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Plans compiled because their structure was new.
    pub plans_compiled: u64,
    /// Plans run again without compiling.
    pub plans_replayed: u64,
    /// Kernels run.
    pub kernels_run: u64,
    /// Copies from the host to a device: tensors made of the program's own numbers.
    pub uploads: u64,
    /// Copies from a device to the host: values that were read, and the findings of guards and profiles.
    pub reads: u64,
    /// Submissions to GPUs by the engine: one for a plan, several for a long one, and one for a copy to the host.
    pub submissions: u64,
    /// Bind groups made for plans on GPUs: a plan that runs again with the same memory needs no new ones.
    pub bind_groups: u64,
    /// Shaders compiled for GPUs, those included that a plan gets when it has run often.
    pub shaders_compiled: u64,
    /// Bytes that the devices' memory pools hold now, in use and free.
    pub pool_bytes: u64,
    /// Bytes that were in use by tensors and inside of a plan when a device last took some.
    pub used_bytes: u64,
    /// The most bytes of one device that were in use at once, by tensors and inside of plans, since the program started or
    /// [`reset_peak`] was called.
    pub peak_bytes: u64,
}

/// The totals now.
pub fn counters() -> Counters {
    Counters {
        plans_compiled: COMPILED.load(Relaxed),
        plans_replayed: REPLAYED.load(Relaxed),
        kernels_run: KERNELS.load(Relaxed),
        uploads: UPLOADS.load(Relaxed),
        reads: READS.load(Relaxed),
        submissions: SUBMISSIONS.load(Relaxed),
        bind_groups: BIND_GROUPS.load(Relaxed),
        shaders_compiled: SHADERS.load(Relaxed),
        pool_bytes: POOL_BYTES.load(Relaxed).max(0) as u64,
        used_bytes: USED_BYTES.load(Relaxed),
        peak_bytes: PEAK_BYTES.load(Relaxed),
    }
}

/// Counts `peak_bytes` anew, from the next tensor or plan on.
pub fn reset_peak() {
    PEAK_BYTES.store(0, Relaxed);
}

/// So many bytes of a device are in use.
pub fn see_used_bytes(bytes: u64) {
    USED_BYTES.store(bytes, Relaxed);
    PEAK_BYTES.fetch_max(bytes, Relaxed);
}

pub fn count_compile() {
    COMPILED.fetch_add(1, Relaxed);
}

pub fn count_replay() {
    REPLAYED.fetch_add(1, Relaxed);
}

pub fn count_kernels(n: u64) {
    KERNELS.fetch_add(n, Relaxed);
}

pub fn count_upload() {
    UPLOADS.fetch_add(1, Relaxed);
}

pub fn count_read() {
    READS.fetch_add(1, Relaxed);
}

pub fn count_submission() {
    SUBMISSIONS.fetch_add(1, Relaxed);
}

pub fn count_bind_group() {
    BIND_GROUPS.fetch_add(1, Relaxed);
}

pub fn count_shader() {
    SHADERS.fetch_add(1, Relaxed);
}

/// A pool has taken so many bytes from its device, or given them back.
pub fn change_pool_bytes(by: i64) {
    POOL_BYTES.fetch_add(by, Relaxed);
}
