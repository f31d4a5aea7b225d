//! What [`Optimizer`] promises, as methods of each optimizer itself: a program that names its optimizer needs no `use` of
//! the trait.

use super::rule::Rule;
use super::{Chained, Optimizer, RuleOptimizer};
use crate::error::Result;
use crate::tensor::Tensor;

macro_rules! inherent {
    ($(($($generic:tt)*) $optimizer:ty;)*) => {$(
        impl<$($generic)*> $optimizer {
            /// The parameters of all groups, in the order they were given.
            pub fn parameters(&self) -> &[Tensor] {
                Optimizer::parameters(self)
            }

            /// Moves every parameter that has a gradient, and computes everything pending on this thread.
            #[track_caller]
            pub fn step(&mut self) {
                Optimizer::step(self);
            }

            /// [`step`](Self::step) that returns its error.
            #[track_caller]
            pub fn try_step(&mut self) -> Result<()> {
                Optimizer::try_step(self)
            }

            /// A step that leaves everything as it was where `condition`, a single truth value, is false. Nothing is read
            /// back to find out.
            #[track_caller]
            pub fn try_step_if(&mut self, condition: Option<&Tensor>) -> Result<()> {
                Optimizer::try_step_if(self, condition)
            }

            /// Forgets all gradients.
            pub fn zero_grad(&self) {
                Optimizer::zero_grad(self);
            }

            /// The learning rate of every group.
            pub fn learning_rates(&self) -> Vec<f64> {
                Optimizer::learning_rates(self)
            }

            /// Other learning rates for the next steps, one for each group. They are arguments of a plan: nothing is
            /// compiled again.
            pub fn set_learning_rates(&mut self, rates: &[f64]) {
                Optimizer::set_learning_rates(self, rates);
            }

            /// Another learning rate for the next steps of all groups.
            pub fn set_learning_rate(&mut self, rate: f64) {
                Optimizer::set_learning_rate(self, rate);
            }
        }
    )*};
}

inherent! {
    (R: Rule) RuleOptimizer<R>;
    () Chained;
}
