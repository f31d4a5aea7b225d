//! Language models from the command line: training, talking, measuring.
//!
//! `config` says what to train, `prepare` makes it, `pace` and `plan` tell what a step of it is, `places` where it goes,
//! and `begun` whether it can go on. `train` runs it while `watch` shows it, and `report`, `page` and `log` say how it
//! went, or `diverged` why it was stopped. `model_file` is what stays; `generate`, `chat`, `eval`, `models` and `steps` use it.

mod begun;
pub mod chat;
mod clock;
pub mod config;
mod diverged;
pub mod eval;
pub mod generate;
mod log;
mod model_file;
pub mod models;
mod pace;
mod page;
mod places;
mod plan;
mod prepare;
mod report;
pub mod steps;
pub mod train;
mod watch;
mod writing;

use super::device::{self, DeviceName};
use super::output::Failure;
use volta::Device;

/// The device of a name: auto, cpu, gpu or gpu:N.
pub fn device(name: &str) -> Result<Device, Failure> {
    let name: DeviceName = name.parse().map_err(Failure::Usage)?;
    device::open(Some(name), name)
}
