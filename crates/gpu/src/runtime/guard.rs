//! The guards on a GPU: after every kernel, small dispatches count NaN and infinity in what it wrote. They note what they find
//! in one buffer, which is read after the plan has run, with what its kernels noted of their assertions.

use super::context::Context;
use crate::memory::pool::{PooledBuffer, create};
use crate::memory::transfer;
use std::borrow::Borrow;
use std::sync::Arc;
use volta_ir::error::Result;
use volta_ir::plan::Plan;
use volta_ir::plan::executor::Argument;
use volta_ir::plan::{assertion, guard};

/// The memory that checks note what they find in: a word a slot.
pub(crate) struct Guard {
    pub memory: PooledBuffer,
}

impl Guard {
    pub fn new(context: &Context, plan: &Plan) -> Result<Guard> {
        Ok(Guard { memory: create(context, 4 * plan.slot_bytes.len() as u64)? })
    }

    /// The first error that the checks of a run have found, or its assertions. It is asked for now, whenever the future is.
    pub fn verdict<P: Borrow<Plan>>(
        &self,
        context: &Arc<Context>,
        plan: P,
        arguments: Vec<Argument>,
    ) -> impl Future<Output = Result<()>> + use<P> {
        let found = transfer::read_raw(&context.memory, &self.memory.buffer);
        let failed = transfer::failed_assertion(&context.memory);
        async move {
            let (bytes, mut failed, plan) = (found.await?, failed.await?, plan.borrow());
            let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b)).collect();
            // The kernel that it failed in; one of another plan comes before all of this one.
            let site = failed.as_ref().and_then(|(number, _)| plan.sites.place(*number));
            for kernel in &plan.kernels {
                let here = site.is_none_or(|site| assertion::asserts(kernel, site));
                let error = failed.take_if(|_| here).map(|(_, error)| error);
                guard::verdict(kernel, &arguments, error, |slot| u64::from(words[slot]))?;
            }
            failed.map_or(Ok(()), |(_, error)| Err(error))
        }
    }
}
