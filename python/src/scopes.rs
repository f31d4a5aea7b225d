//! Scopes that Python enters and leaves: mixed precision, and profiles with what they found.

use crate::error::{call, run};
use crate::tensor::{DTypeArg, DeviceArg};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use volta::{AutocastTypes, DType, Profile, Profiler};

/// The name of an element type, as Python has it.
fn dtype_name(dtype: DType) -> &'static str {
    if dtype == DType::BF16 { "bfloat16" } else { "float16" }
}

/// What products compute in on the CPU and on GPUs.
type Names = (Option<&'static str>, Option<&'static str>);

fn names(types: AutocastTypes) -> Names {
    (types.cpu.map(dtype_name), types.gpu.map(dtype_name))
}

/// Computes products in half precision from now on, on this thread, or no longer, on the CPU and on GPUs; what it was before.
#[pyfunction]
fn set_autocast(cpu: Option<DTypeArg>, gpu: Option<DTypeArg>) -> PyResult<Names> {
    let types = AutocastTypes { cpu: cpu.map(|d| d.0), gpu: gpu.map(|d| d.0) };
    call(|| volta::try_set_autocast(types)).map(names)
}

/// What that is now.
#[pyfunction]
fn autocast_types() -> Names {
    names(volta::autocast_types())
}

/// The kernels that ran between `begin` and `end`.
#[pyclass(name = "Profile", module = "volta._volta._scopes")]
pub struct PyProfile {
    running: Option<Profiler>,
    found: Option<Profile>,
}

/// A kernel: label, kind, result, calls, seconds, flops, bytes.
type Kernel = (String, &'static str, String, u64, f64, u64, u64);

/// An op: name, device, calls, seconds, flops, bytes.
type Op = (String, String, u64, f64, u64, u64);

#[pymethods]
impl PyProfile {
    #[new]
    fn new() -> PyProfile {
        PyProfile { running: None, found: None }
    }

    fn begin(&mut self) {
        self.running = Some(Profiler::begin());
    }

    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            self.found = Some(running.end());
        }
    }

    /// Seconds in kernels.
    fn total(&self) -> f64 {
        self.found.as_ref().map_or(0.0, |p| p.total().as_secs_f64())
    }

    fn kernels(&self) -> Vec<Kernel> {
        let kernels = self.found.iter().flat_map(|p| &p.kernels);
        kernels
            .map(|k| {
                let seconds = k.time.as_secs_f64();
                (k.label.clone(), k.kind, k.result.clone(), k.calls, seconds, k.flops, k.bytes)
            })
            .collect()
    }

    fn ops(&self) -> Vec<Op> {
        let ops = self.found.iter().flat_map(|p| p.by_op().ops);
        ops.map(|o| (o.name, o.device.to_string(), o.calls, o.time.as_secs_f64(), o.flops, o.bytes)).collect()
    }

    /// A table of kernels.
    fn table(&self) -> String {
        self.found.as_ref().map_or_else(|| "nothing was profiled yet".to_string(), ToString::to_string)
    }

    /// A table of ops.
    fn table_by_op(&self) -> String {
        let table = self.found.as_ref().map(|p| p.by_op().to_string());
        table.unwrap_or_else(|| "nothing was profiled yet".to_string())
    }

    fn write_trace(&self, path: PathBuf) -> PyResult<()> {
        match &self.found {
            Some(profile) => call(|| profile.write_trace(path)),
            None => Err(pyo3::exceptions::PyRuntimeError::new_err("nothing was profiled yet")),
        }
    }
}

/// Totals of what the engine has done since the program started.
#[pyfunction]
fn counters() -> BTreeMap<&'static str, u64> {
    let c = volta::counters();
    BTreeMap::from([
        ("plans_compiled", c.plans_compiled),
        ("plans_replayed", c.plans_replayed),
        ("kernels_run", c.kernels_run),
        ("uploads", c.uploads),
        ("reads", c.reads),
        ("submissions", c.submissions),
        ("bind_groups", c.bind_groups),
        ("shaders_compiled", c.shaders_compiled),
        ("pool_bytes", c.pool_bytes),
        ("peak_bytes", c.peak_bytes),
    ])
}

/// Counts the most bytes in use anew.
#[pyfunction]
fn reset_peak() {
    volta::reset_peak();
}

/// The kernels of the plan that this thread ran last, as a table.
#[pyfunction]
fn last_plan() -> Option<String> {
    volta::last_plan().map(|plan| plan.to_string())
}

/// What a device can do at best: bytes and arithmetic operations a second.
#[pyfunction]
fn measure_peak(py: Python<'_>, device: DeviceArg) -> PyResult<(f64, f64)> {
    let peak = run(py, || volta::measure_peak(device.0))?;
    Ok((peak.bytes, peak.flops))
}

/// Turns the checks for NaN, infinity and bad indices on or off.
#[pyfunction]
fn set_guards(on: bool) {
    volta::set_guards(on);
}

/// Whether they are on.
#[pyfunction]
fn guards_enabled() -> bool {
    volta::guards_enabled()
}

/// The module `volta._volta._scopes`.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = PyModule::new(parent.py(), "_scopes")?;
    module.add_class::<PyProfile>()?;
    module.add_function(wrap_pyfunction!(set_autocast, &module)?)?;
    module.add_function(wrap_pyfunction!(autocast_types, &module)?)?;
    module.add_function(wrap_pyfunction!(counters, &module)?)?;
    module.add_function(wrap_pyfunction!(reset_peak, &module)?)?;
    module.add_function(wrap_pyfunction!(last_plan, &module)?)?;
    module.add_function(wrap_pyfunction!(measure_peak, &module)?)?;
    module.add_function(wrap_pyfunction!(set_guards, &module)?)?;
    module.add_function(wrap_pyfunction!(guards_enabled, &module)?)?;
    parent.add_submodule(&module)
}
