//! The one-cycle policy (Smith and Topin, 2018).

use super::Schedule;
use std::f64::consts::PI;

/// Up to the base rate and down to almost nothing, along cosines, within a known number of steps. PyTorch's `max_lr` is
/// the rate that the optimizer has; its momentum does not change here.
///
/// `OneCycleLR { up: 0.25, ..OneCycleLR::new(1000) }` takes 250 steps up.
#[derive(Clone, Debug)]
pub struct OneCycleLR {
    /// How many steps there are in all.
    pub steps: u64,
    /// The part of them that goes up.
    pub up: f64,
    /// The base rate by the first one.
    pub start_divisor: f64,
    /// The first rate by the last one.
    pub final_divisor: f64,
    /// Straight lines instead of cosines.
    pub linear: bool,
}

impl OneCycleLR {
    /// PyTorch's defaults: 30 % of the steps go up, from a 25th; the last rate is the first one by 10⁴.
    pub fn new(steps: u64) -> OneCycleLR {
        OneCycleLR { steps, up: 0.3, start_divisor: 25.0, final_divisor: 1e4, linear: false }
    }
}

impl Schedule for OneCycleLR {
    fn rate(&self, base: f64, step: u64) -> f64 {
        let first = base / self.start_divisor;
        let last = first / self.final_divisor;
        let top = self.up * self.steps as f64 - 1.0;
        let end = self.steps as f64 - 1.0;
        let step = (step as f64).min(end);
        let (from, to, part) =
            if step <= top { (first, base, step / top) } else { (base, last, (step - top) / (end - top)) };
        let part = if part.is_finite() { part } else { 1.0 };
        let part = if self.linear { part } else { (1.0 - (PI * part).cos()) / 2.0 };
        from + (to - from) * part
    }
}
