//! What tells one optimizer from another: its options and its formula. Everything else they share.

use super::assign_if;
use super::clock::Steps;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// The options of an optimizer and the formula of its step. [`RuleOptimizer`](super::RuleOptimizer) makes an optimizer of
/// it: groups, state, saving, conditions and the one plan for all parameters come with that.
///
/// ```
/// use volta::optim::{Rule, RuleOptimizer, Setting, Steps, Update};
/// use volta::{Optimizer, Result, Tensor};
///
/// /// Moves every parameter by the sign of its gradient.
/// #[derive(Clone)]
/// struct SignDescent {
///     learning_rate: f64,
/// }
///
/// impl Rule for SignDescent {
///     const NAME: &'static str = "SignDescent";
///     const STATE: &'static [&'static str] = &[];
///
///     fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
///         vec![("learning_rate", Setting::Number(&mut self.learning_rate))]
///     }
///
///     fn update(&self, _steps: &Steps, updates: &mut [Update<'_>]) -> Result<()> {
///         for u in updates {
///             let move_by = u.gradient().try_sign()?.try_mul(self.learning_rate)?;
///             u.set(&u.parameter().try_sub(&move_by)?)?;
///         }
///         Ok(())
///     }
/// }
///
/// let w = Tensor::vector(&[1.0, -2.0]).requires_grad(true);
/// let mut optimizer = RuleOptimizer::with(vec![w.clone()], SignDescent { learning_rate: 0.5 });
/// w.square().sum().backward();
/// optimizer.step();
/// assert_eq!(w.to_vec::<f32>(), [0.5, -1.5]);
/// ```
pub trait Rule: Clone {
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

    /// Gives new values to parameters that have made equally many steps. Values are recorded and not computed here.
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

/// The learning rate among the options of a rule.
pub(super) fn learning_rate<R: Rule>(rule: &mut R) -> &mut f64 {
    let found = rule.settings().into_iter().find_map(|(name, setting)| match setting {
        Setting::Number(rate) if name == "learning_rate" => Some(rate),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("the settings of {} have no number \"learning_rate\"", R::NAME))
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

    /// What is remembered under the name [`Rule::STATE`]`[k]`; zeros at first.
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

/// Whether what depends on the step is computed in f64.
pub(super) fn is_wide(parameter: &Tensor) -> bool {
    parameter.dtype() == DType::F64
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
