//! Optimizers: each computes the new values of all its parameters in one plan, together with the backward pass
//! that is still pending. Their state lives where the parameters live.

mod adam;
mod scaler;
mod sgd;

pub use adam::{Adam, AdamW};
pub use scaler::GradScaler;
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
    #[track_caller]
    fn try_step(&mut self) -> Result<()> {
        self.try_step_if(None)
    }

    /// A step that leaves everything as it was where `condition`, a single truth value, is false. Nothing is read
    /// back to find out.
    fn try_step_if(&mut self, condition: Option<&Tensor>) -> Result<()>;

    /// Forgets all gradients.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Tensor::zero_grad);
    }
}

/// Gives `target` a new value, where the condition holds.
fn assign_if(target: &Tensor, value: &Tensor, condition: Option<&Tensor>) -> Result<()> {
    match condition {
        Some(condition) => target.try_assign(&condition.try_where_(value, target)?),
        None => target.try_assign(value),
    }
}

/// Moves state to where its parameter is now, and to its type.
fn follow(state: &Tensor, parameter: &Tensor) -> Result<()> {
    let (device, dtype) = (parameter.device(), parameter.dtype());
    if (state.device(), state.dtype()) == (device, dtype) { Ok(()) } else { state.try_move(device, dtype) }
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
