//! Cosine annealing, with and without restarts (Loshchilov and Hutter, 2017).

use super::Schedule;
use std::f64::consts::PI;

/// Down from the base rate to a minimum along half a cosine. Without restarts it stays there; with them it begins anew.
#[derive(Clone, Debug)]
pub struct CosineAnnealingLR {
    /// How many steps the way down takes.
    pub steps: u64,
    /// The rate at its end.
    pub minimum: f64,
    /// With restarts: how many times as long as the one before each way down is, at least 1.
    pub restarts: Option<u64>,
}

impl CosineAnnealingLR {
    /// Down to `minimum` within `steps`.
    pub fn new(steps: u64, minimum: f64) -> CosineAnnealingLR {
        CosineAnnealingLR { steps, minimum, restarts: None }
    }

    /// Begins anew after each way down; the next one takes `longer` times as many steps (1 for as many).
    #[must_use]
    pub fn with_restarts(self, longer: u64) -> CosineAnnealingLR {
        CosineAnnealingLR { restarts: Some(longer.max(1)), ..self }
    }
}

impl Schedule for CosineAnnealingLR {
    fn rate(&self, base: f64, step: u64) -> f64 {
        let (mut at, mut steps) = (step, self.steps.max(1));
        match self.restarts {
            None => at = at.min(steps),
            Some(0 | 1) => at %= steps,
            Some(longer) => {
                while at >= steps {
                    at -= steps;
                    steps = steps.saturating_mul(longer);
                }
            }
        }
        let height = (1.0 + (PI * at as f64 / steps as f64).cos()) / 2.0;
        self.minimum + (base - self.minimum) * height
    }
}
