//! Muon (Jordan and others, 2024): momentum whose matrices are made orthogonal.

use super::RuleOptimizer;
use super::rule::{Options, Rule, Setting, Update, below_one, not_negative};
use super::step_count::Steps;
use crate::error::{Result, bail};
use crate::tensor::{AutocastTypes, Tensor, with_autocast};

/// Muon, for the matrices inside a network; its other parameters belong to [`AdamW`](super::AdamW).
///
/// ```text
/// m ← momentum·m + (1 − momentum)·g
/// u = m                                (Nesterov: momentum·m + (1 − momentum)·g)
/// p ← p − rate·(√max(1, rows/columns)·orthogonal(u) + decay·p)
/// ```
///
/// `orthogonal` brings all singular values near 1, by steps of Newton and Schulz's iteration, in the parameter's type.
pub type Muon = RuleOptimizer<MuonOptions>;

/// The options of [`Muon`].
#[derive(Clone, Debug, PartialEq)]
pub struct MuonOptions {
    /// How far a step goes.
    pub learning_rate: f64,
    /// How much of the momentum stays from step to step.
    pub momentum: f64,
    /// How much parameters are drawn to zero.
    pub weight_decay: f64,
    /// Looks ahead by one step of momentum.
    pub nesterov: bool,
    /// Steps of Newton and Schulz's iteration.
    pub iterations: u32,
}

impl Default for MuonOptions {
    fn default() -> Self {
        let (learning_rate, momentum) = (0.02, 0.95);
        MuonOptions { learning_rate, momentum, weight_decay: 0.0, nesterov: true, iterations: 5 }
    }
}

impl Muon {
    /// With a learning rate, momentum and weight decay: `(matrices, 0.02, 0.95, 0.0)`.
    #[track_caller]
    pub fn new(parameters: Vec<Tensor>, learning_rate: f64, momentum: f64, weight_decay: f64) -> Muon {
        Muon::with(
            parameters,
            MuonOptions { learning_rate, momentum, weight_decay, ..MuonOptions::default() },
        )
    }
}

const MOMENTUM: usize = 0;

impl Options for MuonOptions {
    const NAME: &'static str = "Muon";
    const STATE: &'static [&'static str] = &["momentum_buffer"];

    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        vec![
            ("learning_rate", Setting::Number(&mut self.learning_rate)),
            ("momentum", Setting::Number(&mut self.momentum)),
            ("weight_decay", Setting::Number(&mut self.weight_decay)),
            ("nesterov", Setting::Flag(&mut self.nesterov)),
            ("iterations", Setting::Whole(&mut self.iterations)),
        ]
    }

    fn check(&self) -> Result<()> {
        below_one(&[("momentum", self.momentum)])?;
        not_negative(&[("learning rate", self.learning_rate), ("weight decay", self.weight_decay)])
    }

    fn accept(&self, parameter: &Tensor) -> Result<()> {
        if parameter.rank() != 2 {
            bail!(
                Shape,
                "Muon moves matrices, and a parameter has shape {}: give biases, norms, embeddings and kernels of \
                 convolutions to an AdamW of their own",
                parameter.shape()
            );
        }
        Ok(())
    }

    fn counts(&self) -> bool {
        false
    }
}

impl Rule for MuonOptions {
    fn update(&self, _steps: &Steps, updates: &mut [Update<'_>]) -> Result<()> {
        for u in updates {
            // In f32, and outside of autocast, whatever the parameter is kept in: halves hold no squares.
            let dtype = u.parameter().dtype();
            let (p, g) = (u.parameter().widened()?, u.gradient().widened()?);
            let fresh = g.try_mul(1.0 - self.momentum)?;
            let momentum = u.state(MOMENTUM)?.widened()?.try_mul(self.momentum)?.try_add(&fresh)?;
            u.set_state(MOMENTUM, &momentum.cast(dtype)?)?;
            let ahead =
                if self.nesterov { momentum.try_mul(self.momentum)?.try_add(&fresh)? } else { momentum };
            let (rows, columns) = (p.shape()[0] as f64, p.shape()[1] as f64);
            let rate = self.learning_rate * (rows / columns).max(1.0).sqrt();
            let mut step = with_autocast(AutocastTypes::default(), || orthogonal(&ahead, self.iterations))?
                .try_mul(rate)?;
            if self.weight_decay != 0.0 {
                step = step.try_add(&p.try_mul(self.learning_rate * self.weight_decay)?)?;
            }
            u.set(&p.try_sub(&step)?.cast(dtype)?)?;
        }
        Ok(())
    }
}

/// The odd polynomial a·x + b·x³ + c·x⁵, applied again and again, takes what lies between 0 and 1 to about 1.
const POLYNOMIAL: (f64, f64, f64) = (3.4445, -4.7750, 2.0315);

/// `x` with singular values near 1.
fn orthogonal(x: &Tensor, iterations: u32) -> Result<Tensor> {
    let tall = x.shape()[0] > x.shape()[1];
    // The product with itself is as small as it can be.
    let mut x = if tall { x.try_transpose(0, 1)? } else { x.clone() };
    let norm = x.try_square()?.try_sum()?.try_sqrt()?;
    x = x.try_div(&norm.try_maximum(1e-7)?)?;
    let (a, b, c) = POLYNOMIAL;
    for _ in 0..iterations {
        let gram = x.try_matmul(&x.try_transpose(0, 1)?)?;
        let mix = gram.try_mul(b)?.try_add(&gram.try_matmul(&gram)?.try_mul(c)?)?;
        x = x.try_mul(a)?.try_add(&mix.try_matmul(&x)?)?;
    }
    if tall { x.try_transpose(0, 1) } else { Ok(x) }
}
