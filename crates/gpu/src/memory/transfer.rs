//! Values to the device and back. Only a read waits, and in a browser nobody does but a future.

use super::assertions::{self, Epoch, Latest};
use super::device_memory::DeviceMemory;
use super::pool::GpuBuffer;
use super::readback_prefetch::{Copied, HostMemory, host_memory};
use crate::codegen::storage_type::StorageType;
use crate::device::oneshot::{Receiver, channel};
use std::borrow::Cow;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
#[cfg(not(target_arch = "wasm32"))]
use std::time::Duration;
use volta_ir::buffer::Storage;
#[cfg(not(target_arch = "wasm32"))]
use volta_ir::clock::Instant;
use volta_ir::dtype::DType;
use volta_ir::error::{Error, ErrorKind, Result};
#[cfg(not(target_arch = "wasm32"))]
use volta_ir::interrupt::{check_interrupt, is_interruptible};
use volta_ir::telemetry::{count_read, count_upload};
use wgpu::SubmissionIndex as Submission;

/// The host's bytes as the device stores them, padded to whole words.
fn to_device(dtype: DType, f16: bool, bytes: &[u8]) -> Cow<'_, [u8]> {
    match StorageType::of(dtype, f16) {
        StorageType::Word => {
            bytes.iter().flat_map(|&b| u32::from(b).to_le_bytes()).collect::<Vec<u8>>().into()
        }
        StorageType::F16Word | StorageType::Bf16Word => {
            bytes.as_chunks::<2>().0.iter().flat_map(|&[a, b]| [a, b, 0, 0]).collect::<Vec<u8>>().into()
        }
        StorageType::F16 if !bytes.len().is_multiple_of(4) => [bytes, &[0, 0]].concat().into(),
        _ => bytes.into(),
    }
}

/// What the device stores as the host's bytes.
fn from_device(dtype: DType, f16: bool, stored: &[u8], count: usize) -> Vec<u8> {
    let words = stored.as_chunks::<4>().0.iter().take(count);
    match StorageType::of(dtype, f16) {
        StorageType::Word => words.map(|word| word[0]).collect(),
        StorageType::F16Word | StorageType::Bf16Word => words.flat_map(|word| [word[0], word[1]]).collect(),
        _ => stored[..count * dtype.size()].to_vec(),
    }
}

pub(crate) fn upload(gpu: &Arc<DeviceMemory>, dtype: DType, bytes: &[u8]) -> Result<Storage> {
    let storage = allocate(gpu, dtype, bytes.len() / dtype.size())?;
    write(&storage, dtype, 0, bytes)?;
    count_upload();
    Ok(storage)
}

/// Memory for so many elements.
pub(crate) fn allocate(gpu: &Arc<DeviceMemory>, dtype: DType, count: usize) -> Result<Storage> {
    let bytes = count * StorageType::of(dtype, gpu.caps.f16).size();
    Ok(Arc::new(GpuBuffer::new(gpu, bytes.next_multiple_of(4))?))
}

/// Bytes from which on the device begins to copy them at once, rather than with what is submitted next: meanwhile the host has the next
/// ones at hand.
const LARGE_WRITE_BYTES: usize = 1 << 20;

/// Puts elements into a tensor's memory, from the `start`-th on. They begin with a whole word, and end with one or with the tensor.
pub(crate) fn write(storage: &Storage, dtype: DType, start: usize, bytes: &[u8]) -> Result<()> {
    let buffer = GpuBuffer::of(&**storage);
    let gpu = &buffer.gpu;
    let data = to_device(dtype, gpu.caps.f16, bytes);
    let mut at = start * StorageType::of(dtype, gpu.caps.f16).size();
    let mut rest = &*data;
    while !rest.is_empty() {
        let (piece, offset) = (at / gpu.rules.block, at % gpu.rules.block);
        let (part, behind) = rest.split_at(rest.len().min(gpu.rules.block - offset));
        gpu.queue.write_buffer(&buffer.pieces[piece].buffer, offset as u64, part);
        (at, rest) = (at + part.len(), behind);
    }
    if start > 0 && data.len() >= LARGE_WRITE_BYTES {
        gpu.flush();
    }
    gpu.faults.check(|| format!("uploading {} bytes", data.len()))
}

