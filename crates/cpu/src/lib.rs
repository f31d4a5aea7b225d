//! The executor on the host's processor.
//!
//! `program` runs a plan's kernels in order. `interpreter` computes fused loops with the vectorised ops of `vector`;
//! `native_kernels` calls `gemm`, `quantized`, `conv`, `attention` and `index`. `buffer_pool` keeps memory for the next step, on `huge_pages`;
//! `available` tells how much there is. `threads` divides work among the workers of `thread_pool`.

mod attention;
mod available;
mod buffer_pool;
mod conv;
mod gemm;
mod huge_pages;
mod index;
mod interpreter;
mod native_kernels;
mod program;
mod quantized;
mod thread_pool;
mod threads;
mod vector;

pub use threads::{parallel_for, set_threads, try_set_threads};
pub use vector::{load_f16, store_f16};

pub use buffer_pool::HostBuffer;
use std::ops::Range;
use std::sync::Arc;
use volta_ir::buffer::Storage;
use volta_ir::dtype::DType;
use volta_ir::error::Result;
use volta_ir::plan::Plan;
use volta_ir::plan::executor::{Executor, Program, Reading, Waiting};
use volta_ir::plan::memory::{DeviceLimits, Rates};
use volta_ir::telemetry::{count_read, count_upload};

struct Cpu;

/// The one executor of this processor.
pub fn executor() -> &'static dyn Executor {
    &Cpu
}

impl Executor for Cpu {
    fn rules(&self) -> Result<DeviceLimits> {
        // A piece starts with a cache line, which is also the widest vector.
        let sizes = DType::ALL.map(DType::size);
        Ok(DeviceLimits {
            alignment: 64,
            block: usize::MAX,
            regions: 1,
            slots: usize::MAX,
            max_fused_row: usize::MAX,
            min_rows_unsplit: 0,
            columns: false,
            prologues: false,
            horizontal_fusion: false,
            sizes,
            size_classes: buffer_pool::SIZE_CLASSES,
            // A core multiplies while it waits for memory; waking the others takes microseconds.
            // The host's memory is its own.
            rates: Rates { flops_per_byte: 16, kernel_bytes: 1 << 16, host_byte: 0 },
        })
    }

    fn generation(&self) -> Result<u64> {
        Ok(0)
    }

    fn unsupported_reason(&self, _: DType) -> Option<String> {
        None
    }

    fn upload(&self, dtype: DType, bytes: &[u8]) -> Result<Storage> {
        let storage = self.allocate(DType::U8, bytes.len())?;
        self.write(&storage, dtype, 0, bytes)?;
        count_upload();
        Ok(storage)
    }

    fn allocate(&self, dtype: DType, count: usize) -> Result<Storage> {
        Ok(Arc::new(HostBuffer::new(count * dtype.size())?))
    }

    fn write(&self, storage: &Storage, dtype: DType, start: usize, bytes: &[u8]) -> Result<()> {
        let target = HostBuffer::of(&**storage).as_ptr() as usize + start * dtype.size();
        // The pages of a new buffer, and those of a mapped file, are made when they are first touched: by all threads.
        threads::parallel_for(bytes.len().div_ceil(huge_pages::MIN_HUGE_BYTES), &|k| {
            let piece = bytes.chunks(huge_pages::MIN_HUGE_BYTES).nth(k).expect("there are as many pieces");
            // SAFETY: the buffer has room for what is written, and nobody reads it yet; pieces do not overlap.
            unsafe {
                let to = (target as *mut u8).add(k * huge_pages::MIN_HUGE_BYTES);
                std::ptr::copy_nonoverlapping(piece.as_ptr(), to, piece.len());
            }
        });
        Ok(())
    }

    fn read(&self, storage: Storage, dtype: DType, elements: Range<usize>) -> Reading {
        let mut out = vec![0; elements.len() * dtype.size()];
        let buffer = HostBuffer::of(&*storage);
        // SAFETY: a realized buffer is as large as its tensor and is not written while a node holds it.
        unsafe {
            let from = buffer.as_ptr().add(elements.start * dtype.size());
            std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len());
        }
        count_read();
        Box::pin(std::future::ready(Ok(out)))
    }

    fn memory(&self) -> Result<Option<u64>> {
        Ok(available::memory())
    }

    fn used_bytes(&self) -> Result<u64> {
        Ok(buffer_pool::used_bytes())
    }

    fn limit_memory(&self, bytes: Option<u64>) -> Result<()> {
        buffer_pool::limit(bytes);
        Ok(())
    }

    fn synchronize(&self) -> Waiting {
        Box::pin(std::future::ready(Ok(())))
    }

    fn prepare(&self, plan: &Plan, guarded: bool) -> Result<Box<dyn Program>> {
        Ok(Box::new(program::CpuProgram::new(plan, guarded)))
    }
}
