//! Language models from the command line: training, talking, measuring.
//!
//! `config` says what to train and `prepare` makes it. `epoch_math` and `plan` tell what a step is, `run_paths` where a run
//! keeps its files, `run_manifest` whether it can be resumed. `train` runs it while `progress` shows it; `report`,
//! `html_report` and `log` tell how it went, `diverged` why it was stopped. `model_file` is the trained model, which `generate`,
//! `chat`, `eval`, `models` and `steps` use, with `sampling` in common.

pub mod chat;
mod clock;
pub mod config;
mod diverged;
mod epoch_math;
pub mod eval;
pub mod generate;
mod html_report;
mod log;
mod model_file;
pub mod models;
mod plan;
mod prepare;
mod progress;
mod report;
mod run_manifest;
mod run_paths;
mod sampling;
pub mod steps;
pub mod train;

use super::device::{self, DeviceName};
use super::output::Failure;
use volta::Device;

/// The device of a name: auto, cpu, gpu or gpu:N.
pub fn device(name: &str) -> Result<Device, Failure> {
    let name: DeviceName = name.parse().map_err(Failure::Usage)?;
    device::open(Some(name), name)
}
