//! Memory of an open device: buffers in chunks from a pool, transfers from and to the host, results that the host will read and
//! that are copied ahead for it, the words in which kernels note assertions that failed.

pub(super) mod assertions;
pub(super) mod device_memory;
pub(super) mod pool;
pub(super) mod readback_prefetch;
pub(super) mod transfer;
