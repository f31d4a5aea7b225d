//! The guards on a GPU: after every kernel, small dispatches count NaN and infinity in what it wrote. They note what they find
//! in one buffer, which is read after the plan has run, with what its kernels noted of their assertions.

use crate::device::context::Context;
use crate::memory::pool::{PooledBuffer, create};
use volta_ir::error::Result;
use volta_ir::plan::Plan;
use volta_ir::plan::executor::Argument;
#[cfg(not(target_arch = "wasm32"))]
use volta_ir::plan::{assertion, guard};

/// The memory that checks note what they find in: a word a slot.
pub(crate) struct Guard {
    pub memory: PooledBuffer,
}

impl Guard {
    pub fn new(context: &Context, plan: &Plan) -> Result<Guard> {
        Ok(Guard { memory: create(context, 4 * plan.slot_bytes.len() as u64)? })
    }

    /// The first error that the checks of a run have found, or its assertions.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn verdict(&self, context: &Context, plan: &Plan, arguments: &[Argument]) -> Result<()> {
        let bytes = crate::memory::transfer::read_raw(context, &self.memory.buffer)?;
        let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b)).collect();
        let mut failed = crate::memory::transfer::failed_assertion(context)?;
        // The kernel that it failed in; one of another plan comes before all of this one.
        let site = failed.as_ref().and_then(|(number, _)| plan.sites.place(*number));
        for kernel in &plan.kernels {
            let here = site.is_none_or(|site| assertion::asserts(kernel, site));
            let error = failed.take_if(|_| here).map(|(_, error)| error);
            guard::verdict(kernel, arguments, error, |slot| u64::from(words[slot]))?;
        }
        failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// A tab cannot wait for what they find.
    #[cfg(target_arch = "wasm32")]
    pub fn verdict(&self, context: &Context, _: &Plan, _: &[Argument]) -> Result<()> {
        crate::memory::transfer::wait(context)
    }
}
