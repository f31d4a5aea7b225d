//! What a step of a run is made of, and how steps make epochs.

use crate::config::Duration;
use std::fmt;

/// The batches of an epoch, and how many of them make a step; the last step of an epoch has those that are left.
#[derive(Clone, Copy, Debug)]
pub struct EpochMath {
    /// Batches of an epoch, at least one.
    pub batches: u64,
    /// Batches of a step, if there are as many.
    pub accumulation: u64,
    /// Sequences of a batch.
    pub sequences: usize,
    /// Tokens of a sequence.
    pub context: usize,
}

impl EpochMath {
    fn steps_an_epoch(&self) -> u64 {
        self.batches.div_ceil(self.accumulation)
    }

    /// Batches of every step but the last of an epoch.
    pub fn batches_a_step(&self) -> u64 {
        self.accumulation.min(self.batches)
    }

    /// How many steps a run has.
    pub fn steps(&self, duration: Duration) -> u64 {
        match duration {
            Duration::Steps(steps) => steps,
            Duration::Epochs(epochs) => epochs.saturating_mul(self.steps_an_epoch()),
        }
    }

    /// How often so many steps walk through the data.
    pub fn epochs(&self, steps: u64) -> f64 {
        let (whole, rest) = (steps / self.steps_an_epoch(), steps % self.steps_an_epoch());
        whole as f64 + (rest * self.accumulation) as f64 / self.batches as f64
    }

    /// Batches that are left for the last step of an epoch, if that has fewer than the others.
    fn left(&self) -> u64 {
        self.batches % self.batches_a_step()
    }

    /// The tokens of a step, counted from 1.
    pub fn tokens_of(&self, step: u64) -> u64 {
        let is_last = step.is_multiple_of(self.steps_an_epoch());
        let batches = if is_last && self.left() > 0 { self.left() } else { self.batches_a_step() };
        batches * (self.sequences * self.context) as u64
    }
}

impl fmt::Display for EpochMath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (usual, left) = (self.batches_a_step(), self.left());
        let sequences = |batches: u64| batches * self.sequences as u64;
        write!(f, "{} × {} tokens", sequences(usual), self.context)?;
        if left > 0 {
            write!(f, ", the last of an epoch of {} × {}", sequences(left), self.context)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(batches: u64, accumulation: u64) -> EpochMath {
        EpochMath { batches, accumulation, sequences: 4, context: 8 }
    }

    #[test]
    fn the_last_step_of_an_epoch_has_what_is_left() {
        let uneven = pace(5, 3);
        assert_eq!(uneven.to_string(), "12 × 8 tokens, the last of an epoch of 8 × 8");
        assert_eq!([1, 2, 3, 4].map(|step| uneven.tokens_of(step)), [96, 64, 96, 64]);
        assert_eq!([0, 1, 2, 3].map(|steps| uneven.epochs(steps)), [0.0, 0.6, 1.0, 1.6]);
        let even = pace(6, 3);
        assert_eq!(even.to_string(), "12 × 8 tokens");
        assert_eq!([1, 2].map(|step| even.tokens_of(step)), [96, 96]);
        let few = pace(2, 3);
        assert_eq!((few.to_string().as_str(), few.tokens_of(7), few.epochs(7)), ("8 × 8 tokens", 64, 7.0));
    }

    #[test]
    fn epochs_that_cannot_be_counted_are_as_many_steps_as_can_be() {
        assert_eq!(pace(4, 1).steps(Duration::Epochs(1 << 62)), u64::MAX);
        assert_eq!(pace(5, 3).steps(Duration::Epochs(2)), 4);
        assert_eq!(pace(5, 3).steps(Duration::Steps(7)), 7);
    }
}
