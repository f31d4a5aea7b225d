//! Schedules made of schedules.

use super::Schedule;
use crate::error::Result;
use crate::state::State;

/// Up to the base rate in a straight line, then another schedule, which counts its own steps.
pub struct WarmupLR<S> {
    steps: u64,
    then: S,
}

impl<S: Schedule> WarmupLR<S> {
    /// `steps` lower rates, 1, 2, … parts of `steps + 1`, and then what `then` says.
    pub fn new(steps: u64, then: S) -> WarmupLR<S> {
        WarmupLR { steps, then }
    }
}

impl<S: Schedule> Schedule for WarmupLR<S> {
    fn rate(&self, base: f64, step: u64) -> f64 {
        match step.checked_sub(self.steps) {
            Some(step) => self.then.rate(base, step),
            None => base * (step + 1) as f64 / (self.steps + 1) as f64,
        }
    }

    fn observe(&mut self, metric: f64, step: u64) {
        if let Some(step) = step.checked_sub(self.steps) {
            self.then.observe(metric, step);
        }
    }

    fn watches(&self) -> bool {
        self.then.watches()
    }

    fn larger_is_better(&self) -> bool {
        self.then.larger_is_better()
    }

    fn state(&self) -> State {
        self.then.state()
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        self.then.load_state(state)
    }
}

/// Several schedules, and what they remember under their numbers.
fn states<'a>(parts: impl Iterator<Item = &'a dyn Schedule>) -> State {
    parts.enumerate().fold(State::new(), |all, (k, part)| all.with_part(&k.to_string(), &part.state()))
}

/// One schedule after the other; each counts its own steps.
pub struct SequentialLR {
    /// With the step at which each begins.
    parts: Vec<(u64, Box<dyn Schedule>)>,
}

impl SequentialLR {
    /// Begins with `first`.
    pub fn new(first: impl Schedule + 'static) -> SequentialLR {
        SequentialLR { parts: vec![(0, Box::new(first))] }
    }

    /// Goes on with another schedule from a step on, which lies behind those before.
    #[must_use]
    pub fn then(mut self, from: u64, next: impl Schedule + 'static) -> SequentialLR {
        self.parts.push((from, Box::new(next)));
        self
    }
}

impl SequentialLR {
    /// The part whose turn it is.
    fn now(&self, step: u64) -> usize {
        self.parts.iter().rposition(|(from, _)| *from <= step).unwrap_or(0)
    }
}

impl Schedule for SequentialLR {
    fn rate(&self, base: f64, step: u64) -> f64 {
        let (from, part) = &self.parts[self.now(step)];
        part.rate(base, step - from)
    }

    fn observe(&mut self, metric: f64, step: u64) {
        let now = self.now(step);
        let (from, part) = &mut self.parts[now];
        part.observe(metric, step - *from);
    }

    fn watches(&self) -> bool {
        self.parts.iter().any(|(_, part)| part.watches())
    }

    fn larger_is_better(&self) -> bool {
        self.parts.iter().any(|(_, part)| part.larger_is_better())
    }

    fn state(&self) -> State {
        states(self.parts.iter().map(|(_, part)| &**part))
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        let mut parts = self.parts.iter_mut().enumerate();
        parts.try_for_each(|(k, (_, part))| part.load_state(&state.part(&k.to_string())))
    }
}

/// Schedules at the same time: what one gives is the base rate of the next. Their factors multiply.
#[derive(Default)]
pub struct ChainedLR {
    parts: Vec<Box<dyn Schedule>>,
}

impl ChainedLR {
    /// Begins with `first`.
    pub fn new(first: impl Schedule + 'static) -> ChainedLR {
        ChainedLR { parts: vec![Box::new(first)] }
    }

    /// Changed by another schedule as well.
    #[must_use]
    pub fn and(mut self, other: impl Schedule + 'static) -> ChainedLR {
        self.parts.push(Box::new(other));
        self
    }
}

impl Schedule for ChainedLR {
    fn rate(&self, base: f64, step: u64) -> f64 {
        self.parts.iter().fold(base, |rate, part| part.rate(rate, step))
    }

    fn observe(&mut self, metric: f64, step: u64) {
        self.parts.iter_mut().for_each(|part| part.observe(metric, step));
    }

    fn watches(&self) -> bool {
        self.parts.iter().any(|part| part.watches())
    }

    fn larger_is_better(&self) -> bool {
        self.parts.iter().any(|part| part.larger_is_better())
    }

    fn state(&self) -> State {
        states(self.parts.iter().map(|part| &**part))
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        let mut parts = self.parts.iter_mut().enumerate();
        parts.try_for_each(|(k, part)| part.load_state(&state.part(&k.to_string())))
    }
}
