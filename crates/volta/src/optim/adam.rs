//! Adam (Kingma and Ba, 2015), AMSGrad (Reddi and others, 2018) and AdamW (Loshchilov and Hutter, 2019).

use super::RuleOptimizer;
use super::elementwise::Elementwise;
use super::expression::{Expression, Inputs};
use super::rule::{Options, Setting, below_one, not_negative};
use super::step_count::Steps;
use crate::error::Result;
use crate::tensor::Tensor;

/// Adam as PyTorch has it; weight decay is added to the gradient.
///
/// ```text
/// g ← g + decay·p
/// m ← β₁·m + (1 − β₁)·g
/// v ← β₂·v + (1 − β₂)·g²
/// p ← p − rate · m/(1 − β₁ᵗ) / (√(v/(1 − β₂ᵗ)) + ε)      (AMSGrad: the largest v so far)
/// ```
pub type Adam = RuleOptimizer<AdamOptions>;

/// Adam with weight decay apart from the gradient: `rate·decay·p` is added to the step.
pub type AdamW = RuleOptimizer<AdamWOptions>;

const FIRST: usize = 0;
const SECOND: usize = 1;
const LARGEST_SECOND: usize = 2;
/// Below this a rate has no reciprocal in f32 that could still be weighed.
const SMALLEST_RATE: f64 = 1e-36;

macro_rules! adam {
    ($name:ident, $text:literal, $options:ident, decay: $decay:literal, decoupled: $decoupled:literal) => {
        #[doc = concat!("The options of [`", $text, "`].")]
        #[derive(Clone, Debug, PartialEq)]
        pub struct $options {
            /// How far a step goes.
            pub learning_rate: f64,
            /// How much of both moments stays from step to step.
            pub betas: (f64, f64),
            /// Keeps the divisor from zero.
            pub epsilon: f64,
            /// How much parameters are drawn to zero.
            pub weight_decay: f64,
            /// Divides by the largest second moment so far.
            pub amsgrad: bool,
        }

        impl Default for $options {
            fn default() -> Self {
                let (learning_rate, betas, epsilon) = (0.001, (0.9, 0.999), 1e-8);
                $options { learning_rate, betas, epsilon, weight_decay: $decay, amsgrad: false }
            }
        }

        impl $name {
            /// With a learning rate, the decay of both moments, the number that keeps the divisor from zero, and
            /// weight decay: `(parameters, 0.001, (0.9, 0.999), 1e-8, 0.0)`.
            #[track_caller]
            pub fn new(
                parameters: Vec<Tensor>,
                learning_rate: f64,
                betas: (f64, f64),
                epsilon: f64,
                weight_decay: f64,
            ) -> $name {
                let options = $options { learning_rate, betas, epsilon, weight_decay, amsgrad: false };
                $name::with(parameters, options)
            }
        }

        impl Options for $options {
            const NAME: &'static str = $text;
            const STATE: &'static [&'static str] = &["exp_avg", "exp_avg_sq", "max_exp_avg_sq"];

            fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
                vec![
                    ("learning_rate", Setting::Number(&mut self.learning_rate)),
                    ("beta1", Setting::Number(&mut self.betas.0)),
                    ("beta2", Setting::Number(&mut self.betas.1)),
                    ("epsilon", Setting::Number(&mut self.epsilon)),
                    ("weight_decay", Setting::Number(&mut self.weight_decay)),
                    ("amsgrad", Setting::Flag(&mut self.amsgrad)),
                ]
            }

            fn check(&self) -> Result<()> {
                below_one(&[("first beta", self.betas.0), ("second beta", self.betas.1)])?;
                not_negative(&[
                    ("learning rate", self.learning_rate),
                    ("epsilon", self.epsilon),
                    ("weight decay", self.weight_decay),
                ])
            }
        }

        impl Elementwise for $options {
            fn formula<'a>(&self, steps: &Steps, of: &Inputs<'a>) -> Result<Expression<'a>> {
                let (b1, b2) = self.betas;
                let rate = self.learning_rate;
                // rate · m̂ / (√v̂ + ε) with the rate and the weights of both averages taken into the divisor; nothing
                // moves by a rate of (nearly) 0, whatever the divisor would be.
                let (by_root, more) = if rate < SMALLEST_RATE {
                    (0.0, f64::INFINITY)
                } else {
                    (1.0 / rate, self.epsilon / rate)
                };
                let weight = steps.weight(b1)?;
                let by_root = weight.over(&steps.weight(b2)?.sqrt()?)?.times(by_root)?;
                let more = weight.times(more)?;

                let (p, mut g) = (of.parameter(), of.gradient());
                if self.weight_decay != 0.0 && !$decoupled {
                    g = g + p * self.weight_decay;
                }
                let m = of.state(FIRST) * b1 + g * (1.0 - b1);
                let v = of.state(SECOND) * b2 + g.square() * (1.0 - b2);
                of.set_state(FIRST, m);
                of.set_state(SECOND, v);
                let mut spread = v;
                if self.amsgrad {
                    spread = of.state(LARGEST_SECOND).maximum(v);
                    of.set_state(LARGEST_SECOND, spread);
                }
                let mut step = m / (spread.sqrt() * &by_root + &more);
                if self.weight_decay != 0.0 && $decoupled {
                    step = step + p * (rate * self.weight_decay);
                }
                Ok(p - step)
            }
        }
    };
}
adam!(Adam, "Adam", AdamOptions, decay: 0.0, decoupled: false);
adam!(AdamW, "AdamW", AdamWOptions, decay: 0.01, decoupled: true);
