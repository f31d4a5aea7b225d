//! What tells one optimizer from another: its options and its formula. Everything else they share.

use super::assign_if;
use super::step_count::Steps;
use crate::error::{Result, bail};
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// The options of an optimizer, and what it remembers. With a formula for its step, an [`Elementwise`](super::Elementwise)
/// one or a [`Rule`], [`RuleOptimizer`](super::RuleOptimizer) makes an optimizer of it: groups, state, saving,
/// conditions and the one plan for all parameters come with that.
pub trait Options: Clone {
    /// The optimizer's name.
    const NAME: &'static str;

    /// What is remembered for each parameter, in its shape and type.
    const STATE: &'static [&'static str];

    /// Every option by name: what is saved and loaded. One of them is the number `learning_rate`.
    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)>;

    /// An error if an option makes no sense.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// An error if the formula does not fit a parameter.
    fn accept(&self, parameter: &Tensor) -> Result<()> {
        let _ = parameter;
        Ok(())
    }

    /// Whether the formula asks for the number of the step.
    fn counts(&self) -> bool {
        true
    }
}

/// The formula of a step, in tensors. What does the same to every element is better an [`Elementwise`](super::Elementwise)
/// formula.
pub trait Rule: Options {
    /// Whether every element moves by its own gradient and memory alone.
    const IS_ELEMENTWISE: bool = false;

    /// Gives new values to parameters that have made equally many steps and share a type and a device. Values are
    /// recorded and not computed here.
    fn update(&self, steps: &Steps, updates: &mut [Update<'_>]) -> Result<()>;
}

/// An option.
pub enum Setting<'a> {
    /// A number.
    Number(&'a mut f64),
    /// A whole number.
    Whole(&'a mut u32),
    /// Yes or no.
    Flag(&'a mut bool),
}

/// The learning rate among the options.
pub(super) fn learning_rate<O: Options>(options: &mut O) -> &mut f64 {
    let found = options.settings().into_iter().find_map(|(name, setting)| match setting {
        Setting::Number(rate) if name == "learning_rate" => Some(rate),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("the settings of {} have no number \"learning_rate\"", O::NAME))
}

/// What an optimizer remembers of one parameter.
pub(super) type Memory = SmallVec<[Option<Tensor>; 3]>;

/// A parameter that is about to get a new value.
pub struct Update<'a> {
    pub(super) parameter: &'a Tensor,
    pub(super) gradient: Tensor,
    pub(super) memory: &'a mut Memory,
    pub(super) condition: Option<&'a Tensor>,
}

impl<'a> Update<'a> {
    /// The parameter; its old value until [`set`](Self::set).
    pub fn parameter(&self) -> &'a Tensor {
        self.parameter
    }

    /// Its gradient.
    pub fn gradient(&self) -> Tensor {
        self.gradient.clone()
    }

    /// What is remembered under the name [`Options::STATE`]`[k]`; zeros at first.
    pub fn state(&mut self, k: usize) -> Result<Tensor> {
        self.state_or(k, 0.0)
    }

    /// [`state`](Self::state) that is `initial` everywhere at first.
    pub fn state_or(&mut self, k: usize, initial: f64) -> Result<Tensor> {
        let p = self.parameter;
        let state = self.memory[k].get_or_insert_with(|| p.constant_like(initial).variable());
        follow(state, p)?;
        Ok(state.clone())
    }

    /// Remembers another value, unless the step is skipped.
    pub fn set_state(&mut self, k: usize, value: &Tensor) -> Result<()> {
        assign_if(&self.state(k)?, value, self.condition)
    }

    /// Gives the parameter its new value, unless the step is skipped.
    pub fn set(&self, value: &Tensor) -> Result<()> {
        assign_if(self.parameter, value, self.condition)
    }
}

/// Moves state to where its parameter is now, and to its type.
pub(super) fn follow(state: &Tensor, parameter: &Tensor) -> Result<()> {
    let (device, dtype) = (parameter.device(), parameter.dtype());
    if (state.device(), state.dtype()) == (device, dtype) { Ok(()) } else { state.try_move(device, dtype) }
}

/// An error unless each of these options is a number from 0 on.
pub(super) fn not_negative(options: &[(&str, f64)]) -> Result<()> {
    match options.iter().find(|(_, x)| !(*x >= 0.0 && x.is_finite())) {
        Some((name, x)) => bail!(Argument, "the {name} is {x}, and must be a number from 0 on"),
        None => Ok(()),
    }
}

/// An error unless each of these options is a number from 0 on and below 1.
pub(super) fn below_one(options: &[(&str, f64)]) -> Result<()> {
    match options.iter().find(|(_, x)| !(0.0..1.0).contains(x)) {
        Some((name, x)) => bail!(Argument, "the {name} is {x}, and must be from 0 on and below 1"),
        None => Ok(()),
    }
}
