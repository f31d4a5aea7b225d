//! Files of tensors: safetensors, written and read, and PyTorch's, read.

use crate::arguments::TensorArg;
use crate::error::{call, run};
use crate::tensor::{DeviceArg, or_default};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use volta::{StateDict, Weights};

/// Tensors in the order in which they are saved, or were.
type Named = Vec<(String, TensorArg)>;

/// Writes a safetensors file, whole or not at all.
#[pyfunction]
fn save(py: Python<'_>, path: PathBuf, tensors: Named, metadata: BTreeMap<String, String>) -> PyResult<()> {
    let state: StateDict = tensors.into_iter().map(|(name, t)| (name, t.0)).collect();
    run(py, || volta::save_safetensors(path, &state, &metadata))
}

/// The tensors of a file or folder of any format that the engine reads, and what it says beside them.
#[pyfunction]
#[pyo3(signature = (path, device = None))]
fn load(
    py: Python<'_>,
    path: PathBuf,
    device: Option<DeviceArg>,
) -> PyResult<(Named, BTreeMap<String, String>)> {
    let device = or_default(device)?;
    run(py, || {
        let weights = Weights::open(path)?;
        let names: Vec<String> = weights.entries().iter().map(|e| e.name().to_string()).collect();
        let tensors = names.into_iter().map(|name| {
            let tensor = weights.tensor(&name, device)?;
            Ok((name, TensorArg(tensor)))
        });
        Ok((tensors.collect::<volta::Result<Named>>()?, weights.metadata().clone()))
    })
}

/// A table of the tensors in a file: names, types, shapes and sizes.
#[pyfunction]
fn inspect(path: PathBuf) -> PyResult<String> {
    call(|| volta::inspect(path))
}

/// The module `volta._volta._files`.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = PyModule::new(parent.py(), "_files")?;
    module.add_function(wrap_pyfunction!(save, &module)?)?;
    module.add_function(wrap_pyfunction!(load, &module)?)?;
    module.add_function(wrap_pyfunction!(inspect, &module)?)?;
    parent.add_submodule(&module)
}
