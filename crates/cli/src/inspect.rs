//! `volta inspect`: what is in a file of weights.

use super::output::{Outcome, Output, say};
use serde_json::json;
use std::path::PathBuf;
use volta::io::Weights;

#[derive(clap::Args)]
pub struct Options {
    /// A safetensors file, a PyTorch file, a checkpoint, or a folder of them from Hugging Face.
    file: PathBuf,
}

/// Prints every tensor's name, type, shape and size.
pub fn run(options: &Options, output: Output) -> Outcome {
    if !output.json {
        say(volta::inspect(&options.file)?);
        return Ok(());
    }
    let weights = Weights::open(&options.file)?;
    for entry in weights.entries() {
        output.event(&json!({
            "name": entry.name(), "dtype": entry.dtype_name(), "shape": entry.shape(), "bytes": entry.bytes(),
        }));
    }
    Ok(())
}
