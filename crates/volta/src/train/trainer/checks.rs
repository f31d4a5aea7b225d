//! What cannot be trained: it is said before the first step.

use super::Trainer;
use crate::data::DataLoader;
use crate::error::{Result, bail};
use crate::optim::Scheduler;
use crate::train::options::OnNonFinite;

impl Trainer<'_> {
    /// An error if the options, the data and the schedule do not go together.
    pub(super) fn check(&self, train: &DataLoader, validates: bool) -> Result<()> {
        if train.is_empty() {
            bail!(Argument, "the training data has no batch of {} samples", train.batch_size());
        }
        if !validates && self.scheduler.as_ref().is_some_and(Scheduler::watches) {
            bail!(
                Argument,
                "the schedule looks at the validation loss, as ReduceLROnPlateau does: give validation data, or a \
                 schedule that counts steps only"
            );
        }
        if self.scheduler.as_ref().is_some_and(Scheduler::larger_is_better) {
            bail!(
                Argument,
                "the schedule takes larger metrics for better ones, and it is told the validation loss, which is better \
                 when it is smaller: leave larger_is_better of ReduceLROnPlateau false"
            );
        }
        if cfg!(target_arch = "wasm32") && self.options.folder.is_some() {
            bail!(
                Argument,
                "a browser's tab has no folders: leave TrainerOptions::folder out, and keep what Training::checkpoint gives"
            );
        }
        if self.checkpoint.is_some() && self.options.folder.is_some() {
            bail!(
                Argument,
                "a run in a folder goes on from the checkpoints there: set TrainerOptions::resume, or leave \
                 TrainerOptions::folder out to go on from a checkpoint in memory"
            );
        }
        if self.options.resume && self.options.folder.is_none() {
            bail!(Argument, "there is nothing to resume without a folder: set TrainerOptions::folder");
        }
        if let OnNonFinite::GoBack { factor, .. } = self.options.on_non_finite {
            if self.ranks.is_some() {
                bail!(
                    Argument,
                    "ranks do not go back to a checkpoint: choose OnNonFinite::Stop or OnNonFinite::SkipStep"
                );
            }
            if self.options.folder.is_none() {
                bail!(
                    Argument,
                    "there is no checkpoint to go back to without a folder: set TrainerOptions::folder"
                );
            }
            if !(factor > 0.0 && factor <= 1.0) {
                bail!(
                    Argument,
                    "learning rates cannot be lowered by a factor of {factor}: give one from 0 to 1"
                );
            }
        }
        Ok(())
    }
}
