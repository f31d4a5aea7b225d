//! What memory each of several ranks takes, by what they share out.

use crate::config::{Config, Optimizer};
use crate::plan::StepPlan;
use crate::prepare::Prepared;
use std::fmt;
use volta::Module;
use volta::Result;
use volta::parallel::ExchangeOptions;

/// The memory of a rank's device for every stage of sharding (`--zero`). Printing it gives a table.
#[derive(Clone, Debug, PartialEq)]
pub struct RankMemory {
    /// How many ranks there are.
    pub ranks: usize,
    /// By stage, from 0 to 3.
    pub stages: Vec<StageMemory>,
}

/// Bytes that a rank holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageMemory {
    /// Parameters, between steps.
    pub parameters: usize,
    /// Sums of gradients, when the optimizer steps.
    pub gradients: usize,
    /// What the optimizer remembers.
    pub optimizer: usize,
    /// What the forward and the backward pass take besides parameters, and what is gathered for them.
    pub pass: usize,
    /// The most at once: the optimizer's state with a pass, or with a step.
    pub peak: usize,
}

impl RankMemory {
    /// For so many ranks. Nothing without data, and where nothing can be shared out.
    pub fn new(config: &Config, prepared: &Prepared, ranks: usize) -> Result<Option<RankMemory>> {
        // The passes without the update.
        let Ok(passes) = config.with(&[("zero", "1")]) else { return Ok(None) };
        let Some(plan) = StepPlan::new(&passes, prepared)? else { return Ok(None) };
        let sizes: Vec<usize> = prepared.gpt.parameters().iter().map(|p| 4 * p.numel()).collect();
        let whole: usize = sizes.iter().sum();
        // A rank has a part of each parameter.
        let part: usize = sizes.iter().map(|bytes| 4 * (bytes / 4).div_ceil(ranks)).sum();
        let largest = sizes.iter().max().copied().unwrap_or(0);
        let gathered = (ExchangeOptions::default().bucket_bytes + largest).min(whole);
        let pass = plan.peak_bytes().saturating_sub(whole);
        let stage = |stage: usize| {
            let share = |from: usize| if stage >= from { part } else { whole };
            let (parameters, gradients) = (share(3), share(2));
            let optimizer = states(config) * share(1);
            let pass = if stage == 3 { pass + gathered } else { pass };
            // A step has the parts of parameters besides.
            let step = gradients + if stage > 0 { part } else { 0 };
            StageMemory {
                parameters,
                gradients,
                optimizer,
                pass,
                peak: parameters + optimizer + pass.max(step),
            }
        };
        Ok(Some(RankMemory { ranks, stages: (0..4).map(stage).collect() }))
    }
}

/// How many numbers the optimizer remembers of each that it moves.
fn states(config: &Config) -> usize {
    match config.optimizer {
        Optimizer::Adam | Optimizer::AdamW => 2,
        Optimizer::Sgd if config.momentum == Some(0.0) => 0,
        Optimizer::Lion | Optimizer::Sgd => 1,
        // It is not shared out: about one, as the matrices have.
        Optimizer::Muon => 1,
    }
}

impl fmt::Display for RankMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<30}", format!("each of {} ranks, in MB", self.ranks))?;
        (0..self.stages.len()).try_for_each(|stage| write!(f, "{:>10}", format!("--zero {stage}")))?;
        type Bytes = fn(&StageMemory) -> usize;
        let lines: [(&str, Bytes); 5] = [
            ("parameters", |m| m.parameters),
            ("gradients, for a step", |m| m.gradients),
            ("optimizer's state", |m| m.optimizer),
            ("a pass, besides", |m| m.pass),
            ("peak", |m| m.peak),
        ];
        for (name, bytes) in lines {
            write!(f, "\n{name:<30}")?;
            self.stages.iter().try_for_each(|memory| write!(f, "{:>10.1}", bytes(memory) as f64 / 1e6))?;
        }
        Ok(())
    }
}
