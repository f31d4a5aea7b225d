//! Stochastic gradient descent.

use super::RuleOptimizer;
use super::elementwise::Elementwise;
use super::expression::{Expression, Inputs};
use super::rule::{Options, Setting, not_negative};
use super::step_count::Steps;
use crate::error::{Result, bail};
use crate::tensor::Tensor;

/// Gradient descent, as PyTorch has it.
///
/// ```text
/// g ← g + decay·p
/// v ← momentum·v + (1 − dampening)·g      (v = g in the first step)
/// p ← p − rate·v                          (Nesterov: rate·(g + momentum·v))
/// ```
pub type SGD = RuleOptimizer<SGDOptions>;

/// The options of [`SGD`].
#[derive(Clone, Debug, PartialEq)]
pub struct SGDOptions {
    /// How far a step goes.
    pub learning_rate: f64,
    /// How much of the last step goes on; 0 for none.
    pub momentum: f64,
    /// How much of the gradient is left out of the momentum.
    pub dampening: f64,
    /// Added to the gradient, times the parameter.
    pub weight_decay: f64,
    /// Looks ahead by one step of momentum.
    pub nesterov: bool,
}

impl Default for SGDOptions {
    fn default() -> Self {
        SGDOptions { learning_rate: 0.001, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false }
    }
}

impl SGD {
    /// With a learning rate, momentum and weight decay (0 for none).
    #[track_caller]
    pub fn new(parameters: Vec<Tensor>, learning_rate: f64, momentum: f64, weight_decay: f64) -> SGD {
        SGD::with(parameters, SGDOptions { learning_rate, momentum, weight_decay, ..SGDOptions::default() })
    }
}

const VELOCITY: usize = 0;

impl Options for SGDOptions {
    const NAME: &'static str = "SGD";
    const STATE: &'static [&'static str] = &["momentum_buffer"];

    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        vec![
            ("learning_rate", Setting::Number(&mut self.learning_rate)),
            ("momentum", Setting::Number(&mut self.momentum)),
            ("dampening", Setting::Number(&mut self.dampening)),
            ("weight_decay", Setting::Number(&mut self.weight_decay)),
            ("nesterov", Setting::Flag(&mut self.nesterov)),
        ]
    }

    fn check(&self) -> Result<()> {
        not_negative(&[
            ("learning rate", self.learning_rate),
            ("momentum", self.momentum),
            ("weight decay", self.weight_decay),
        ])?;
        if self.nesterov && (self.momentum == 0.0 || self.dampening != 0.0) {
            bail!(Argument, "Nesterov's step needs momentum, and no dampening");
        }
        Ok(())
    }

    fn counts(&self) -> bool {
        self.dampening != 0.0
    }
}

impl Elementwise for SGDOptions {
    fn formula<'a>(&self, steps: &Steps, of: &Inputs<'a>) -> Result<Expression<'a>> {
        let (p, mut g) = (of.parameter(), of.gradient());
        if self.weight_decay != 0.0 {
            g = g + p * self.weight_decay;
        }
        if self.momentum != 0.0 {
            let share = steps.first_or(1.0, 1.0 - self.dampening)?;
            let part = if self.dampening != 0.0 { g * &share } else { g };
            let velocity = of.state(VELOCITY) * self.momentum + part;
            of.set_state(VELOCITY, velocity);
            g = if self.nesterov { g + velocity * self.momentum } else { velocity };
        }
        Ok(p - g * self.learning_rate)
    }
}
