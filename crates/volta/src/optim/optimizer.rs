//! What optimizers share: groups of parameters, what is remembered of each, and one plan for a whole step.

use super::Optimizer;
use super::rule::{Memory, Rule, Update, learning_rate};
use super::step_count::{Factor, StepCounters, Steps};
use crate::autograd::no_grad;
use crate::call::Call;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::shape::Shape;
use crate::tensor::{Tensor, try_realize_all};
use std::collections::HashSet;

/// An optimizer that moves its parameters by a [`Rule`], in groups that may have options of their own.
///
/// ```
/// use volta::{AdamW, Tensor};
/// use volta::optim::AdamWOptions;
/// let (w, b) = (Tensor::ones([2, 2]).requires_grad(true), Tensor::zeros([2]).requires_grad(true));
/// let mut adam = AdamW::with(vec![w], AdamWOptions { learning_rate: 0.01, ..Default::default() });
/// adam.add_group(vec![b], AdamWOptions { learning_rate: 0.02, weight_decay: 0.0, ..Default::default() });
/// adam.groups_mut()[0].options.weight_decay = 0.1;
/// assert_eq!(adam.learning_rates(), [0.01, 0.02]);
/// ```
pub struct RuleOptimizer<R> {
    /// Those of all groups, one group after the other.
    parameters: Vec<Tensor>,
    pub(super) groups: Vec<Group<R>>,
    pub(super) memories: Vec<Memory>,
    pub(super) clocks: StepCounters,
}

/// Parameters that share options.
pub struct Group<R> {
    parameters: Vec<Tensor>,
    /// What the next step goes by.
    pub options: R,
}

impl<R> Group<R> {
    /// The parameters of this group.
    pub fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }
}

impl<R: Rule> RuleOptimizer<R> {
    /// With options, for parameters that make up the first group.
    #[track_caller]
    pub fn with(parameters: Vec<Tensor>, options: R) -> Self {
        Self::try_with(parameters, options).unwrap_or_else(|e| e.raise())
    }

    /// [`with`](Self::with) that returns its error.
    #[track_caller]
    pub fn try_with(parameters: Vec<Tensor>, options: R) -> Result<Self> {
        let _call = Call::enter(R::NAME);
        let (groups, memories) = (Vec::new(), Vec::new());
        let mut new =
            RuleOptimizer { parameters: Vec::new(), groups, memories, clocks: StepCounters::default() };
        new.try_add_group(parameters, options)?;
        Ok(new)
    }

    /// More parameters, with options of their own.
    #[track_caller]
    pub fn add_group(&mut self, parameters: Vec<Tensor>, options: R) {
        self.try_add_group(parameters, options).unwrap_or_else(|e| e.raise());
    }

    /// [`add_group`](Self::add_group) that returns its error.
    #[track_caller]
    pub fn try_add_group(&mut self, parameters: Vec<Tensor>, options: R) -> Result<()> {
        let _call = Call::enter("add_group");
        options.check()?;
        let mut known: HashSet<usize> = self.parameters.iter().map(Tensor::address).collect();
        for p in &parameters {
            if !p.is_assignable() {
                bail!(
                    Argument,
                    "a parameter of shape {} is the result of an op and cannot get new values: make it with \
                     requires_grad(true)",
                    p.shape()
                );
            }
            if !known.insert(p.address()) {
                bail!(Argument, "a parameter of shape {} is there twice: it would move twice", p.shape());
            }
            options.accept(p)?;
        }
        let blank: Memory = R::STATE.iter().map(|_| None).collect();
        self.memories.resize(self.memories.len() + parameters.len(), blank);
        self.clocks.extend(parameters.len());
        self.parameters.extend(parameters.iter().cloned());
        self.groups.push(Group { parameters, options });
        Ok(())
    }

    /// All groups, in the order they were added.
    pub fn groups(&self) -> &[Group<R>] {
        &self.groups
    }

    /// All groups, to change their options.
    pub fn groups_mut(&mut self) -> &mut [Group<R>] {
        &mut self.groups
    }

