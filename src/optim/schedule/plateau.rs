//! A rate that falls when training gets no better.

use super::Schedule;
use crate::error::Result;
use crate::state::State;

/// The rate times `factor` whenever the metric has not become better for more than `patience` steps. The metric comes
/// with [`Scheduler::step_with`](super::Scheduler::step_with).
///
/// `ReduceLROnPlateau { patience: 3, ..ReduceLROnPlateau::new() }` waits for three steps.
#[derive(Clone, Debug)]
pub struct ReduceLROnPlateau {
    /// What the rate is multiplied by.
    pub factor: f64,
    /// How many steps without progress are forgiven.
    pub patience: u64,
    /// How much better, as a part of the best metric, is progress.
    pub threshold: f64,
    /// How many steps after a reduction are not looked at.
    pub cooldown: u64,
    /// No rate falls below it.
    pub minimum: f64,
    /// Larger metrics are better, as with accuracies.
    pub larger_is_better: bool,
    /// What it has seen so far; nothing at first.
    pub seen: PlateauMemory,
}

/// What a [`ReduceLROnPlateau`] remembers from step to step.
#[derive(Clone, Debug, Default)]
pub struct PlateauMemory {
    best: Option<f64>,
    bad: u64,
    cooling: u64,
    reductions: u64,
}

impl Default for ReduceLROnPlateau {
    fn default() -> Self {
        ReduceLROnPlateau::new()
    }
}

impl ReduceLROnPlateau {
    /// PyTorch's defaults: a tenth after more than 10 steps without progress, for metrics that should become small.
    pub fn new() -> ReduceLROnPlateau {
        ReduceLROnPlateau {
            factor: 0.1,
            patience: 10,
            threshold: 1e-4,
            cooldown: 0,
            minimum: 0.0,
            larger_is_better: false,
            seen: PlateauMemory::default(),
        }
    }

    fn is_progress(&self, metric: f64) -> bool {
        match self.seen.best {
            None => !metric.is_nan(),
            Some(best) if self.larger_is_better => metric > best * (1.0 + self.threshold),
            Some(best) => metric < best * (1.0 - self.threshold),
        }
    }
}

impl Schedule for ReduceLROnPlateau {
    fn rate(&self, base: f64, _step: u64) -> f64 {
        let rate = base * self.factor.powf(self.seen.reductions as f64);
        rate.max(self.minimum.min(base))
    }

    fn observe(&mut self, metric: f64) {
        if self.is_progress(metric) {
            self.seen.best = Some(metric);
            self.seen.bad = 0;
        } else {
            self.seen.bad += 1;
        }
        if self.seen.cooling > 0 {
            self.seen.cooling -= 1;
            self.seen.bad = 0;
        }
        if self.seen.bad > self.patience {
            self.seen.reductions += 1;
            self.seen.cooling = self.cooldown;
            self.seen.bad = 0;
        }
    }

    fn state(&self) -> State {
        let PlateauMemory { best, bad, cooling, reductions } = self.seen;
        let counts = [("bad", bad), ("cooling", cooling), ("reductions", reductions)];
        let state = best.map_or_else(State::new, |best| State::new().with("best", best));
        counts.into_iter().fold(state, |state, (name, n)| state.with(name, n as i64))
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        let count = |name: &str| Ok::<u64, crate::Error>(state.int(name)?.max(0) as u64);
        let best = if state.values.contains_key("best") { Some(state.float("best")?) } else { None };
        let (bad, cooling, reductions) = (count("bad")?, count("cooling")?, count("reductions")?);
        self.seen = PlateauMemory { best, bad, cooling, reductions };
        Ok(())
    }
}
