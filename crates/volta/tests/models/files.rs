//! The models and the answers beside them.

use serde_json::Value;
use std::path::PathBuf;
use volta::io::Weights;
use volta::{Device, Tensor};

/// A file or folder of the fixtures.
pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/models/fixtures").join(name)
}

/// Tensors that the oracle computed.
pub fn oracle(name: &str, tensor: &str) -> Tensor {
    let weights = Weights::open(fixture(name).join("oracle.safetensors")).unwrap();
    weights.tensor(tensor, Device::Cpu).unwrap()
}

/// What else the oracle said.
pub fn answers(name: &str) -> Value {
    let text = std::fs::read_to_string(fixture(name).join("oracle.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The largest difference, as a share of the largest number expected.
pub fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0f32, |a, b| a.max(b.abs()));
    let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    apart.fold(0f32, |a, b| if b.is_nan() { f32::INFINITY } else { a.max(b) }) / largest
}

/// A list of whole numbers.
pub fn numbers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as u32).collect()
}

/// A list of numbers.
pub fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|n| n.as_f64().unwrap() as f32).collect()
}
