//! Language models from the command line: training, talking, measuring.
//!
//! What a run is stands in `volta_lm`. `config_flags` says what to train and `prepare` makes it. `run_paths` tells where a run keeps its
//! files, `last_run` whether it can be resumed. `train` runs it while `progress` shows it; `report`, `html_report` and `log` tell how it
//! went, `diverged` why it was stopped. `model_file` finds trained models, which `generate`, `chat`, `eval`, `models` and `steps` use,
//! with `sampling` in common; `stop_text` shows an answer up to where it ends.

pub mod chat;
mod clock;
mod config_flags;
mod diverged;
pub mod eval;
pub mod generate;
mod html_report;
mod last_run;
mod log;
mod model_file;
pub mod models;
mod prepare;
mod progress;
mod report;
mod run_paths;
mod sampling;
pub mod steps;
mod stop_text;
pub mod train;

pub use stop_text::StopText;

use super::device::{self, DeviceName};
use super::output::Failure;
use volta::Device;

/// The device of a name: auto, cpu, gpu or gpu:N.
pub fn device(name: &str) -> Result<Device, Failure> {
    let name: DeviceName = name.parse().map_err(Failure::Usage)?;
    device::open(Some(name), name)
}
