//! Learning rates that change from step to step. A schedule is a pure function of the step wherever it can be; a
//! [`Scheduler`] counts the steps and hands the rates to an optimizer.

mod compose;
mod cosine;
mod decay;
mod one_cycle;
mod plateau;

pub use compose::{ChainedLR, SequentialLR, WarmupLR};
pub use cosine::CosineAnnealingLR;
pub use decay::{ExponentialLR, LinearLR, MultiStepLR, StepLR};
pub use one_cycle::OneCycleLR;
pub use plateau::{PlateauOptions, ReduceLROnPlateau};

use super::Optimizer;
use crate::call::Call;
use crate::error::Result;
use crate::state::{State, Stateful};

/// A learning rate as a function of the step.
pub trait Schedule: Send {
    /// The rate at a step, counted from 0, of a group whose own rate is `base`.
    fn rate(&self, base: f64, step: u64) -> f64;

    /// Takes note of how well training goes at a step; most schedules do not care.
    fn observe(&mut self, metric: f64, step: u64) {
        let _ = (metric, step);
    }

    /// Whether the rate depends on what [`observe`](Self::observe) is told, as only few do. A [`Trainer`] refuses to run
    /// such a schedule without anything to tell it.
    ///
    /// [`Trainer`]: crate::train::Trainer
    fn watches(&self) -> bool {
        false
    }

    /// Whether it hopes for metrics that grow, as accuracies do. A [`Trainer`] refuses such a schedule: what it tells is
    /// the validation loss.
    ///
    /// [`Trainer`]: crate::train::Trainer
    fn larger_is_better(&self) -> bool {
        false
    }

    /// What it remembers besides the step; most schedules nothing.
    fn state(&self) -> State {
        State::new()
    }

    /// Goes on from what [`state`](Self::state) gave.
    fn load_state(&mut self, state: &State) -> Result<()> {
        let _ = state;
        Ok(())
    }
}

impl<S: Schedule + ?Sized> Schedule for Box<S> {
    fn rate(&self, base: f64, step: u64) -> f64 {
        (**self).rate(base, step)
    }

    fn observe(&mut self, metric: f64, step: u64) {
        (**self).observe(metric, step);
    }

    fn watches(&self) -> bool {
        (**self).watches()
    }

    fn larger_is_better(&self) -> bool {
        (**self).larger_is_better()
    }

    fn state(&self) -> State {
        (**self).state()
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        (**self).load_state(state)
    }
}

/// Drives the learning rates of an optimizer, each group's from the rate that it had at first.
///
/// ```
/// use volta::optim::{CosineAnnealingLR, Scheduler, WarmupLR};
/// use volta::{SGD, Tensor};
/// let w = Tensor::ones([3]).requires_grad(true);
/// let mut sgd = SGD::new(vec![w.clone()], 0.1, 0.9, 0.0);
/// let mut scheduler = Scheduler::new(WarmupLR::new(4, CosineAnnealingLR::new(96, 0.0)), &mut sgd);
/// assert_eq!(sgd.learning_rates(), [0.02]);
/// for _ in 0..4 {
///     sgd.zero_grad();
///     w.square().sum().backward();
///     sgd.step();
///     scheduler.step(&mut sgd);
/// }
/// assert_eq!(scheduler.rate(), 0.1);
/// ```
pub struct Scheduler {
    schedule: Box<dyn Schedule>,
    step: u64,
    /// The rate that each group started from.
    base: Vec<f64>,
}

impl Scheduler {
    /// For the rates that the optimizer's groups have now; sets those of the first step.
    pub fn new(schedule: impl Schedule + 'static, optimizer: &mut dyn Optimizer) -> Scheduler {
        let mut new = Scheduler { schedule: Box::new(schedule), step: 0, base: Vec::new() };
        new.apply(optimizer);
        new
    }

    /// Goes on to the next step: call it after every step of the optimizer (or every epoch, if that is what the
    /// schedule counts).
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) {
        self.step += 1;
        self.apply(optimizer);
    }

    /// [`step`](Self::step) for schedules that look at how well training goes, such as [`ReduceLROnPlateau`].
    pub fn step_with(&mut self, metric: f64, optimizer: &mut dyn Optimizer) {
        self.schedule.observe(metric, self.step);
        self.step(optimizer);
    }

    /// Tells the schedule how well training goes, without a step: where steps are counted more often than something
    /// is measured.
    pub fn observe(&mut self, metric: f64, optimizer: &mut dyn Optimizer) {
        self.schedule.observe(metric, self.step);
        self.apply(optimizer);
    }

    /// Whether the schedule must be told how well training goes.
    pub fn watches(&self) -> bool {
        self.schedule.watches()
    }

    /// Whether the schedule takes larger metrics for better ones.
    pub fn larger_is_better(&self) -> bool {
        self.schedule.larger_is_better()
    }

    /// The rate of the first group now.
    pub fn rate(&self) -> f64 {
        self.base.first().map_or(f64::NAN, |&base| self.schedule.rate(base, self.step))
    }

    /// The number of steps so far.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Multiplies the rates that the groups started from, and so those of all steps to come.
    pub(crate) fn scale_rates(&mut self, factor: f64, optimizer: &mut dyn Optimizer) {
        self.apply(optimizer);
        self.base.iter_mut().for_each(|base| *base *= factor);
        self.apply(optimizer);
    }

    /// Sets the rates of the step that comes next.
    pub(crate) fn apply(&mut self, optimizer: &mut dyn Optimizer) {
        // Groups that were added meanwhile start from the rate that they were added with.
        let rates = optimizer.learning_rates();
        self.base.extend(rates.iter().skip(self.base.len()));
        let rates: Vec<f64> = self.base.iter().map(|&base| self.schedule.rate(base, self.step)).collect();
        optimizer.set_learning_rates(&rates);
    }
}

impl Stateful for Scheduler {
    /// `step`, the rate that group 0 started from as `base.0`, and what the schedule remembers as `schedule.…`.
    fn state(&self) -> State {
        let state = State::new().with("step", self.step as i64).with("groups", self.base.len() as i64);
        let bases = self.base.iter().enumerate();
        bases
            .fold(state, |state, (g, &base)| state.with(&format!("base.{g}"), base))
            .with_part("schedule", &self.schedule.state())
    }

    #[track_caller]
    fn load_state(&mut self, state: &State) -> Result<()> {
        let _call = Call::enter("load_state");
        let step = state.int("step")?.max(0) as u64;
        let base: Vec<f64> =
            (0..state.int("groups")?).map(|g| state.float(&format!("base.{g}"))).collect::<Result<_>>()?;
        self.schedule.load_state(&state.part("schedule"))?;
        (self.step, self.base) = (step, base);
        Ok(())
    }
}
