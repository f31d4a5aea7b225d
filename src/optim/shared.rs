//! A number that every parameter of a step is combined with.

use super::clock::Factor;
use crate::error::Result;
use crate::tensor::{Operand, Tensor};
use smallvec::SmallVec;
use std::cell::RefCell;

/// One constant for all parameters, however many: it is recorded once, and is one argument of the plan.
pub struct Shared {
    factor: Factor,
    /// For each type and device that asked.
    made: RefCell<SmallVec<[Tensor; 1]>>,
}

impl From<f64> for Shared {
    fn from(number: f64) -> Shared {
        Factor::Number(number).into()
    }
}

impl From<Factor> for Shared {
    fn from(factor: Factor) -> Shared {
        Shared { factor, made: RefCell::default() }
    }
}

impl Shared {
    /// As the other operand of an op on `x`.
    pub fn of(&self, x: &Tensor) -> Result<Operand> {
        let (dtype, device) = (x.dtype(), x.device());
        let mut made = self.made.borrow_mut();
        if let Some(known) = made.iter().find(|t| t.dtype() == dtype && t.device() == device) {
            return Ok(known.into());
        }
        let new = match &self.factor {
            Factor::Number(number) => x.constant(*number, crate::shape::Shape::of(&[]), dtype),
            Factor::Tensor(t) => t.try_to_dtype(dtype)?,
        };
        made.push(new.clone());
        Ok(new.into())
    }
}
