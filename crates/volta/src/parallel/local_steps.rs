//! Steps that ranks make by themselves, between those behind which they agree.

use crate::error::{Result, bail};

/// Steps that every rank makes by itself, as in DiLoCo (Douillard and others, 2023): after so many of them, an outer optimizer takes the
/// mean of what the ranks have moved their parameters by for a gradient, and all go on from what it makes of it. That is one exchange in
/// so many steps, for slow networks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalSteps {
    /// How many.
    pub every: u64,
    /// How far the outer optimizer goes. 1 without momentum takes the mean of all ranks.
    pub learning_rate: f64,
    /// How much of the outer optimizer's velocity stays: it is SGD with Nesterov's momentum.
    pub momentum: f64,
}

impl Default for LocalSteps {
    fn default() -> Self {
        LocalSteps { every: 50, learning_rate: 0.7, momentum: 0.9 }
    }
}

impl LocalSteps {
    /// An error if a number makes no sense.
    pub fn check(&self) -> Result<()> {
        if self.every == 0 {
            bail!(Argument, "ranks agree after at least one step");
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            bail!(Argument, "the outer learning rate is {}, and must be more than 0", self.learning_rate);
        }
        if !(0.0..1.0).contains(&self.momentum) {
            bail!(Argument, "the outer momentum is {}, and must be from 0 on and below 1", self.momentum);
        }
        Ok(())
    }
}
