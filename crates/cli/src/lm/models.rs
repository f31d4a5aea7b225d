//! `volta models`: what was trained.

use super::model_file::{DEFAULT_FOLDER, list, stem, training_in};
use crate::output::{Outcome, Output};
use serde_json::json;
use std::path::{Path, PathBuf};
use volta::text::printable_cell;

/// What files say is cut where it would spoil the table.
const MAX_NAME_CHARS: usize = 200;
const MAX_DEVICE_CHARS: usize = 24;
const MAX_DATE_CHARS: usize = 40;

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
    let name = |path: &Path| printable_cell(&stem(path), MAX_NAME_CHARS);
    let width = all.iter().map(|m| name(&m.0).chars().count()).max().unwrap_or(0).max(4);
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
                name(path),
                *bytes as f64 / 1e6,
                about.steps,
                number(about.valid_loss),
                about.valid_loss.map_or("-".to_string(), |l| format!("{:.2}", l.exp())),
                printable_cell(&about.device, MAX_DEVICE_CHARS),
                printable_cell(&about.date, MAX_DATE_CHARS)
            ),
        );
    }
    Ok(())
}
