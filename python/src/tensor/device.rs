//! `volta.device`, and which devices there are.

use crate::error::{call, raise, run};
use pyo3::prelude::*;
use std::cell::RefCell;
use volta::{DType, Device, Result, Tensor};

/// A place for tensors: `volta.device('cpu')`, `volta.device('gpu')`, `volta.device('gpu', 1)`. In a `with` statement
/// it is the place where tensors are created unless said otherwise.
#[pyclass(name = "device", module = "volta", frozen, eq, hash)]
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
pub struct PyDevice(pub Device);

thread_local! {
    /// What to go back to after `with` statements.
    static OUTER: RefCell<Vec<Option<Device>>> = const { RefCell::new(Vec::new()) };
}

/// The device that `cpu`, `gpu` or `gpu:1` names.
fn parse(name: &str) -> PyResult<Device> {
    name.parse().map_err(raise)
}

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (r#type, index=None))]
    fn new(r#type: DeviceArg, index: Option<usize>) -> PyResult<PyDevice> {
        match index {
            None => Ok(PyDevice(r#type.0)),
            Some(index) => parse(&format!("{}:{index}", kind(r#type.0))).map(PyDevice),
        }
    }

    /// `'cpu'` or `'gpu'`.
    #[getter]
    fn r#type(&self) -> &'static str {
        kind(self.0)
    }

    /// Which GPU; `None` for the CPU.
    #[getter]
    fn index(&self) -> Option<usize> {
        match self.0 {
            Device::Gpu(index) => Some(index),
            _ => None,
        }
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        match self.0 {
            Device::Gpu(index) => format!("device(type='gpu', index={index})"),
            _ => "device(type='cpu')".to_string(),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.to_string(),))
    }

    fn __enter__<'py>(slf: Bound<'py, Self>) -> Bound<'py, Self> {
        let outer = volta::set_thread_device(Some(slf.get().0));
        OUTER.with_borrow_mut(|all| all.push(outer));
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        if let Some(outer) = OUTER.with_borrow_mut(Vec::pop) {
            volta::set_thread_device(outer);
        }
    }
}

fn kind(device: Device) -> &'static str {
    if device.is_gpu() { "gpu" } else { "cpu" }
}

/// A device as an argument: `'cpu'`, `'gpu'`, `'gpu:1'` or a `volta.device`.
#[derive(Clone, Copy)]
pub struct DeviceArg(pub Device);

impl<'a, 'py> FromPyObject<'a, 'py> for DeviceArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<DeviceArg> {
        match object.cast::<PyDevice>() {
            Ok(device) => Ok(DeviceArg(device.get().0)),
            Err(_) => parse(&object.extract::<String>()?).map(DeviceArg),
        }
    }
}

/// The device that an argument names, or the one where tensors are created.
pub fn or_default(device: Option<DeviceArg>) -> PyResult<Device> {
    match device {
        Some(device) => Ok(device.0),
        None => call(|| {
            volta::environment::check()?;
            Ok(volta::default_device())
        }),
    }
}

/// The type of Python's integers on a device: int64, or int32 where there is no int64.
pub fn integer(device: Device) -> PyResult<DType> {
    call(|| integer_type(device))
}

/// [`integer`] inside of an op.
pub fn integer_type(device: Device) -> Result<DType> {
    let is_wide = device == Device::Cpu || device.supports(DType::I64)?;
    Ok(if is_wide { DType::I64 } else { DType::I32 })
}

/// Integers from `least` to `most` as Python has them: int64. Where there is no int64 they are int32, and ops on them whose
/// results could leave 32 bits are errors.
pub fn as_integers(x: &Tensor, least: i64, most: i64) -> Result<Tensor> {
    match integer_type(x.device())? {
        DType::I64 => x.try_to_dtype(DType::I64),
        narrow => x.try_to_dtype(narrow)?.try_as_wide_integers(least, most),
    }
}

/// Positions among so many as Python has them.
pub fn as_index(positions: &Tensor, count: usize) -> Result<Tensor> {
    as_integers(positions, 0, count.saturating_sub(1).min(i32::MAX as usize) as i64)
}

/// Truth values and bytes as the integers that Python sums them as; other types as they are.
pub fn countable(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::Bool => as_integers(x, 0, 1),
        DType::U8 => as_integers(x, 0, 255),
        _ => Ok(x.clone()),
    }
}

/// Creates tensors on this device from now on, in all threads.
#[pyfunction]
fn set_default_device(device: DeviceArg) {
    volta::set_default_device(device.0);
}

/// Where tensors are created unless said otherwise.
#[pyfunction]
fn get_default_device() -> PyResult<PyDevice> {
    or_default(None).map(PyDevice)
}

/// A GPU that tensors can live on: its number, what it is called, and whether it is a program that acts as one.
struct Gpu {
    index: usize,
    name: String,
    is_software: bool,
}

#[cfg(feature = "gpu")]
fn gpus() -> Vec<Gpu> {
    let gpu = |a: volta::gpu::Adapter| {
        let is_software = a.kind == volta::gpu::AdapterKind::Software;
        Some(Gpu { index: a.index?, name: format!("{} ({})", a.name, a.backend), is_software })
    };
    volta::gpu::adapters().into_iter().filter_map(gpu).collect()
}

#[cfg(not(feature = "gpu"))]
fn gpus() -> Vec<Gpu> {
    Vec::new()
}

/// The devices that tensors can live on, with the name of each: `[(device(type='cpu'), 'cpu'), ...]`.
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<Vec<(PyDevice, String)>> {
    let mut all = vec![(PyDevice(Device::Cpu), "cpu".to_string())];
    let gpus = run(py, || Ok(gpus()))?;
    all.extend(gpus.into_iter().map(|gpu| (PyDevice(Device::Gpu(gpu.index)), gpu.name)));
    Ok(all)
}

/// Whether there is a GPU that tensors can be moved to. Software adapters count where `VOLTA_ADAPTER` names them.
#[pyfunction]
fn is_available(py: Python<'_>) -> PyResult<bool> {
    run(py, || {
        let asked = volta::environment::adapter()?.is_some();
        Ok(gpus().iter().any(|gpu| asked || !gpu.is_software))
    })
}

/// Computes what is pending, and waits until all devices that were used, or the one that is named, have done everything: for
/// measuring, as nothing else needs it. An index that was out of bounds, or a division of integers by zero, is the error of
/// whoever waits for the device next.
#[pyfunction]
#[pyo3(signature = (device=None))]
fn synchronize(py: Python<'_>, device: Option<DeviceArg>) -> PyResult<()> {
    match device {
        None => run(py, volta::synchronize),
        Some(device) => run(py, || volta::try_realize_all(&[]).and(device.0.synchronize())),
    }
}

/// Adds the class and the functions about devices.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDevice>()?;
    module.add_function(wrap_pyfunction!(set_default_device, module)?)?;
    module.add_function(wrap_pyfunction!(get_default_device, module)?)?;
    module.add_function(wrap_pyfunction!(devices, module)?)?;
    module.add_function(wrap_pyfunction!(is_available, module)?)?;
    module.add_function(wrap_pyfunction!(synchronize, module)?)
}
