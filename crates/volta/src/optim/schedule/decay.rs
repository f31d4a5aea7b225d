//! Rates that only fall, or go from one factor to another.

use super::Schedule;

/// The rate times `factor` after every `every` steps.
#[derive(Clone, Debug)]
pub struct StepLR {
    /// How many steps the rate stays the same.
    pub every: u64,
    /// What it is multiplied by then.
    pub factor: f64,
}

impl StepLR {
    /// `StepLR::new(30, 0.1)`: a tenth after every 30 steps.
    pub fn new(every: u64, factor: f64) -> StepLR {
        StepLR { every, factor }
    }
}

impl Schedule for StepLR {
    fn rate(&self, base: f64, step: u64) -> f64 {
        base * self.factor.powf((step / self.every.max(1)) as f64)
    }
}

/// The rate times `factor` at every one of some steps.
#[derive(Clone, Debug)]
pub struct MultiStepLR {
    /// The steps at which the rate changes.
    pub milestones: Vec<u64>,
    /// What it is multiplied by there.
    pub factor: f64,
}

impl MultiStepLR {
    /// `MultiStepLR::new(&[30, 80], 0.1)`: a tenth from step 30 on, a hundredth from step 80 on.
    pub fn new(milestones: &[u64], factor: f64) -> MultiStepLR {
        MultiStepLR { milestones: milestones.to_vec(), factor }
    }
}

impl Schedule for MultiStepLR {
    fn rate(&self, base: f64, step: u64) -> f64 {
        let passed = self.milestones.iter().filter(|&&m| m <= step).count();
        base * self.factor.powf(passed as f64)
    }
}

/// The rate times `factor` after every step.
#[derive(Clone, Debug)]
pub struct ExponentialLR {
    /// What it is multiplied by.
    pub factor: f64,
}

impl ExponentialLR {
    /// With the factor from each step to the next.
    pub fn new(factor: f64) -> ExponentialLR {
        ExponentialLR { factor }
    }
}

impl Schedule for ExponentialLR {
    fn rate(&self, base: f64, step: u64) -> f64 {
        base * self.factor.powf(step as f64)
    }
}

/// The rate times a factor that goes from one number to another in a straight line, and stays there.
#[derive(Clone, Debug)]
pub struct LinearLR {
    /// The factor at first.
    pub from: f64,
    /// The factor at last.
    pub to: f64,
    /// How many steps it takes.
    pub steps: u64,
}

impl LinearLR {
    /// `LinearLR::new(1.0, 0.0, 100)`: down to nothing in 100 steps.
    pub fn new(from: f64, to: f64, steps: u64) -> LinearLR {
        LinearLR { from, to, steps }
    }
}

impl Schedule for LinearLR {
    fn rate(&self, base: f64, step: u64) -> f64 {
        if step >= self.steps {
            return base * self.to;
        }
        base * (self.from + (self.to - self.from) * step as f64 / self.steps as f64)
    }
}
