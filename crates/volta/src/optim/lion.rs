//! Lion (Chen and others, 2023).

use super::RuleOptimizer;
use super::elementwise::Elementwise;
use super::expression::{Expression, Inputs};
use super::rule::{Options, Setting, below_one, not_negative};
use super::step_count::Steps;
use crate::error::Result;
use crate::tensor::Tensor;

/// Lion: every step has the same length, and only one moment is kept.
///
/// ```text
/// d = sign(β₁·m + (1 − β₁)·g)
/// p ← p − rate·(d + decay·p)
/// m ← β₂·m + (1 − β₂)·g
/// ```
pub type Lion = RuleOptimizer<LionOptions>;

/// The options of [`Lion`].
#[derive(Clone, Debug, PartialEq)]
pub struct LionOptions {
    /// How far a step goes: a third to a tenth of what Adam takes.
    pub learning_rate: f64,
    /// How much of the moment goes into a step, and how much of it stays.
    pub betas: (f64, f64),
    /// How much parameters are drawn to zero: three to ten times what AdamW takes.
    pub weight_decay: f64,
}

impl Default for LionOptions {
    fn default() -> Self {
        LionOptions { learning_rate: 1e-4, betas: (0.9, 0.99), weight_decay: 0.0 }
    }
}

impl Lion {
    /// With a learning rate, the two decays of the moment and weight decay: `(parameters, 1e-4, (0.9, 0.99), 0.0)`.
    #[track_caller]
    pub fn new(parameters: Vec<Tensor>, learning_rate: f64, betas: (f64, f64), weight_decay: f64) -> Lion {
        Lion::with(parameters, LionOptions { learning_rate, betas, weight_decay })
    }
}

const MOMENT: usize = 0;

impl Options for LionOptions {
    const NAME: &'static str = "Lion";
    const STATE: &'static [&'static str] = &["exp_avg"];

    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        vec![
            ("learning_rate", Setting::Number(&mut self.learning_rate)),
            ("beta1", Setting::Number(&mut self.betas.0)),
            ("beta2", Setting::Number(&mut self.betas.1)),
            ("weight_decay", Setting::Number(&mut self.weight_decay)),
        ]
    }

    fn check(&self) -> Result<()> {
        below_one(&[("first beta", self.betas.0), ("second beta", self.betas.1)])?;
        not_negative(&[("learning rate", self.learning_rate), ("weight decay", self.weight_decay)])
    }

    fn counts(&self) -> bool {
        false
    }
}

impl Elementwise for LionOptions {
    fn formula<'a>(&self, _steps: &Steps, of: &Inputs<'a>) -> Result<Expression<'a>> {
        let (b1, b2) = self.betas;
        let (p, g, m) = (of.parameter(), of.gradient(), of.state(MOMENT));
        let mut step = (m * b1 + g * (1.0 - b1)).sign();
        if self.weight_decay != 0.0 {
            step = step + p * self.weight_decay;
        }
        of.set_state(MOMENT, m * b2 + g * (1.0 - b2));
        Ok(p - step * self.learning_rate)
    }
}
