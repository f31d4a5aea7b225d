//! Adagrad (Duchi, Hazan and Singer, 2011).

use super::RuleOptimizer;
use super::elementwise::Elementwise;
use super::expression::{Expression, Inputs};
use super::rule::{Options, Setting, not_negative};
use super::step_count::Steps;
use crate::error::Result;
use crate::tensor::Tensor;

/// Adagrad as PyTorch has it.
///
/// ```text
/// g ← g + decay·p
/// s ← s + g²
/// p ← p − rate/(1 + (t − 1)·rate_decay) · g / (√s + ε)
/// ```
pub type Adagrad = RuleOptimizer<AdagradOptions>;

/// The options of [`Adagrad`].
#[derive(Clone, Debug, PartialEq)]
pub struct AdagradOptions {
    /// How far the first step goes.
    pub learning_rate: f64,
    /// How much shorter steps become with their number.
    pub rate_decay: f64,
    /// Added to the gradient, times the parameter.
    pub weight_decay: f64,
    /// What the sums of squares start from.
    pub initial_sum: f64,
    /// Keeps the divisor from zero.
    pub epsilon: f64,
}

impl Default for AdagradOptions {
    fn default() -> Self {
        let (learning_rate, epsilon) = (0.01, 1e-10);
        AdagradOptions { learning_rate, rate_decay: 0.0, weight_decay: 0.0, initial_sum: 0.0, epsilon }
    }
}

impl Adagrad {
    /// With a learning rate and weight decay (0 for none).
    #[track_caller]
    pub fn new(parameters: Vec<Tensor>, learning_rate: f64, weight_decay: f64) -> Adagrad {
        Adagrad::with(parameters, AdagradOptions { learning_rate, weight_decay, ..AdagradOptions::default() })
    }
}

const SUM: usize = 0;

impl Options for AdagradOptions {
    const NAME: &'static str = "Adagrad";
    const STATE: &'static [&'static str] = &["sum"];

    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        vec![
            ("learning_rate", Setting::Number(&mut self.learning_rate)),
            ("rate_decay", Setting::Number(&mut self.rate_decay)),
            ("weight_decay", Setting::Number(&mut self.weight_decay)),
            ("initial_sum", Setting::Number(&mut self.initial_sum)),
            ("epsilon", Setting::Number(&mut self.epsilon)),
        ]
    }

    fn check(&self) -> Result<()> {
        not_negative(&[
            ("learning rate", self.learning_rate),
            ("decay of the rate", self.rate_decay),
            ("weight decay", self.weight_decay),
            ("initial sum", self.initial_sum),
            ("epsilon", self.epsilon),
        ])
    }

    fn counts(&self) -> bool {
        self.rate_decay != 0.0
    }
}

impl Elementwise for AdagradOptions {
    fn formula<'a>(&self, steps: &Steps, of: &Inputs<'a>) -> Result<Expression<'a>> {
        let slower = steps.count().times(self.rate_decay)?.plus(1.0 - self.rate_decay)?;
        let rate = slower.recip()?.times(self.learning_rate)?;
        let (p, mut g) = (of.parameter(), of.gradient());
        if self.weight_decay != 0.0 {
            g = g + p * self.weight_decay;
        }
        let sum = of.state_or(SUM, self.initial_sum) + g.square();
        of.set_state(SUM, sum);
        Ok(p - g / (sum.sqrt() + self.epsilon) * &rate)
    }
}
