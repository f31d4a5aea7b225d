//! `volta models`: what was trained.

use super::model_file::{DEFAULT_FOLDER, list, stem, training_in};
use crate::cli::output::{Outcome, Output};
use serde_json::json;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Options {
    /// The folder to look in.
    #[arg(default_value = DEFAULT_FOLDER)]
    folder: PathBuf,
}

/// Lists models with their sizes, losses and dates.
pub fn run(options: &Options, output: Output) -> Outcome {
    let all = list(&options.folder)?;
    if all.is_empty() {
        let (folder, training) = (options.folder.display(), training_in(&options.folder));
        output.note(format_args!("No models in {folder}: train one with `{training}`."));
        return Ok(());
    }
    let width = all.iter().map(|m| stem(&m.0).chars().count()).max().unwrap_or(0).max(4);
    output.note(format_args!(
        "{:<width$}  {:>9}  {:>7}  {:>10}  {:>10}  {:<6}  date (UTC)",
        "name", "size", "steps", "validation", "perplexity", "device"
    ));
    for (path, about, bytes) in &all {
        let number = |x: Option<f64>| x.map_or("-".to_string(), |x| format!("{x:.4}"));
        output.result(
            &json!({
                "name": stem(path), "path": path, "bytes": bytes, "steps": about.steps,
                "train_loss": about.train_loss, "valid_loss": about.valid_loss,
                "device": about.device, "date": about.date,
            }),
            format_args!(
                "{:<width$}  {:>6.1} MB  {:>7}  {:>10}  {:>10}  {:<6}  {}",
                stem(path),
                *bytes as f64 / 1e6,
                about.steps,
                number(about.valid_loss),
                about.valid_loss.map_or("-".to_string(), |l| format!("{:.2}", l.exp())),
                about.device,
                about.date
            ),
        );
    }
    Ok(())
}