    /// Gives new values to all parameters that have gradients; they are computed later.
    fn record_updates(&mut self, condition: Option<&Tensor>) -> Result<()> {
        let gradients: Vec<Option<Tensor>> = self.parameters.iter().map(Tensor::grad).collect();
        let group_of: Vec<usize> = self
            .groups
            .iter()
            .enumerate()
            .flat_map(|(g, group)| group.parameters.iter().map(move |_| g))
            .collect();
        let stepping = self
            .parameters
            .iter()
            .enumerate()
            .filter(|(k, _)| gradients[*k].is_some() && self.groups[group_of[*k]].options.counts());
        let steps = self.clocks.advance(stepping.map(|(k, p)| (k, p.device())), condition)?;

        // What a formula computes once serves all parameters of a group that have made equally many steps.
        let mut classes: Vec<(Class, Vec<Update<'_>>)> = Vec::new();
        let each = self.parameters.iter().zip(gradients).zip(&mut self.memories).enumerate();
        for (k, ((parameter, gradient), memory)) in each {
            let Some(gradient) = gradient else { continue };
            let class = Class {
                group: group_of[k],
                clock: self.clocks.number(k),
                device: parameter.device(),
                dtype: parameter.dtype(),
            };
            let update = Update { parameter, gradient, memory, condition };
            match classes.iter_mut().find(|(c, _)| *c == class) {
                Some((_, updates)) => updates.push(update),
                None => classes.push((class, vec![update])),
            }
        }
        for (class, mut updates) in classes {
            let uncounted = Factor::Number(1.0);
            let count = steps.get(class.clock).and_then(Option::as_ref).unwrap_or(&uncounted);
            let steps = Steps::new(count, class.dtype == DType::F64)?;
            self.groups[class.group].options.update(&steps, &mut updates)?;
        }
        Ok(())
    }
}

/// A condition as formulas read it: one truth value without axes.
fn truth(condition: &Tensor) -> Result<Tensor> {
    if condition.numel() != 1 {
        bail!(Shape, "a step has one condition, and this one has shape {}", condition.shape());
    }
    condition.cast(DType::Bool)?.reshape_to(Shape::of(&[]))
}

/// What parameters have in common that share a formula and its numbers.
#[derive(PartialEq)]
struct Class {
    group: usize,
    clock: usize,
    device: Device,
    dtype: DType,
}

impl<R: Rule> Optimizer for RuleOptimizer<R> {
    fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    #[track_caller]
    fn try_step_if(&mut self, condition: Option<&Tensor>) -> Result<()> {
        let _call = Call::enter("step");
        let condition = condition.map(truth).transpose()?;
        no_grad(|| self.record_updates(condition.as_ref()))?;
        let mut halves = Vec::new();
        for stepped in self.parameters.iter().filter(|p| p.grad().is_some()) {
            halves.extend(stepped.half_copy()?.map(|half| (stepped, half)));
        }
        let all = self.parameters.iter().chain(halves.iter().map(|(_, half)| half));
        try_realize_all(&all.cloned().collect::<Vec<_>>())?;
        halves.iter().for_each(|(parameter, half)| parameter.keep_half(half));
        Ok(())
    }

    fn is_elementwise(&self) -> bool {
        R::IS_ELEMENTWISE
    }

    fn parameter_of_state(&self, name: &str) -> Option<usize> {
        let (k, what) = name.split_once('.')?;
        let k = k.parse().ok().filter(|k| *k < self.parameters.len())?;
        R::STATE.contains(&what).then_some(k)
    }

    fn learning_rates(&self) -> Vec<f64> {
        self.groups.iter().map(|group| *learning_rate(&mut group.options.clone())).collect()
    }

    fn set_learning_rates(&mut self, rates: &[f64]) {
        for (group, rate) in self.groups.iter_mut().zip(rates) {
            *learning_rate(&mut group.options) = *rate;
        }
    }
}