/// A copy of buffers' bytes on its way to the host.
struct Staged {
    memory: HostMemory,
    mapped: Receiver<Result<(), wgpu::BufferAsyncError>>,
    /// What is to be waited for; everything where that is not known. A browser waits by itself.
    #[cfg(not(target_arch = "wasm32"))]
    submission: Option<Submission>,
    /// When the last words of it were copied that tell which assertion failed, if they were.
    assertions: Option<Epoch>,
    /// Whether its memory will be written to again.
    lent: bool,
}

impl Drop for Staged {
    fn drop(&mut self) {
        if self.lent {
            self.memory.unmap();
        }
    }
}

/// Asks for what was copied.
fn map(Copied { memory, assertions }: Copied, submission: Option<Submission>, lent: bool) -> Staged {
    let (sender, mapped) = channel();
    memory.map_async(wgpu::MapMode::Read, .., move |result| sender.give(result));
    #[cfg(target_arch = "wasm32")]
    let _ = submission;
    Staged {
        memory,
        mapped,
        #[cfg(not(target_arch = "wasm32"))]
        submission,
        assertions,
        lent,
    }
}

/// Copies bytes of buffers, some of each, and behind the first of them which assertion failed. Every copy has memory of its own: for
/// all of them, one buffer may be too small.
fn stage<'a>(
    gpu: &DeviceMemory,
    parts: impl Iterator<Item = (&'a wgpu::Buffer, Range<usize>)>,
) -> Result<Vec<Staged>> {
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    let (mut copies, mut all) = (Vec::new(), 0);
    let mut failed = gpu.assertions.memory();
    for (buffer, bytes) in parts {
        let (from, bytes) = (bytes.start as u64, bytes.len());
        let size = bytes.next_multiple_of(4).max(4) as u64;
        let (failed, epoch) = (failed.take(), gpu.assertions.epoch());
        let memory = host_memory(gpu, size + failed.map_or(0, |_| assertions::BYTES));
        encoder.copy_buffer_to_buffer(buffer, from, &memory, 0, size);
        if let Some(failed) = failed {
            encoder.copy_buffer_to_buffer(&failed.buffer, 0, &memory, size, assertions::BYTES);
        }
        copies.push(Copied { memory, assertions: failed.map(|_| epoch) });
        all += bytes;
    }
    let submission = gpu.submit(encoder.finish());
    let staged = copies.into_iter().map(|copied| map(copied, Some(submission.clone()), false)).collect();
    gpu.faults.check(|| format!("reading {all} bytes"))?;
    Ok(staged)
}

impl Staged {
    /// The bytes, as soon as they are there. Natively somebody must wait for the device: whoever asks, if it may, or a thread of
    /// its own. A browser does it itself.
    async fn bytes<R>(mut self, gpu: &DeviceMemory, look: impl FnOnce(&[u8]) -> R) -> Result<R> {
        #[cfg(not(target_arch = "wasm32"))]
        {
            let submission = self.submission.take();
            if volta_ir::wait::may_wait() {
                wait_until(gpu, submission, || self.mapped.is_there())?
            } else {
                wait_elsewhere(gpu, submission)?
            }
        }
        let failed = |why: String| {
            gpu.faults.check(|| "reading a tensor".into()).err().unwrap_or_else(|| {
                let message = format!("{}: a tensor could not be read: {why}", gpu.who());
                Error::new(ErrorKind::Device, message)
            })
        };
        if let Err(error) = (&mut self.mapped).await {
            // There is nothing to undo.
            self.lent = false;
            // A browser tells afterwards that the device was lost.
            #[cfg(target_arch = "wasm32")]
            work_done(gpu).await;
            return Err(failed(error.to_string()));
        }
        if gpu.injected.bad_map.swap(false, Relaxed) {
            return Err(failed("it is not mapped".into()));
        }
        // A browser may have told of something meanwhile that what is read was made of.
        gpu.faults.check(|| "reading a tensor".into())?;
        let view = self.memory.get_mapped_range(..).map_err(|e| failed(e.to_string()))?;
        if let Some(epoch) = self.assertions {
            let words = &view[view.len() - assertions::BYTES as usize..];
            if let Some((_, error)) = gpu.assertions.report(gpu, words, epoch) {
                return Err(error);
            }
        }
        Ok(look(&view))
    }
}

