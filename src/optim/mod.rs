//! Optimizers: each computes the new values of all its parameters in one plan, together with the backward pass
//! that is still pending. Their state lives where the parameters live.

mod adam;
mod sgd;

pub use adam::{Adam, AdamW};
pub use sgd::SGD;

use crate::autograd::no_grad;
use crate::call::Call;
use crate::error::Result;
use crate::tensor::{Tensor, try_realize_all};

/// What every optimizer does.
pub trait Optimizer {
    /// The parameters, in the order they were given.
    fn parameters(&self) -> &[Tensor];

    /// Moves every parameter that has a gradient, and computes everything pending on this thread.
    #[track_caller]
    fn step(&mut self) {
        self.try_step().unwrap_or_else(|e| e.raise());
    }

    /// [`step`](Self::step) that returns its error.
    fn try_step(&mut self) -> Result<()>;

    /// Forgets all gradients.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Tensor::zero_grad);
    }
}

/// Runs `update` on every parameter that has a gradient, with its number, then computes all new values at once.
#[track_caller]
fn update_all(
    parameters: &[Tensor],
    mut update: impl FnMut(usize, &Tensor, &Tensor) -> Result<()>,
) -> Result<()> {
    let _call = Call::enter("step");
    no_grad(|| {
        for (k, p) in parameters.iter().enumerate() {
            if let Some(g) = p.grad() {
                update(k, p, &g)?;
            }
        }
        Ok(())
    })?;
    try_realize_all(parameters)
}
