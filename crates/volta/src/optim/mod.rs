//! Optimizers: each computes the new values of all its parameters in one plan, together with the backward pass
//! that is still pending. Their state lives where the parameters live.
//!
//! An optimizer is its [`Options`] and a formula, [`Elementwise`] or another [`Rule`], one file each; `optimizer` holds
//! what they share: groups and state, `inherent` the trait's methods, `save` what is saved, `step_count` how many steps there were. An `expression` is
//! written once for all parameters, split into formulas by `partition`, and applied to each by `elementwise`. Beside them stand what is done with
//! gradients before a step ([`clip_grad_norm`], [`GradScaler`]), with parameters after it ([`Ema`]), and with learning
//! rates from step to step (`schedule`).
//!
//! ```
//! use volta::{Adam, Tensor};
//!
//! let x = Tensor::vector(&[3.0, -2.0]).requires_grad(true);
//! let mut adam = Adam::new(vec![x.clone()], 0.1, (0.9, 0.999), 1e-8, 0.0);
//! for _ in 0..200 {
//!     adam.zero_grad();
//!     (&x * &x).sum().backward();
//!     adam.step();
//! }
//! assert!(x.to_vec::<f32>().iter().all(|x| x.abs() < 0.1));
//! ```

mod adagrad;
mod adam;
mod chained;
mod clip;
mod elementwise;
mod ema;
mod expression;
mod inherent;
mod lion;
mod multi_tensor_sum;
mod muon;
mod optimizer;
mod partition;
mod rmsprop;
mod rule;
mod save;
mod scaler;
mod schedule;
mod sgd;
mod step_count;

pub use adagrad::{Adagrad, AdagradOptions};
pub use adam::{Adam, AdamOptions, AdamW, AdamWOptions};
pub use chained::Chained;
/// The old name of [`Chained`].
#[deprecated(note = "it is called `Chained` now")]
pub type Both = Chained;
/// The old name of [`Inputs`].
#[deprecated(note = "it is called `Inputs` now")]
pub type Terms<'a> = Inputs<'a>;
pub(crate) use clip::shorten;
pub use clip::{clip_grad_norm, clip_grad_value, try_clip_grad_norm, try_clip_grad_value};
pub use elementwise::Elementwise;
pub use ema::Ema;
pub use expression::{Expression, Inputs, Term};
pub use lion::{Lion, LionOptions};
pub(crate) use multi_tensor_sum::try_all_finite;
pub use muon::{Muon, MuonOptions};
pub use optimizer::{Group, RuleOptimizer};
pub use rmsprop::{RMSprop, RMSpropOptions};
pub use rule::{Options, Rule, Setting, Update};
pub use scaler::GradScaler;
pub use schedule::{
    ChainedLR, CosineAnnealingLR, ExponentialLR, LinearLR, MultiStepLR, OneCycleLR, PlateauOptions,
    ReduceLROnPlateau, Schedule, Scheduler, SequentialLR, StepLR, WarmupLR,
};
pub use sgd::{SGD, SGDOptions};
pub use step_count::{Factor, Steps};

use crate::error::Result;
use crate::state::Stateful;
use crate::tensor::Tensor;

/// What every optimizer does.
pub trait Optimizer: Stateful {
    /// The parameters of all groups, in the order they were given.
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

    /// Whether every element moves by its own gradient and memory alone. Ranks share out the elements of parameters only then.
    fn is_elementwise(&self) -> bool {
        false
    }

    /// The number of the parameter of which a tensor in the saved [state](Stateful::state) says something, element by element.
    fn parameter_of_state(&self, name: &str) -> Option<usize> {
        let _ = name;
        None
    }

    /// The learning rate of every group.
    fn learning_rates(&self) -> Vec<f64>;

    /// Other learning rates for the next steps, one for each group. They are arguments of a plan: nothing is compiled
    /// again.
    fn set_learning_rates(&mut self, rates: &[f64]);

    /// Another learning rate for the next steps of all groups.
    fn set_learning_rate(&mut self, rate: f64) {
        let groups = self.learning_rates().len();
        self.set_learning_rates(&vec![rate; groups]);
    }
}

/// Gives `target` a new value, where the condition holds.
fn assign_if(target: &Tensor, value: &Tensor, condition: Option<&Tensor>) -> Result<()> {
    match condition {
        Some(condition) => target.try_assign(&condition.try_where_(value, target)?),
        None => target.try_assign(value),
    }
}
