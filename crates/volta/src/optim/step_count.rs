//! How many steps parameters have made: bias corrections and decaying rates are computed from it.
//!
//! A step that a condition on the device skipped must not count, and nobody reads the condition back. So a count is a
//! number here until a condition is given, and a tensor from then on.

use super::assign_if;
use crate::default_device::with_device;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// The steps of parameters that always stepped together.
pub(super) enum Clock {
    /// What depends on it are arguments of the plan.
    Host(i64),
    /// What depends on it is computed in the plan.
    Device(Tensor),
}

impl Clock {
    fn split(&self) -> Clock {
        match self {
            Clock::Host(count) => Clock::Host(*count),
            Clock::Device(count) => Clock::Device(count.variable()),
        }
    }

    /// One more step, if the condition holds; its number.
    fn tick(&mut self, device: Device, condition: Option<&Tensor>) -> Result<Factor> {
        if let (Clock::Host(count), Some(_)) = (&*self, condition) {
            *self = Clock::Device(with_device(device, || Tensor::scalar(*count)));
        }
        match self {
            Clock::Host(count) => {
                *count += 1;
                Ok(Factor::Number(*count as f64))
            }
            Clock::Device(count) => {
                if count.device() != device {
                    count.try_move(device, DType::I32)?;
                }
                let next = count.try_add(1)?;
                assign_if(count, &next, condition)?;
                Ok(Factor::Tensor(next))
            }
        }
    }
}

/// The clocks of all parameters of an optimizer. Those that step together share one; it is split where they part.
#[derive(Default)]
pub(super) struct StepCounters {
    clocks: Vec<Clock>,
    /// How many parameters go by each.
    members: Vec<usize>,
    /// Which one each parameter goes by.
    of: Vec<usize>,
}

impl StepCounters {
    /// For more parameters, which have made no step yet.
    pub fn extend(&mut self, parameters: usize) {
        if parameters > 0 {
            self.clocks.push(Clock::Host(0));
            self.members.push(parameters);
            self.of.resize(self.of.len() + parameters, self.clocks.len() - 1);
        }
    }

    /// From the clock of each parameter; those of one kind become one.
    pub fn from_each<K: PartialEq>(each: impl IntoIterator<Item = (K, Clock)>) -> StepCounters {
        let (mut all, mut kinds) = (StepCounters::default(), Vec::new());
        for (kind, clock) in each {
            let place = kinds.iter().position(|k| *k == kind).unwrap_or_else(|| {
                kinds.push(kind);
                all.clocks.push(clock);
                all.members.push(0);
                all.clocks.len() - 1
            });
            all.members[place] += 1;
            all.of.push(place);
        }
        all
    }

    /// The number of the clock of a parameter.
    pub fn number(&self, parameter: usize) -> usize {
        self.of[parameter]
    }

    pub fn clock(&self, parameter: usize) -> &Clock {
        &self.clocks[self.of[parameter]]
    }

    /// Lets the clocks of these parameters go on; the steps of each clock that did.
    pub fn advance(
        &mut self,
        stepping: impl Iterator<Item = (usize, Device)>,
        condition: Option<&Tensor>,
    ) -> Result<Vec<Option<Factor>>> {
        let mut parties: Vec<((usize, Device), Vec<usize>)> = Vec::new();
        for (k, device) in stepping {
            let party = (self.of[k], device);
            match parties.iter_mut().find(|(p, _)| *p == party) {
                Some((_, who)) => who.push(k),
                None => parties.push((party, vec![k])),
            }
        }
        let mut steps = Vec::new();
        for ((mut clock, device), who) in parties {
            if who.len() < self.members[clock] {
                self.members[clock] -= who.len();
                self.clocks.push(self.clocks[clock].split());
                self.members.push(who.len());
                clock = self.clocks.len() - 1;
                who.iter().for_each(|&k| self.of[k] = clock);
            }
            steps.resize_with(self.clocks.len(), || None);
            steps[clock] = Some(self.clocks[clock].tick(device, condition)?);
        }
        Ok(steps)
    }
}

/// The number of the step that is being made.
pub struct Steps(Factor);

impl Steps {
    /// `wide` computes what depends on it in f64.
    pub(super) fn new(count: &Factor, wide: bool) -> Result<Steps> {
        let dtype = if wide { DType::F64 } else { DType::F32 };
        Ok(Steps(count.each(|n| n, |t| t.try_to_dtype(dtype))?))
    }

    /// 1 for the first step.
    pub fn count(&self) -> &Factor {
        &self.0
    }

    /// 1 − βᵗ: how much of its final weight a running average has got.
    pub fn weight(&self, beta: f64) -> Result<Factor> {
        if beta == 0.0 {
            return Ok(Factor::Number(1.0));
        }
        // In f32 little would be left of 1 − βᵗ itself while t is small.
        let log = beta.ln();
        self.0.each(|t| -(t * log).exp_m1(), |t| t.try_mul(log)?.try_expm1()?.try_neg())
    }

    /// One number for the first step, another one for the others.
    pub fn first_or(&self, first: f64, later: f64) -> Result<Factor> {
        self.0.each(
            |t| if t == 1.0 { first } else { later },
            |t| t.try_eq(1.0)?.try_where_(t.constant_like(first), t.constant_like(later)),
        )
    }
}

/// A number that is known here, or only on the device.
#[derive(Clone)]
pub enum Factor {
    /// Known here: an argument of the plan.
    Number(f64),
    /// A tensor without axes.
    Tensor(Tensor),
}

impl Factor {
    fn each(
        &self,
        number: impl FnOnce(f64) -> f64,
        tensor: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Factor> {
        Ok(match self {
            Factor::Number(x) => Factor::Number(number(*x)),
            Factor::Tensor(t) => Factor::Tensor(tensor(t)?),
        })
    }

    /// Times a number.
    pub fn times(&self, by: f64) -> Result<Factor> {
        self.each(|x| x * by, |t| t.try_mul(by))
    }

    /// Plus a number.
    pub fn plus(&self, more: f64) -> Result<Factor> {
        self.each(|x| x + more, |t| t.try_add(more))
    }

    /// Its square root.
    pub fn sqrt(&self) -> Result<Factor> {
        self.each(f64::sqrt, Tensor::try_sqrt)
    }

    /// 1 by it.
    pub fn recip(&self) -> Result<Factor> {
        self.each(f64::recip, Tensor::try_recip)
    }

    /// Divided by another one.
    pub fn over(&self, other: &Factor) -> Result<Factor> {
        match (self, other) {
            (Factor::Number(a), Factor::Number(b)) => Ok(Factor::Number(a / b)),
            (a, Factor::Number(b)) => a.times(b.recip()),
            (Factor::Number(a), b) => b.recip()?.times(*a),
            (Factor::Tensor(a), Factor::Tensor(b)) => Ok(Factor::Tensor(a.try_div(b)?)),
        }
    }
}
