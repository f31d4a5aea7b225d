//! RMSprop (Tieleman and Hinton, 2012; centered: Graves, 2013).

use super::RuleOptimizer;
use super::elementwise::Elementwise;
use super::expression::{Expression, Inputs};
use super::rule::{Options, Setting, not_negative};
use super::step_count::Steps;
use crate::error::Result;
use crate::tensor::Tensor;

/// RMSprop as PyTorch has it.
///
/// ```text
/// g ← g + decay·p
/// v ← α·v + (1 − α)·g²
/// ḡ ← α·ḡ + (1 − α)·g                  (centered; then v − ḡ² stands for v below)
/// d = g / (√v + ε)
/// b ← momentum·b + d                   (with momentum; then b stands for d)
/// p ← p − rate·d
/// ```
pub type RMSprop = RuleOptimizer<RMSpropOptions>;

/// The options of [`RMSprop`].
#[derive(Clone, Debug, PartialEq)]
pub struct RMSpropOptions {
    /// How far a step goes.
    pub learning_rate: f64,
    /// How much of the averages stays from step to step.
    pub alpha: f64,
    /// Keeps the divisor from zero.
    pub epsilon: f64,
    /// Added to the gradient, times the parameter.
    pub weight_decay: f64,
    /// How much of the last step goes on; 0 for none.
    pub momentum: f64,
    /// Divides by the deviation from the average gradient.
    pub centered: bool,
}

impl Default for RMSpropOptions {
    fn default() -> Self {
        let (learning_rate, alpha, epsilon) = (0.01, 0.99, 1e-8);
        RMSpropOptions { learning_rate, alpha, epsilon, weight_decay: 0.0, momentum: 0.0, centered: false }
    }
}

impl RMSprop {
    /// With a learning rate, the decay of the averages and momentum: `(parameters, 0.01, 0.99, 0.0)`.
    #[track_caller]
    pub fn new(parameters: Vec<Tensor>, learning_rate: f64, alpha: f64, momentum: f64) -> RMSprop {
        RMSprop::with(
            parameters,
            RMSpropOptions { learning_rate, alpha, momentum, ..RMSpropOptions::default() },
        )
    }
}

const SQUARES: usize = 0;
const AVERAGE: usize = 1;
const VELOCITY: usize = 2;

impl Options for RMSpropOptions {
    const NAME: &'static str = "RMSprop";
    const STATE: &'static [&'static str] = &["square_avg", "grad_avg", "momentum_buffer"];

    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        vec![
            ("learning_rate", Setting::Number(&mut self.learning_rate)),
            ("alpha", Setting::Number(&mut self.alpha)),
            ("epsilon", Setting::Number(&mut self.epsilon)),
            ("weight_decay", Setting::Number(&mut self.weight_decay)),
            ("momentum", Setting::Number(&mut self.momentum)),
            ("centered", Setting::Flag(&mut self.centered)),
        ]
    }

    fn check(&self) -> Result<()> {
        not_negative(&[
            ("learning rate", self.learning_rate),
            ("alpha", self.alpha),
            ("epsilon", self.epsilon),
            ("weight decay", self.weight_decay),
            ("momentum", self.momentum),
        ])
    }

    fn counts(&self) -> bool {
        false
    }
}

impl Elementwise for RMSpropOptions {
    fn formula<'a>(&self, _steps: &Steps, of: &Inputs<'a>) -> Result<Expression<'a>> {
        let alpha = self.alpha;
        let (p, mut g) = (of.parameter(), of.gradient());
        if self.weight_decay != 0.0 {
            g = g + p * self.weight_decay;
        }
        let squares = of.state(SQUARES) * alpha + g.square() * (1.0 - alpha);
        of.set_state(SQUARES, squares);
        let mut spread = squares;
        if self.centered {
            let average = of.state(AVERAGE) * alpha + g * (1.0 - alpha);
            of.set_state(AVERAGE, average);
            // Rounding must not make it negative.
            spread = (spread - average.square()).relu();
        }
        let mut step = g / (spread.sqrt() + self.epsilon);
        if self.momentum != 0.0 {
            step = of.state(VELOCITY) * self.momentum + step;
            of.set_state(VELOCITY, step);
        }
        Ok(p - step * self.learning_rate)
    }
}
