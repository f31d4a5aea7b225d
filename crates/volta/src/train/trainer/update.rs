//! The step of the optimizer, and what is counted of it.

use super::{Run, Trainer};
use crate::autograd::no_grad;
use crate::error::Result;
use crate::optim::{try_all_finite, try_clip_grad_norm};
use crate::tensor::Tensor;
use crate::train::health;

impl Trainer<'_> {
    /// A step of the optimizer with the gradients that were collected.
    pub(super) fn update(&mut self, run: &mut Run) -> Result<()> {
        self.receive_gradients(run)?;
        let made = self.step_optimizer(run);
        let left = self.leave_parts(made.is_ok());
        made?;
        left?;
        run.rate = self.optimizer.learning_rates().first().copied().unwrap_or(f64::NAN);
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.step(&mut *self.optimizer);
        }
        self.optimizer.zero_grad();
        run.waiting = 0;
        run.step += 1;
        self.done.0 += 1;
        self.synchronize_when_due(run)
    }

    /// The step itself, with gradients that are unscaled and made shorter.
    fn step_optimizer(&mut self, run: &mut Run) -> Result<()> {
        let length = self.agree_on_gradients()?;
        if length.is_some() {
            self.enter_parts()?;
        }
        if let Some(scaler) = &mut self.scaler {
            scaler.try_unscale(&*self.optimizer)?;
        }
        let norm = match (self.options.clip, length) {
            (Some(most), Some(length)) => Some(self.shorten_parts(length, most)?),
            (Some(most), None) => Some(try_clip_grad_norm(self.optimizer.parameters(), most)?),
            (None, _) => None,
        };
        let finite = if self.scaler.is_none() { self.is_finite(run, norm.as_ref())? } else { None };
        if length.is_none() {
            self.enter_parts()?;
        }
        // What is counted here is computed with the step.
        if let Some(scaler) = &mut self.scaler {
            let made = scaler.finite(&*self.optimizer).cloned();
            let finite = match (&made, run.health.losses()) {
                // A loss may be anything in a step that is skipped.
                (Some(made), Some(losses)) => Some(no_grad(|| {
                    made.try_logical_not()?.try_logical_or(&losses.try_to_device(made.device())?)
                })?),
                (_, losses) => losses.cloned(),
            };
            run.health.add_step(finite.as_ref(), made.as_ref())?;
            scaler.try_step(&mut *self.optimizer)?;
        } else {
            if self.skips_by_itself() {
                run.health.add_step(None, finite.as_ref())?;
                self.keep_buffers(run, finite.as_ref())?;
                self.optimizer.try_step_if(finite.as_ref())?;
            } else {
                run.health.add_step(finite.as_ref(), None)?;
                self.optimizer.try_step()?;
            }
        }
        Ok(())
    }

    /// Whether the losses of the step are finite, the norm of its gradients if it is known, and all gradients if the step
    /// depends on it.
    fn is_finite(&self, run: &Run, norm: Option<&Tensor>) -> Result<Option<Tensor>> {
        no_grad(|| {
            let gradients = match norm {
                Some(norm) => Some(health::is_finite(norm)?),
                None if self.skips_by_itself() => {
                    let gradients = self.optimizer.parameters().iter().filter_map(Tensor::grad);
                    try_all_finite(&gradients.collect::<Vec<_>>())?
                }
                None => None,
            };
            Ok(match (run.health.losses(), gradients) {
                (Some(losses), Some(gradients)) => {
                    Some(gradients.try_logical_and(&losses.try_to_device(gradients.device())?)?)
                }
                (losses, gradients) => gradients.or(losses.cloned()),
            })
        })
    }

    /// Gives buffers that the forward pass has changed their values back if the step is skipped.
    fn keep_buffers(&self, run: &mut Run, made: Option<&Tensor>) -> Result<()> {
        let buffers = std::mem::take(&mut run.buffers);
        let Some(made) = made else { return Ok(()) };
        no_grad(|| {
            for (buffer, before) in buffers {
                let made = made.try_to_device(buffer.device())?;
                buffer.try_assign(&made.try_where_(&buffer, &before)?)?;
            }
            Ok(())
        })
    }
}
