//! `volta inspect`: what is in a file of weights.

use super::output::{Outcome, Output, say};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use volta::io::{Gguf, GgufValue, Weights};
use volta_onnx::{OnnxSummary, Port};

#[derive(clap::Args)]
pub struct Options {
    /// A safetensors file, a PyTorch file, a GGUF file, an ONNX file, a checkpoint, or a folder of them from Hugging Face.
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

/// Whether a file is said to be ONNX's, which has no mark of its own.
fn is_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("onnx"))
}

/// The lines of an ONNX file: the file, inputs, outputs, operators, tensors.
fn onnx_events(summary: &OnnxSummary, output: Output) {
    let opsets: serde_json::Map<_, _> = summary
        .opsets
        .iter()
        .map(|(domain, version)| {
            (if domain.is_empty() { "ai.onnx".to_string() } else { domain.clone() }, json!(version))
        })
        .collect();
    output.event(&json!({
        "format": "onnx", "producer": summary.producer, "ir_version": summary.ir_version, "opsets": opsets,
        "parameters": summary.parameters(),
    }));
    let port = |kind: &str, port: &Port| {
        output.event(&json!({ kind: port.name, "dtype": port.element, "shape": port.shape }))
    };
    summary.inputs.iter().for_each(|input| port("input", input));
    summary.outputs.iter().for_each(|found| port("output", found));
    for (name, count) in &summary.operators {
        output.event(&json!({ "operator": name, "count": count, "known": !summary.unknown.contains(name) }));
    }
    for tensor in &summary.tensors {
        output.event(&json!({ "name": tensor.name, "dtype": tensor.element, "shape": tensor.shape }));
    }
}

/// Prints every tensor's name, type, shape and size; of a GGUF file its metadata before them, of an ONNX file its inputs, outputs and operators.
pub fn run(options: &Options, output: Output) -> Outcome {
    if is_onnx(&options.file) {
        let summary = OnnxSummary::open(&options.file)?;
        if output.json {
            onnx_events(&summary, output);
        } else {
            say(&summary);
        }
        return Ok(());
    }
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
