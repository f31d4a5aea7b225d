//! Models with inputs and the outputs that others computed, many of them in one file.
//!
//! The file is a list of entries: the length of a path, the path, the length of its bytes, the bytes; lengths are 32-bit, little-endian. Paths
//! are those of the standard's tests: `NAME/model.onnx`, `NAME/input_0.pb`, `NAME/output_0.pb`; `NAME/tolerance` has two numbers, as text.

use std::collections::BTreeMap;
use volta::{DType, Device, Tensor};
use volta_onnx::{Onnx, read_tensor};

/// A model and what it should compute.
#[derive(Default)]
pub struct Case {
    pub model: Vec<u8>,
    inputs: BTreeMap<usize, Vec<u8>>,
    outputs: BTreeMap<usize, Vec<u8>>,
    tolerance: Option<(f64, f64)>,
}

/// Every case of a file, by name.
pub fn read(bytes: &[u8]) -> BTreeMap<String, Case> {
    let mut cases: BTreeMap<String, Case> = BTreeMap::new();
    let mut at = 0;
    let mut part = || {
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
        at += 4 + length;
        (bytes[at - length..at].to_vec(), at < bytes.len())
    };
    loop {
        let (path, _) = part();
        let (data, more) = part();
        let path = String::from_utf8(path).expect("a path");
        let (name, file) = path.split_once('/').expect("a name and a file");
        let case = cases.entry(name.to_string()).or_default();
        let place = |prefix: &str| file.strip_prefix(prefix)?.strip_suffix(".pb")?.parse::<usize>().ok();
        if let Some(place) = place("input_") {
            case.inputs.insert(place, data);
        } else if let Some(place) = place("output_") {
            case.outputs.insert(place, data);
        } else if file == "tolerance" {
            let text = String::from_utf8(data).expect("text");
            let mut numbers = text.split_whitespace().map(|n| n.parse().expect("a number"));
            case.tolerance = Some((numbers.next().expect("rtol"), numbers.next().expect("atol")));
        } else {
            case.model = data;
        }
        if !more {
            return cases;
        }
    }
}

impl Case {
    /// Its inputs.
    pub fn inputs(&self) -> Vec<Tensor> {
        self.inputs.values().map(|bytes| read_tensor(bytes.clone()).expect("an input").0).collect()
    }

    /// What is wrong, if anything is.
    pub fn check(&self) -> Result<(), String> {
        let text = |e: volta::Error| e.to_string();
        let model = Onnx::from_bytes(self.model.clone()).map_err(text)?;
        let names = model.inputs();
        // A test leaves out what the model has a value for.
        let inputs = self.inputs();
        let found = model.try_run(&inputs[..names.len().min(inputs.len())]).map_err(text)?;
        let (rtol, atol) = self.tolerance.unwrap_or((1e-3, 1e-7));
        for (place, bytes) in &self.outputs {
            let (expected, kind) = read_tensor(bytes.clone()).map_err(text)?;
            let Some(found) = found.get(*place) else { return Err(format!("output {place} is missing")) };
            if found.shape() != expected.shape() {
                return Err(format!(
                    "output {place} has shape {}, and {} is expected",
                    found.shape(),
                    expected.shape()
                ));
            }
            if found.dtype() != kind.held_as() {
                return Err(format!("output {place} is {}, and {} is expected", found.dtype(), kind.name()));
            }
            compare(found, &expected, rtol, atol).map_err(|apart| format!("output {place}: {apart}"))?;
        }
        Ok(())
    }
}

fn numbers(x: &Tensor) -> Result<Vec<f64>, String> {
    let host = x.try_to_device(Device::Cpu).and_then(|t| t.try_to_dtype(DType::F64));
    host.and_then(|t| t.try_to_vec::<f64>()).map_err(|e| e.to_string())
}

fn compare(found: &Tensor, expected: &Tensor, rtol: f64, atol: f64) -> Result<(), String> {
    let (a, b) = (numbers(found)?, numbers(expected)?);
    for (k, (a, b)) in a.iter().zip(&b).enumerate() {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= atol + rtol * b.abs();
        if !same {
            return Err(format!("element {k} is {a}, and {b} is expected"));
        }
    }
    Ok(())
}
