//! `volta inspect`: what is in a file of weights.

use super::output::{Outcome, Output, say};
use serde_json::{Value, json};
use std::path::PathBuf;
use volta::io::{Gguf, GgufValue, Weights};

#[derive(clap::Args)]
pub struct Options {
    /// A safetensors file, a PyTorch file, a GGUF file, a checkpoint, or a folder of them from Hugging Face.
    file: PathBuf,
}

/// What a key of a GGUF file says: lists by their length and the beginning of their text.
fn value(value: &GgufValue) -> Value {
    match value {
        GgufValue::Bool(truth) => json!(truth),
        GgufValue::F32(x) => json!(x),
        GgufValue::F64(x) => json!(x),
        GgufValue::Text(text) => json!(text),
        GgufValue::List(list) => json!({ "length": list.len(), "shown": value.to_string() }),
        whole => json!(whole.to_string().parse::<i128>().ok().and_then(serde_json::Number::from_i128)),
    }
}

/// Prints every tensor's name, type, shape and size; of a GGUF file its metadata before them.
pub fn run(options: &Options, output: Output) -> Outcome {
    if !output.json {
        say(volta::inspect(&options.file)?);
        return Ok(());
    }
    let weights = match Gguf::open_if(&options.file)? {
        Some(file) => {
            for (key, said) in file.metadata().iter() {
                output.event(&json!({ "key": key, "type": said.type_name(), "value": value(said) }));
            }
            file.weights()?
        }
        None => Weights::open(&options.file)?,
    };
    for entry in weights.entries() {
        output.event(&json!({
            "name": entry.name(), "dtype": entry.dtype_name(), "shape": entry.shape(), "bytes": entry.bytes(),
        }));
    }
    Ok(())
}
