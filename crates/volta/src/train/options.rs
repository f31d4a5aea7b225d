//! What a trainer is told.

use crate::device::Device;
use crate::dtype::DType;
use std::path::PathBuf;

/// What a [`Trainer`](super::Trainer) does about a loss or a gradient that is NaN or infinite. It is found where the loss is
/// read anyway: at the next step that is logged or saved, before a checkpoint is written. So no checkpoint holds such numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum OnNonFinite {
    /// Ends the training with an error of the kind [`NonFinite`](crate::ErrorKind::NonFinite), which names the step and the last
    /// checkpoint.
    #[default]
    Stop,
    /// Leaves such steps out: parameters, buffers and the optimizer's state stay as they were, as with a
    /// [`GradScaler`](crate::GradScaler). Looking at all gradients first costs a little. 32 skipped steps in a row are an error.
    SkipStep,
    /// Goes back to the last checkpoint and on from there with lower learning rates. Needs a folder.
    GoBack {
        /// What the rates are multiplied by.
        factor: f64,
        /// How often before it is an error.
        at_most: u32,
    },
}

/// What a [`Trainer`](super::Trainer) does besides stepping.
#[derive(Clone, Debug)]
pub struct TrainerOptions {
    /// Walks through the training data.
    pub epochs: u64,
    /// Ends after this many steps, if that comes first.
    pub steps: Option<u64>,
    /// Batches whose gradients make one step: that of the mean of their losses. The last step of an epoch has those that
    /// are left.
    pub accumulate: usize,
    /// The devices that compute gradients, as [`DataParallel`](crate::parallel::DataParallel) has them: the model's own first, and
    /// validations stay there. If there are none, it is the only one. Batches are best made on the CPU.
    pub devices: Vec<Device>,
    /// Cuts every batch into so many parts with fixed borders, whose gradients are added in a fixed tree: devices of one kind then give the
    /// same bits, however many there are. Unless said, each device has one part.
    pub gradient_parts: Option<usize>,
    /// Gives devices shares that suit how fast they are, measured while they run.
    pub shares_by_speed: bool,
    /// The largest norm that all gradients together may have.
    pub clip: Option<f64>,
    /// Computes products in this type, with a gradient scaler: `DType::F16`.
    pub precision: Option<DType>,
    /// What happens if a loss or a gradient is NaN or infinite. With a [`precision`](Self::precision), gradients may be, now
    /// and then: the scaler skips such steps, and only 32 in a row are an error.
    pub on_non_finite: OnNonFinite,
    /// Steps between two readings of the training's metrics. Reading waits for the device.
    pub log_every: u64,
    /// Steps between two validations, with one more at the end; without it there is one after every epoch.
    pub validate_every: Option<u64>,
    /// Steps between two checkpoints; without it there is one after every epoch. The end always has one.
    pub checkpoint_every: Option<u64>,
    /// Profiles one step in so many; reading the times waits for the device.
    pub profile_every: Option<u64>,
    /// Ends after this many validations in a row that were no better than the best.
    pub patience: Option<u64>,
    /// Where checkpoints, logs and curves go; without it nothing is written.
    pub folder: Option<PathBuf>,
    /// Goes on from the last checkpoint in the folder, if there is one.
    pub resume: bool,
    /// Shows a progress bar, or lines where there is no terminal.
    pub progress: bool,
}

impl Default for TrainerOptions {
    fn default() -> Self {
        TrainerOptions {
            epochs: 1,
            steps: None,
            accumulate: 1,
            devices: Vec::new(),
            gradient_parts: None,
            shares_by_speed: false,
            clip: None,
            precision: None,
            on_non_finite: OnNonFinite::Stop,
            log_every: 50,
            validate_every: None,
            checkpoint_every: None,
            profile_every: None,
            patience: None,
            folder: None,
            resume: false,
            progress: true,
        }
    }
}