/// Some of a tensor's elements. Where they are not all, they begin with a whole word.
pub(crate) fn read(
    storage: Storage,
    dtype: DType,
    elements: Range<usize>,
) -> impl Future<Output = Result<Vec<u8>>> {
    let gpu = GpuBuffer::of(&*storage).gpu.clone();
    let (f16, size) = (gpu.caps.f16, StorageType::of(dtype, gpu.caps.f16).size());
    // Of the elements, those that are in a piece.
    let each = gpu.rules.block / size;
    let first = elements.start / each;
    let count = elements.end.div_ceil(each).max(first + 1) - first;
    let some_of = move |k: usize| {
        let piece = (first + k) * each..(first + k + 1) * each;
        elements.start.max(piece.start) - piece.start..elements.end.min(piece.end) - piece.start
    };
    // Submitted now, or behind what waits for its shaders, whenever the future is asked.
    let staged_some = some_of;
    let staged = gpu.in_order(move || {
        let buffer = GpuBuffer::of(&*storage);
        buffer.check()?;
        let is_beginning = first == 0 && staged_some(0).start == 0;
        match is_beginning.then(|| buffer.readback.read()).flatten() {
            Some(copy) => Ok(vec![map(copy, None, true)]),
            None => {
                let pieces = buffer.pieces[first..first + count].iter().enumerate();
                let bytes = |some: Range<usize>| size * some.start..size * some.end;
                stage(&buffer.gpu, pieces.map(|(k, piece)| (&piece.buffer, bytes(staged_some(k)))))
            }
        }
    });
    async move {
        let staged = staged.get().await?;
        gpu.await_reports().await?;
        let mut all = Vec::new();
        for (k, staged) in staged.into_iter().enumerate() {
            let look = |stored: &[u8]| from_device(dtype, f16, stored, some_of(k).len());
            let bytes = staged.bytes(&gpu, look).await?;
            if k == 0 { all = bytes } else { all.extend(bytes) }
        }
        count_read();
        Ok(all)
    }
}

/// The bytes of a buffer that can be copied from, for measuring. What failed is left to others.
pub(crate) fn read_raw(
    gpu: &Arc<DeviceMemory>,
    buffer: &wgpu::Buffer,
) -> impl Future<Output = Result<Vec<u8>>> + use<> {
    let (gpu, bytes) = (gpu.clone(), buffer.size() as usize);
    let staged = stage(&gpu, [(buffer, 0..bytes)].into_iter());
    async move {
        let mut staged = staged?.remove(0);
        staged.assertions = None;
        count_read();
        staged.bytes(&gpu, |stored| stored[..bytes].to_vec()).await
    }
}

/// Waits for all that was asked for, and tells which assertion failed, with its number.
pub(crate) fn failed_assertion(
    gpu: &Arc<DeviceMemory>,
) -> impl Future<Output = Result<Option<(u32, Error)>>> + use<> {
    let (this, gpu) = (gpu.clone(), gpu.clone());
    let staged = gpu.in_order(move || match (this.assertions.look(), this.assertions.memory()) {
        (Latest::Copied(memory, epoch), _) => {
            Some((map(Copied { memory, assertions: None }, None, true), epoch))
        }
        (Latest::OnDevice, Some(failed)) => {
            let epoch = this.assertions.epoch();
            let mut encoder = this.device.create_command_encoder(&Default::default());
            let memory = host_memory(&this, assertions::BYTES);
            encoder.copy_buffer_to_buffer(&failed.buffer, 0, &memory, 0, assertions::BYTES);
            let submission = this.submit(encoder.finish());
            Some((map(Copied { memory, assertions: None }, Some(submission), false), epoch))
        }
        _ => None,
    });
    async move {
        let Some((staged, epoch)) = staged.get().await else {
            return all_done(&gpu).await.map(|()| None);
        };
        let look = |words: &[u8]| gpu.assertions.report(&gpu, words, epoch);
        let failed = staged.bytes(&gpu, look).await?;
        // What asserts nothing may have been submitted behind the last words that were copied.
        all_done(&gpu).await?;
        Ok(failed)
    }
}

