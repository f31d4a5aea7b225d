//! What happens while a model is trained.

use super::history::{History, Row};
use crate::telemetry::Profile;
use std::path::Path;
use std::time::Duration;

/// What a [`Trainer`](super::Trainer) tells its observers.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A checkpoint is damaged; the one before it is taken, which comes next as `Resumed`.
    PassedOver {
        /// Where it was.
        path: &'a Path,
        /// What is wrong with it.
        reason: &'a str,
    },
    /// It goes on from a checkpoint.
    Resumed {
        /// Steps done so far.
        step: u64,
        /// Epochs done so far.
        epoch: u64,
    },
    /// A step was made.
    Step {
        /// Steps done so far.
        step: u64,
    },
    /// A step was profiled, which comes before its `Step`.
    Profiled {
        /// Steps done so far.
        step: u64,
        /// Its kernels.
        profile: &'a Profile,
        /// The time until its kernels were done; on a GPU with those of earlier steps that were still waiting.
        time: Duration,
    },
    /// The training's metrics were read.
    Measured {
        /// Steps done so far.
        step: u64,
        /// What was measured.
        rows: &'a [Row],
    },
    /// The model was validated.
    Validated {
        /// Steps done so far.
        step: u64,
        /// What was measured.
        rows: &'a [Row],
        /// Whether the loss is the lowest so far.
        better: bool,
    },
    /// A checkpoint was written.
    Saved {
        /// Steps done so far.
        step: u64,
    },
    /// A loss, a gradient or a parameter is NaN or infinite; what follows is up to [`OnNonFinite`](super::OnNonFinite).
    NonFinite {
        /// The step that it was found in.
        step: u64,
        /// What is not finite.
        what: &'a str,
        /// The last checkpoint, which is finite.
        checkpoint: Option<&'a Path>,
        /// The best model so far, if one was validated.
        best: Option<&'a Path>,
    },
    /// It has gone back to a checkpoint.
    WentBack {
        /// The checkpoint's step.
        step: u64,
        /// What the learning rates are multiplied by.
        factor: f64,
    },
    /// Training has ended.
    Finished {
        /// Steps done in all.
        step: u64,
        /// All that was measured.
        history: &'a History,
    },
}
