//! Language models from the command line: training, talking, measuring.
//!
//! What a run is stands in `volta_lm`. `config_flags` says what to train and `prepare` makes it. `run_paths` tells where a run keeps its
//! files, `last_run` whether it can be resumed. `train` runs it while `progress` shows it, `ranks` with other processes; `report`,
//! `html_report` and `log` tell how it went, `diverged` why it was stopped.
//! `finetune` trains a model of others, or adapters of it. `model_file` finds what was trained here, which `generate`, `chat`,
//! `eval`, `models` and `steps` use, with `sampling` in common; `stop_text` shows an answer up to where it ends.

pub mod chat;
mod clock;
mod config_flags;
mod diverged;
pub mod eval;
pub mod finetune;
pub mod generate;
mod html_report;
mod last_run;
mod log;
mod model_file;
pub mod models;
mod prepare;
mod progress;
mod ranks;
mod report;
mod run_paths;
mod sampling;
#[cfg(feature = "gpu")]
pub mod steps;
mod stop_text;
pub mod train;

pub use stop_text::StopText;

use super::device::{self, DeviceName};
use super::output::Failure;
use volta::parallel::devices_named;
use volta::{Device, ErrorKind, set_default_device};

/// The devices of a configuration: auto, cpu, gpu or gpu:N, several of these, or gpus. The first is the default from then on.
pub fn devices(names: &str) -> Result<Vec<Device>, Failure> {
    if let Ok(name) = names.parse::<DeviceName>() {
        return Ok(vec![device::open(Some(name), name)?]);
    }
    let all = devices_named(names).map_err(|error| match error.kind() {
        ErrorKind::Argument => Failure::usage(&error),
        _ => error.into(),
    })?;
    all.iter().try_for_each(|device| device.synchronize())?;
    set_default_device(all[0]);
    Ok(all)
}
