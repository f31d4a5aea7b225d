//! Reads that are foreseen. A small result that the host has read after one run of a plan is copied for it at the end of the
//! next run, in the same submission: whoever looks at a loss in every step does not submit anything for that.

use super::context::Context;
use super::memory::GpuBuffer;
use crate::graph::Storage;
use crate::plan::memory::Output;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of results that are copied: all of the smallest pieces of memory.
pub(super) const BYTES: u64 = 256;

/// Memory that the host can read. Whoever else has it has a copy in it that was not read yet.
pub(super) type HostMemory = Arc<wgpu::Buffer>;

/// Memory for a copy of at least so many bytes.
pub(super) fn host_memory(context: &Context, bytes: u64) -> HostMemory {
    Arc::new(context.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    }))
}

/// What is known about reading a tensor's memory.
#[derive(Default)]
pub(super) struct Outlook {
    /// Whoever computed it wants to know.
    read: Option<Arc<AtomicBool>>,
    copy: Mutex<Option<HostMemory>>,
}

impl Outlook {
    /// The host reads it now: the copy of what is in it, if there is one.
    pub fn read(&self) -> Option<HostMemory> {
        if let Some(read) = &self.read {
            read.store(true, Relaxed);
        }
        self.take()
    }

    /// The copy is not what will be in it.
    pub fn take(&self) -> Option<HostMemory> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn give(&self, copy: HostMemory) {
        *self.copy.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy);
    }
}

/// Which results of a plan were read after its last run.
pub(super) struct Readers(Vec<Option<Arc<AtomicBool>>>);

impl Readers {
    /// Of those that have small memory of their own.
    pub fn of(outputs: &[Output]) -> Readers {
        let watched = |output: &Output| output.over.is_none() && output.bytes as u64 <= BYTES;
        Readers(outputs.iter().map(|output| watched(output).then(Arc::default)).collect())
    }

    /// For the memory of that result.
    pub fn outlook(&self, output: usize) -> Outlook {
        Outlook { read: self.0[output].clone(), copy: Mutex::default() }
    }

    /// The results that were read, once.
    pub fn take(&self) -> SmallVec<[usize; 4]> {
        let was_read = |read: &Option<Arc<AtomicBool>>| read.as_ref().is_some_and(|r| r.swap(false, Relaxed));
        (0..self.0.len()).filter(|&output| was_read(&self.0[output])).collect()
    }
}

/// A copy of a result at the end of a run.
pub(super) struct Copy {
    output: usize,
    from: wgpu::Buffer,
    to: HostMemory,
}

/// Makes `copies` those of the results that were read; whether they were.
pub(super) fn foresee(
    copies: &mut Vec<Copy>,
    read: &[usize],
    outputs: &[Storage],
    context: &Context,
) -> bool {
    let is_free = |copy: &Copy| Arc::strong_count(&copy.to) == 1;
    if copies.iter().map(|copy| copy.output).eq(read.iter().copied()) && copies.iter().all(is_free) {
        return true;
    }
    let copy = |&output: &usize| {
        let from = GpuBuffer::of(&*outputs[output]).pieces[0].buffer.clone();
        Copy { output, from, to: host_memory(context, BYTES) }
    };
    *copies = read.iter().map(copy).collect();
    false
}

impl Copy {
    pub fn encode(&self, encoder: &mut wgpu::CommandEncoder) {
        encoder.copy_buffer_to_buffer(&self.from, 0, &self.to, 0, BYTES);
    }

    /// Tells the result that the copy is submitted.
    pub fn hand_out(&self, outputs: &[Storage]) {
        GpuBuffer::of(&*outputs[self.output]).outlook.give(self.to.clone());
    }
}
