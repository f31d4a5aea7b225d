//! Memory of the device: buffers in chunks from a pool, transfers from and to the host, results that the host will read and
//! that are copied ahead for it.

pub(super) mod oneshot;
pub(super) mod pool;
pub(super) mod readback_prefetch;
pub(super) mod transfer;
