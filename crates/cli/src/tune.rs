//! `volta tune`: finds the fastest kernels for a model or for the benchmark's workloads on this GPU, and remembers them.

use super::bench;
use super::device::{self, DeviceName};
use super::lm::steps;
use super::output::{Failure, Outcome, Output, say};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use volta::Device;
use volta::gpu::{Tuning, tune};

#[derive(clap::Args)]
pub struct Options {
    /// The GPU: gpu or gpu:N [default: VOLTA_DEVICE, or else gpu]
    #[arg(long)]
    device: Option<DeviceName>,
    /// How long to try, in seconds; what a step takes by itself is not counted.
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS")]
    budget: f64,
    /// Workloads of `volta bench`, separated by commas.
    #[arg(long, conflicts_with = "model", required_unless_present = "model")]
    workloads: Option<String>,
    /// Precisions of the workloads, separated by commas: f32, f16.
    #[arg(long, default_value = "f32")]
    modes: String,
    /// Another batch size for the workloads; 0 keeps each one's own.
    #[arg(long, default_value_t = 0)]
    batch: usize,
    /// A model that was trained: its name or its file. Its training is tuned, and its writing.
    #[arg(long, short)]
    model: Option<String>,
    /// The folder that models are in.
    #[arg(long, default_value = "models")]
    models: PathBuf,
}

/// Tunes, and says what was found.
pub fn run(options: &Options, output: Output) -> Outcome {
    let budget = Duration::try_from_secs_f64(options.budget)
        .map_err(|_| Failure::Usage(format!("{} is not a number of seconds", options.budget)))?;
    if let Some(names) = &options.workloads {
        bench::check_names(names, &options.modes)?;
    }
    let device = device::open(options.device, DeviceName::This(Device::Gpu(0)))?;
    let bar = if output.quiet || output.json { ProgressBar::hidden() } else { ProgressBar::new(0) };
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} ways tried [{elapsed}, {eta} left]");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let progress = |tried: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(tried as u64);
    };
    let mut trouble = None;
    let tuned = tune(device, budget, progress, || {
        let done = match (&options.workloads, &options.model) {
            (Some(names), _) => bench::steps(names, &options.modes, device, options.batch),
            (None, model) => steps::all(model.as_deref(), &options.models, device),
        };
        trouble = done.err();
        Ok(())
    });
    bar.finish_and_clear();
    if let Some(failure) = trouble {
        return Err(failure);
    }
    report(&tuned?, output);
    Ok(())
}

fn report(tuning: &Tuning, output: Output) {
    for t in &tuning.tuned {
        output.event(&json!({
            "problem": t.problem, "choice": t.choice, "default_us": t.default_time.as_secs_f64() * 1e6,
            "us": t.time.as_secs_f64() * 1e6, "tried": t.tried, "uses": t.uses,
        }));
    }
    output.event(&json!({
        "tuned": tuning.tuned.len(), "known": tuning.known, "left": tuning.left, "file": tuning.file,
    }));
    if output.json {
        return;
    }
    say(tuning);
    match &tuning.file {
        Some(file) if !tuning.tuned.is_empty() => {
            output.note(format_args!("The choices are in {}.", file.display()))
        }
        Some(_) => {}
        None => output.note("Nothing is kept, as VOLTA_CACHE is off."),
    }
}