/// Waits for all that was asked for; an error if an assertion failed in it.
pub(crate) fn synchronize(gpu: &Arc<DeviceMemory>) -> impl Future<Output = Result<()>> + use<> {
    let (gpu, failed) = (gpu.clone(), failed_assertion(gpu));
    async move {
        let failed = failed.await?;
        gpu.await_reports().await?;
        failed.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Waits for all that was submitted: natively on this thread, if it may wait.
async fn all_done(gpu: &DeviceMemory) -> Result<()> {
    #[cfg(not(target_arch = "wasm32"))]
    if volta_ir::wait::may_wait() {
        return wait(gpu);
    }
    let done = work_done(gpu);
    #[cfg(not(target_arch = "wasm32"))]
    wait_elsewhere(gpu, None)?;
    done.await;
    gpu.faults.check(|| "waiting for the device".to_string())
}

/// The end of all that was submitted, or of the device.
fn work_done(gpu: &DeviceMemory) -> Receiver<()> {
    let (sender, done) = channel();
    gpu.queue.on_submitted_work_done(move || sender.give(()));
    done
}

/// Waits for all that was submitted.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn wait(gpu: &DeviceMemory) -> Result<()> {
    wait_until(gpu, None, || false)
}

/// Waits for what was submitted up to a certain submission, or up to now, or until what is waited for is there.
#[cfg(not(target_arch = "wasm32"))]
fn wait_until(gpu: &DeviceMemory, submission: Option<Submission>, is_there: impl Fn() -> bool) -> Result<()> {
    /// How long to ask again and again: what is nearly done is there sooner than a sleeping thread wakes up.
    const PATIENCE: Duration = Duration::from_millis(2);
    /// How long to wait for the device before asking whether that is still wanted.
    const ASK_AGAIN: Duration = Duration::from_millis(50);
    let _span = volta_ir::telemetry::span("wait");
    let waiting = || "waiting for the device".to_string();
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        match gpu.device.poll(wgpu::PollType::Poll) {
            Ok(status) if status.is_queue_empty() || is_there() => return gpu.faults.check(waiting),
            Ok(_) if gpu.idle.work_one(&gpu.device) => {}
            Ok(_) => std::hint::spin_loop(),
            Err(_) => break,
        }
    }
    let waited = loop {
        let wait = |timeout| wgpu::PollType::Wait { submission_index: submission.clone(), timeout };
        if !is_interruptible() {
            break gpu.device.poll(wait(None));
        }
        // What is submitted runs to its end, whoever waits for it.
        check_interrupt()?;
        match gpu.device.poll(wait(Some(ASK_AGAIN))) {
            Err(wgpu::PollError::Timeout) => {}
            waited => break waited,
        }
    };
    gpu.faults.check(waiting)?;
    waited.map(|_| ()).map_err(|e| Error::new(ErrorKind::Device, format!("{}: {e}", gpu.who())))
}

/// Has another thread wait for what was submitted, as [`wait_until`] does: answers are given there, and wake up whoever asked for them.
#[cfg(not(target_arch = "wasm32"))]
fn wait_elsewhere(gpu: &DeviceMemory, submission_index: Option<Submission>) -> Result<()> {
    let device = gpu.device.clone();
    // If the device is lost, those who asked are told so instead.
    let waiting = move || drop(device.poll(wgpu::PollType::Wait { submission_index, timeout: None }));
    let thread = std::thread::Builder::new().name("volta-read".into()).spawn(waiting);
    thread.map(drop).map_err(|e| {
        let message = format!("{}: there is no thread to wait for a tensor: {e}", gpu.who());
        Error::new(ErrorKind::Device, message)
    })
}
