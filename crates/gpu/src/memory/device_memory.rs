//! All memory of an open GPU: its pool, the arena of its plans, and where its kernels note what they assert.

use super::assertions::Assertions;
use super::pool::{Arena, Pool};
use crate::device::open_device::OpenDevice;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

pub(crate) struct DeviceMemory {
    open: OpenDevice,
    pub pool: Mutex<Pool>,
    pub arena: Mutex<Arena>,
    /// Indices and divisors that kernels have found fault with.
    pub assertions: Assertions,
    /// Bytes that were allocated and not given back, and those of them that tensors have.
    pub allocated_bytes: Arc<AtomicU64>,
    pub live_bytes: AtomicU64,
    /// Bytes beyond which nothing is kept for later.
    pub limit: AtomicU64,
}

impl Deref for DeviceMemory {
    type Target = OpenDevice;

    fn deref(&self) -> &OpenDevice {
        &self.open
    }
}

impl DeviceMemory {
    /// Nothing is allocated until it is asked for.
    pub fn new(open: OpenDevice) -> DeviceMemory {
        DeviceMemory {
            open,
            pool: Mutex::default(),
            arena: Mutex::default(),
            assertions: Assertions::default(),
            allocated_bytes: Arc::default(),
            live_bytes: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
        }
    }
}
