//! What a device must be able to do: hold memory, and run plans.

use super::Plan;
use super::memory::DeviceLimits;
use crate::buffer::Storage;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use std::cell::Cell;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

/// A value that may differ from run to run without changing the plan.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    Number(Scalar),
    Key([u32; 2]),
}

/// So many elements of any type fill whole words of a device's memory.
pub const WHOLE_WORDS: usize = 64;

/// Elements on their way to the host.
pub type Reading = Pin<Box<dyn Future<Output = Result<Vec<u8>>> + Send>>;

/// The end of what a device is at work with.
pub type Waiting = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

pub trait Executor: Send + Sync {
    /// How plans must lay out memory here.
    fn rules(&self) -> Result<DeviceLimits>;

    /// Changes when the device was lost and opened anew, or tuned: programs made before are of no use then.
    fn generation(&self) -> Result<u64>;

    /// Whether it computes while the host goes on.
    fn is_async(&self) -> bool {
        false
    }

    /// Whether it is faster to compute attention in a kernel of its own than by its formula, where there is memory for the scores.
    fn has_fast_attention(&self) -> bool {
        true
    }

    /// Why it does not compute in `dtype`, if it does not.
    fn unsupported_reason(&self, dtype: DType) -> Option<String>;

    /// Copies elements to the device.
    fn upload(&self, dtype: DType, bytes: &[u8]) -> Result<Storage>;

    /// Memory for so many elements, with whatever was in it before.
    fn allocate(&self, dtype: DType, count: usize) -> Result<Storage>;

    /// Copies elements to the device, into memory that nobody reads yet, from the `start`-th element on. All that is written at once is
    /// a multiple of [`WHOLE_WORDS`] long, but for the end of a tensor.
    fn write(&self, storage: &Storage, dtype: DType, start: usize, bytes: &[u8]) -> Result<()>;

    /// Copies some elements of a buffer to the host; those that do not begin with the first begin with a multiple of [`WHOLE_WORDS`]. A
    /// device that is busy may still have to write them.
    fn read(&self, storage: Storage, dtype: DType, elements: Range<usize>) -> Reading;

    /// The bytes of memory that can be had here, if the system tells.
    fn memory(&self) -> Result<Option<u64>>;

    /// The bytes of its memory that tensors have now.
    fn used_bytes(&self) -> Result<u64>;

    /// Keeps no memory for later beyond so many bytes in all, from now on.
    fn limit_memory(&self, bytes: Option<u64>) -> Result<()>;

    /// Waits until everything that was asked for until now is done.
    fn synchronize(&self) -> Waiting;

    /// Makes a plan ready to run many times; `guarded` runs are checked, kernel by kernel.
    fn prepare(&self, plan: &Plan, guarded: bool) -> Result<Box<dyn Program>>;
}

/// A plan made ready by its executor.
pub trait Program: Send + Sync {
    /// Whether its device is gone, and the program with it.
    fn is_lost(&self) -> bool {
        false
    }

    /// The bytes that its kernels set aside for themselves, besides what the plan takes.
    fn scratch_bytes(&self, _plan: &Plan) -> usize {
        0
    }

    /// Runs it. From where `begun` is set on, inputs that the plan was given may
    /// have been written, and nobody stops it any more.
    fn run(
        &self,
        plan: &Plan,
        inputs: &[Storage],
        arguments: &[Argument],
        begun: &Cell<bool>,
    ) -> Result<Outcome>;
}

/// What comes of a run.
pub struct Outcome {
    /// The plan's outputs, in order.
    pub outputs: Vec<Storage>,
    /// An assertion that did not hold, if that is known already.
    pub failed: Option<Error>,
}
