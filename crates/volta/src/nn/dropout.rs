//! Dropout.

use super::call::{forward, layer};
use super::{Mode, Module, Visitor};
use crate::error::Result;
use crate::tensor::Tensor;

/// Sets elements to zero at random while training, and passes its input on otherwise.
#[derive(Debug)]
pub struct Dropout {
    /// The probability of a zero; the others grow by 1/(1 − p).
    pub p: f64,
    /// Whether it trains.
    pub mode: Mode,
}

impl Dropout {
    /// Every element is zero with this probability.
    pub fn new(p: f64) -> Dropout {
        Dropout { p, mode: Mode::default() }
    }
}

impl Module for Dropout {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || x.try_dropout(self.p, self.mode.is_training()))
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("mode", &self.mode);
    }

    fn describe(&self) -> String {
        format!("p = {}", self.p)
    }
}
