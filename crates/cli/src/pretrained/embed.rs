//! `volta embed`: vectors of texts.

use super::find;
use crate::device::DeviceFlag;
use crate::output::{Failure, Outcome, Output, check, say};
use serde_json::json;
use std::io::Read;
use volta::models::Embedder;

#[derive(clap::Args)]
pub struct Options {
    /// The encoder: a folder as Hugging Face has it, or hf:OWNER/NAME.
    #[arg(long, short)]
    model: String,
    /// The texts; without one, the lines of standard input.
    texts: Vec<String>,
    #[command(flatten)]
    device: DeviceFlag,
}

/// Prints one vector a text.
pub fn run(options: &Options, output: Output) -> Outcome {
    options.device.open()?;
    let Some(path) = find(Some(&options.model))? else {
        return Err(Failure::Failed(format!(
            "{} is no folder with a config.json: `volta download hf:OWNER/NAME` fetches one",
            options.model
        )));
    };
    let embedder = Embedder::load(path)?;
    let mut input = String::new();
    let mut texts: Vec<&str> = options.texts.iter().map(String::as_str).collect();
    if texts.is_empty() {
        let read = std::io::stdin().read_to_string(&mut input);
        read.map_err(|e| Failure::Failed(format!("cannot read texts from standard input: {e}")))?;
        texts = input.lines().collect();
    }
    for (text, vector) in texts.iter().zip(embedder.embed(&texts)?) {
        check()?;
        if output.json {
            output.event(&json!({"text": text, "vector": vector}));
        } else {
            say(vector.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        }
    }
    Ok(())
}
