//! Results that are copied before they are asked for. A small result that the host has read after one run of a plan is copied for it at the end of the
//! next run, in the same submission: whoever looks at a loss in every step does not submit anything for that.

use super::assertions::{self, Epoch};
use super::device_memory::DeviceMemory;
use super::pool::GpuBuffer;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use volta_ir::buffer::Storage;
use volta_ir::plan::memory::Output;

/// Bytes of results that are copied: all of the smallest pieces of memory.
pub(crate) const BYTES: u64 = 256;

/// Memory that the host can read. Whoever else has it has a copy in it that was not read yet.
pub(crate) type HostMemory = Arc<wgpu::Buffer>;

/// Memory for a copy of at least so many bytes.
pub(crate) fn host_memory(gpu: &DeviceMemory, bytes: u64) -> HostMemory {
    Arc::new(gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: bytes,
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    }))
}

/// What is in memory of the host, or on its way there.
pub(crate) struct Copied {
    pub memory: HostMemory,
    /// When the words behind it were copied that tell which assertion failed, if they were.
    pub assertions: Option<Epoch>,
}

/// What is known about reading a tensor's memory.
#[derive(Default)]
pub(crate) struct ReadbackHint {
    /// Whoever computed it wants to know.
    read: Option<Arc<AtomicBool>>,
    pub(crate) copy: Mutex<Option<Copied>>,
}

impl ReadbackHint {
    /// The host reads it now: the copy of what is in it, if there is one.
    pub fn read(&self) -> Option<Copied> {
        if let Some(read) = &self.read {
            read.store(true, Relaxed);
        }
        self.take()
    }

    /// The copy is not what will be in it.
    pub fn take(&self) -> Option<Copied> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn give(&self, copy: Copied) {
        *self.copy.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy);
    }
}

/// Which results of a plan were read after its last run.
pub(crate) struct ReadbackTracker(Vec<Option<Arc<AtomicBool>>>);

impl ReadbackTracker {
    /// Of those that have small memory of their own.
    pub fn of(outputs: &[Output]) -> ReadbackTracker {
        let watched = |output: &Output| output.over.is_none() && output.bytes as u64 <= BYTES;
        ReadbackTracker(outputs.iter().map(|output| watched(output).then(Arc::default)).collect())
    }

    /// For the memory of that result.
    pub fn readback(&self, output: usize) -> ReadbackHint {
        ReadbackHint { read: self.0[output].clone(), copy: Mutex::default() }
    }

    /// The results that were read, once.
    pub fn take(&self) -> SmallVec<[usize; 4]> {
        let was_read = |read: &Option<Arc<AtomicBool>>| read.as_ref().is_some_and(|r| r.swap(false, Relaxed));
        (0..self.0.len()).filter(|&output| was_read(&self.0[output])).collect()
    }
}

/// Runs in a row without a read, after which none is copied ahead: some read now and then.
pub const MAX_UNREAD_RUNS: u32 = 16;

/// A copy of a result at the end of a run.
struct Copy {
    output: usize,
    from: wgpu::Buffer,
    to: HostMemory,
}

/// The copies at the end of a run.
#[derive(Default)]
pub(crate) struct PrefetchedReadbacks {
    all: Vec<Copy>,
    /// Where it is noted which assertion failed: that is copied, too.
    assertions: Option<wgpu::Buffer>,
    /// Where that goes for somebody who waits for the device and reads nothing.
    words: Option<HostMemory>,
    /// Runs since something was read.
    unread: u32,
}

impl PrefetchedReadbacks {
    /// Makes these the copies for a run, after which the host will read what it has `read` before; whether they already were.
    /// The run may assert something.
    pub fn schedule(
        &mut self,
        read: &[usize],
        outputs: &[Storage],
        gpu: &DeviceMemory,
        asserts: bool,
    ) -> bool {
        let same_words = !asserts || gpu.assertions.begin_run(gpu, &mut self.words);
        self.unread = if read.is_empty() { self.unread.saturating_add(1) } else { 0 };
        let is_free = |copy: &Copy| Arc::strong_count(&copy.to) == 1;
        let stay = self.all.is_empty() || (self.unread < MAX_UNREAD_RUNS && self.all.iter().all(is_free));
        let is_copied = |output: &usize| self.all.iter().any(|copy| copy.output == *output);
        let assertions = gpu.assertions.memory();
        let asserts_alike = self.all.is_empty() || self.assertions.is_some() == assertions.is_some();
        self.assertions = assertions.map(|piece| piece.buffer.clone());
        if stay && asserts_alike && read.iter().all(is_copied) {
            return same_words;
        }
        let mut wanted: SmallVec<[usize; 4]> = read.into();
        if stay {
            wanted.extend(self.all.iter().map(|copy| copy.output).filter(|output| !read.contains(output)));
        }
        let copy = |output: usize| {
            let from = GpuBuffer::of(&*outputs[output]).pieces[0].buffer.clone();
            Copy { output, from, to: host_memory(gpu, BYTES + assertions::BYTES) }
        };
        self.all = wanted.into_iter().map(copy).collect();
        false
    }

    pub fn encode(&self, encoder: &mut wgpu::CommandEncoder) {
        for Copy { from, to, .. } in &self.all {
            encoder.copy_buffer_to_buffer(from, 0, to, 0, BYTES);
            if let Some(failed) = &self.assertions {
                encoder.copy_buffer_to_buffer(failed, 0, to, BYTES, assertions::BYTES);
            }
        }
        if let (Some(failed), Some(words)) = (&self.assertions, &self.words) {
            encoder.copy_buffer_to_buffer(failed, 0, words, 0, assertions::BYTES);
        }
    }

    /// Tells the results that the copies are submitted, of a run that began in that epoch.
    pub fn deliver(&self, outputs: &[Storage], gpu: &DeviceMemory, epoch: Epoch, asserts: bool) {
        if asserts {
            gpu.assertions.end_run(self.words.as_ref(), epoch);
        }
        for Copy { output, to, .. } in &self.all {
            let assertions = self.assertions.as_ref().map(|_| epoch);
            GpuBuffer::of(&*outputs[*output]).readback.give(Copied { memory: to.clone(), assertions });
        }
    }
}
