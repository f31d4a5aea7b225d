//! A rate that falls when training gets no better.

use super::Schedule;
use crate::error::Result;
use crate::state::State;

/// The rate times a factor whenever the metric has not become better for some steps. The metric comes with
/// [`Scheduler::step_with`](super::Scheduler::step_with); in a [`Trainer`](crate::train::Trainer) it is the loss of
/// every validation, and a step here is a validation there.
///
/// `ReduceLROnPlateau::new(PlateauOptions { patience: 3, ..Default::default() })` waits for three steps.
#[derive(Clone, Debug)]
pub struct ReduceLROnPlateau {
    options: PlateauOptions,
    seen: Seen,
}

/// The options of [`ReduceLROnPlateau`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlateauOptions {
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
}

impl Default for PlateauOptions {
    /// As in PyTorch: a tenth after more than 10 steps without progress, for metrics that should become small.
    fn default() -> Self {
        let (factor, patience, threshold) = (0.1, 10, 1e-4);
        PlateauOptions { factor, patience, threshold, cooldown: 0, minimum: 0.0, larger_is_better: false }
    }
}

#[derive(Clone, Debug, Default)]
struct Seen {
    best: Option<f64>,
    bad: u64,
    cooling: u64,
    reductions: u64,
}

impl ReduceLROnPlateau {
    /// With options.
    pub fn new(options: PlateauOptions) -> ReduceLROnPlateau {
        ReduceLROnPlateau { options, seen: Seen::default() }
    }

    fn is_progress(&self, metric: f64) -> bool {
        let threshold = self.options.threshold;
        match self.seen.best {
            None => !metric.is_nan(),
            Some(best) if self.options.larger_is_better => metric > best * (1.0 + threshold),
            Some(best) => metric < best * (1.0 - threshold),
        }
    }
}

impl Schedule for ReduceLROnPlateau {
    fn rate(&self, base: f64, _step: u64) -> f64 {
        let rate = base * self.options.factor.powf(self.seen.reductions as f64);
        rate.max(self.options.minimum.min(base))
    }

    fn observe(&mut self, metric: f64, _: u64) {
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
        if self.seen.bad > self.options.patience {
            self.seen.reductions += 1;
            self.seen.cooling = self.options.cooldown;
            self.seen.bad = 0;
        }
    }

    fn watches(&self) -> bool {
        true
    }

    fn larger_is_better(&self) -> bool {
        self.options.larger_is_better
    }

    fn state(&self) -> State {
        let Seen { best, bad, cooling, reductions } = self.seen;
        let counts = [("bad", bad), ("cooling", cooling), ("reductions", reductions)];
        let state = best.map_or_else(State::new, |best| State::new().with("best", best));
        counts.into_iter().fold(state, |state, (name, n)| state.with(name, n as i64))
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        let count = |name: &str| Ok::<u64, crate::Error>(state.int(name)?.max(0) as u64);
        let best = if state.values.contains_key("best") { Some(state.float("best")?) } else { None };
        let (bad, cooling, reductions) = (count("bad")?, count("cooling")?, count("reductions")?);
        self.seen = Seen { best, bad, cooling, reductions };
        Ok(())
    }
}
