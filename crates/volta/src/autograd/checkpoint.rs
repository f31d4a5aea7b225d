//! Activation checkpointing: forget what lies between inputs and output, compute it again when the gradient
//! comes back. Memory for time.

use super::{BackwardOptions, enable_grad, no_grad, try_grad};
use crate::call::Call;
use crate::default_device::{default_device, with_device};
use crate::device::Device;
use crate::error::{Result, bail};
use crate::tensor::custom_gradient::{CustomGradient, with_own_gradient};
use crate::tensor::{AutocastTypes, RngScope, RngState, Tensor, autocast_types, with_autocast};
use std::collections::HashSet;
use std::sync::Arc;

/// What a function's result depends on besides its inputs.
struct RecomputeState {
    /// So that dropout falls as it did the first time.
    rng: RngState,
    autocast: AutocastTypes,
    device: Device,
}

impl RecomputeState {
    fn here() -> RecomputeState {
        RecomputeState { rng: RngState::save(), autocast: autocast_types(), device: default_device() }
    }

    /// Runs `f` as it would have run then, and leaves everything as it is now.
    fn relive<R>(&self, f: impl FnOnce() -> R) -> R {
        let _aside = RngScope::from(self.rng);
        with_device(self.device, || with_autocast(self.autocast, f))
    }
}

struct Recompute<F> {
    function: F,
    state: RecomputeState,
}

impl<F: Fn(&[Tensor]) -> Tensor + Send + Sync> CustomGradient for Recompute<F> {
    fn gradients(
        &self,
        inputs: &[Tensor],
        _output: &Tensor,
        gradient: &Tensor,
    ) -> Result<Vec<Option<Tensor>>> {
        let create_graph = super::is_grad_enabled();
        let begin = |x: &Tensor| if x.is_tracked() { x.fresh_leaf() } else { Ok(x.clone()) };
        let fresh: Vec<Tensor> = inputs.iter().map(begin).collect::<Result<_>>()?;
        let output = self.state.relive(|| enable_grad(|| (self.function)(&fresh)));
        let tracked: Vec<&Tensor> = fresh.iter().filter(|x| x.is_tracked()).collect();
        refuse_captured(&output, &tracked)?;
        let options = BackwardOptions { retain_graph: false, create_graph };
        let mut found = try_grad(&[&output], &tracked, Some(&[gradient]), options)?.into_iter();
        Ok(fresh.iter().map(|x| if x.is_tracked() { found.next().flatten() } else { None }).collect())
    }
}

/// An error if `output` depends on something tracked that is not among `inputs`, which were made just before
/// it: that gradient would be lost.
fn refuse_captured(output: &Tensor, inputs: &[&Tensor]) -> Result<()> {
    let known: Vec<u64> = inputs.iter().map(|t| t.node().id).collect();
    let first = known.iter().copied().min().unwrap_or(u64::MAX);
    let mut queue = vec![output.node()];
    let mut seen = HashSet::new();
    while let Some(node) = queue.pop() {
        if !node.tracked || !seen.insert(node.id) || known.contains(&node.id) {
            continue;
        }
        if node.id < first || node.leaf.is_some() {
            bail!(
                Autograd,
                "the checkpointed function uses a tracked tensor ({} {}) that is not among its inputs, so its \
                 gradient would be lost: pass it as an input",
                node.dtype,
                node.shape
            );
        }
        queue.extend(node.sources());
    }
    Ok(())
}

/// `function(inputs)`, without keeping what it computes on the way: the backward pass runs it again.
///
/// Every tracked tensor that the function uses must be among `inputs`; otherwise the backward pass is an error.
#[track_caller]
pub fn checkpoint(
    function: impl Fn(&[Tensor]) -> Tensor + Send + Sync + 'static,
    inputs: &[&Tensor],
) -> Tensor {
    try_checkpoint(function, inputs).unwrap_or_else(|e| e.raise())
}

/// [`checkpoint`] that returns its error.
#[track_caller]
pub fn try_checkpoint(
    function: impl Fn(&[Tensor]) -> Tensor + Send + Sync + 'static,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    let _call = Call::enter("checkpoint");
    let inputs: Vec<Tensor> = inputs.iter().map(|t| (*t).clone()).collect();
    let state = RecomputeState::here();
    let value = no_grad(|| function(&inputs));
    Ok(with_own_gradient(&value, &inputs, Arc::new(Recompute { function, state })))
}
