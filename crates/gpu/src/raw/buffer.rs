//! Memory of a GPU, written and read as slices of plain numbers.

use super::device::GpuDevice;
use crate::device::device_errors::Faults;
use crate::device::oneshot::channel;
use bytemuck::Pod;
use std::fmt;
use std::future::Future;
use volta_ir::call::{Call, Origin};
use volta_ir::error::{Error, ErrorKind, Result, bail};

/// Memory on a GPU, for shaders and for copies to and from the host.
pub struct GpuBuffer {
    device: wgpu::Device,
    queue: wgpu::Queue,
    faults: Faults,
    /// Whole words of four bytes, and at least one.
    buffer: wgpu::Buffer,
    bytes: usize,
}

impl GpuBuffer {
    /// A buffer of zeros, of so many bytes; an error if the device cannot hold it.
    #[track_caller]
    pub fn zeros(device: &GpuDevice, bytes: usize) -> Result<GpuBuffer> {
        let _call = Call::enter("GpuBuffer::zeros");
        let limits = device.device().limits();
        let most = limits.max_buffer_size.min(limits.max_storage_buffer_binding_size);
        if bytes as u64 > most {
            bail!(
                Memory,
                "{bytes} bytes are more than {} can hold in one buffer: {most}",
                device.info().name
            );
        }
        let buffer = device.device().create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes.next_multiple_of(4).max(4) as u64,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        device.check(|| format!("allocating {bytes} bytes"))?;
        let (faults, queue) = (device.faults.clone(), device.queue().clone());
        Ok(GpuBuffer { device: device.device().clone(), queue, faults, buffer, bytes })
    }

    /// A buffer with a copy of `data`.
    ///
    /// # Panics
    ///
    /// If the device cannot hold it; [`try_from_slice`](Self::try_from_slice) says so instead.
    #[track_caller]
    pub fn from_slice<T: Pod>(device: &GpuDevice, data: &[T]) -> GpuBuffer {
        let _call = Call::enter("GpuBuffer::from_slice");
        Self::try_from_slice(device, data).unwrap_or_else(|error| error.raise())
    }

    /// A buffer with a copy of `data`; an error if the device cannot hold it.
    #[track_caller]
    pub fn try_from_slice<T: Pod>(device: &GpuDevice, data: &[T]) -> Result<GpuBuffer> {
        let _call = Call::enter("GpuBuffer::from_slice");
        let buffer = GpuBuffer::zeros(device, size_of_val(data))?;
        buffer.write(data)?;
        Ok(buffer)
    }

    /// Overwrites the buffer from its start, before any work that is submitted from now on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Argument`] if `data` is longer than the buffer, or ends before the buffer does and inside
    /// a word of four bytes, which copies cannot cut.
    #[track_caller]
    pub fn write<T: Pod>(&self, data: &[T]) -> Result<()> {
        let _call = Call::enter("GpuBuffer::write");
        let data: &[u8] = bytemuck::cast_slice(data);
        if data.len() > self.bytes {
            bail!(Argument, "{} bytes do not fit into a buffer of {}", data.len(), self.bytes);
        }
        let whole = data.len() / 4 * 4;
        let rest = &data[whole..];
        if !rest.is_empty() && data.len() != self.bytes {
            bail!(Argument, "{} bytes end inside a word of a buffer of {}", data.len(), self.bytes);
        }
        self.queue.write_buffer(&self.buffer, 0, &data[..whole]);
        if !rest.is_empty() {
            let mut word = [0; 4];
            word[..rest.len()].copy_from_slice(rest);
            self.queue.write_buffer(&self.buffer, whole as u64, &word);
        }
        Ok(())
    }

    /// A copy of the buffer, after all work submitted so far: `read::<f32>().await`, or the type of what it
    /// is assigned to.
    ///
    /// # Panics
    ///
    /// If the buffer is no whole number of `T`s, or the device was lost; [`try_read`](Self::try_read) says so
    /// instead.
    #[track_caller]
    pub fn read<T: Pod>(&self) -> impl Future<Output = Vec<T>> {
        let read = self.try_read();
        async move { read.await.unwrap_or_else(|error| error.raise()) }
    }

    /// [`read`](Self::read), with an error instead of a panic.
    #[track_caller]
    pub fn try_read<T: Pod>(&self) -> impl Future<Output = Result<Vec<T>>> {
        let origin = Origin::here("GpuBuffer::read");
        let failed = move |kind, message: String| Error::at(kind, message, origin);
        async move {
            let size = size_of::<T>();
            if size == 0 || !self.bytes.is_multiple_of(size) {
                let message =
                    format!("a buffer of {} bytes holds no whole number of {size} bytes", self.bytes);
                return Err(failed(ErrorKind::Argument, message));
            }
            let mut data = vec![T::zeroed(); self.bytes / size];
            if data.is_empty() {
                return Ok(data);
            }
            let staged = self.staged().await;
            self.faults
                .ask(|| format!("reading {} bytes", self.bytes))
                .map_err(|error| failed(error.kind(), error.message().into()))?;
            let staged = staged.map_err(|message| failed(ErrorKind::Device, message))?;
            let view = staged
                .get_mapped_range(..)
                .map_err(|error| failed(ErrorKind::Device, format!("the copy cannot be read: {error}")))?;
            bytemuck::cast_slice_mut(&mut data).copy_from_slice(&view[..self.bytes]);
            Ok(data)
        }
    }

    /// A copy that the host sees.
    async fn staged(&self) -> Result<wgpu::Buffer, String> {
        let staged = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: self.buffer.size(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(&self.buffer, 0, &staged, 0, self.buffer.size());
        let submission = self.queue.submit([encoder.finish()]);
        let (sender, mapped) = channel();
        staged.map_async(wgpu::MapMode::Read, .., move |result| sender.give(result));
        self.wait_for(submission)?;
        mapped.await.map_err(|error| format!("the buffer cannot be read: {error}"))?;
        Ok(staged)
    }

    /// Callbacks run when somebody asks the device.
    #[cfg(not(target_arch = "wasm32"))]
    fn wait_for(&self, submission: wgpu::SubmissionIndex) -> Result<(), String> {
        let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
        self.device.poll(wait).map(|_| ()).map_err(|error| format!("the device does not answer: {error}"))
    }

    /// In a browser callbacks run by themselves, and nobody may block.
    #[cfg(target_arch = "wasm32")]
    fn wait_for(&self, _: wgpu::SubmissionIndex) -> Result<(), String> {
        Ok(())
    }

    /// Its size, in bytes.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// The buffer of wgpu, for shaders of one's own.
    pub fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}

impl fmt::Debug for GpuBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuBuffer({} bytes)", self.bytes)
    }
}
