//! First values, as the engine's own layers draw them: the same seed gives a layer the same bits in Rust and in Python.

use crate::tensor::{DTypeArg, DeviceArg, PyTensor, or_default, record};
use pyo3::prelude::*;
use volta::{DType, Result, Tensor, with_device};

/// What `make` makes, on a device and in a type of choice.
fn placed(
    device: Option<DeviceArg>,
    dtype: Option<DTypeArg>,
    make: impl FnOnce() -> Result<Tensor>,
) -> PyResult<PyTensor> {
    let device = or_default(device)?;
    let dtype = dtype.map_or(DType::F32, |d| d.0);
    record(|| with_device(device, || make()?.try_to_dtype(dtype)))
}

/// Uniform within ±bound.
#[pyfunction]
#[pyo3(signature = (shape, bound, device = None, dtype = None))]
fn init_uniform(
    shape: Vec<usize>,
    bound: f64,
    device: Option<DeviceArg>,
    dtype: Option<DTypeArg>,
) -> PyResult<PyTensor> {
    // The formula of volta::nn::init::uniform, which draws numbers from 0 to 1.
    placed(device, dtype, || Tensor::try_rand(&shape[..])?.try_mul(2.0)?.try_sub(1.0)?.try_mul(bound))
}

/// Normal with a mean and a standard deviation.
#[pyfunction]
#[pyo3(signature = (shape, mean, std, device = None, dtype = None))]
fn init_normal(
    shape: Vec<usize>,
    mean: f64,
    std: f64,
    device: Option<DeviceArg>,
    dtype: Option<DTypeArg>,
) -> PyResult<PyTensor> {
    placed(device, dtype, || {
        let drawn = Tensor::try_randn(&shape[..])?.try_mul(std)?;
        if mean == 0.0 { Ok(drawn) } else { drawn.try_add(mean) }
    })
}

/// One number everywhere.
#[pyfunction]
#[pyo3(signature = (shape, value, device = None, dtype = None))]
fn init_constant(
    shape: Vec<usize>,
    value: f64,
    device: Option<DeviceArg>,
    dtype: Option<DTypeArg>,
) -> PyResult<PyTensor> {
    // In its type at once: float32 does not hold what float64 does.
    let kind = dtype.map_or(DType::F32, |d| d.0);
    placed(device, dtype, || Tensor::try_full_of(&shape[..], value, kind))
}

/// A count of 0, in a type that every device has.
#[pyfunction]
#[pyo3(signature = (device = None))]
fn init_count(device: Option<DeviceArg>) -> PyResult<PyTensor> {
    let dtype = Some(DTypeArg(DType::I32));
    placed(device, dtype, || Tensor::try_full_of([0i32; 0], 0, DType::I32))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(init_uniform, module)?)?;
    module.add_function(wrap_pyfunction!(init_normal, module)?)?;
    module.add_function(wrap_pyfunction!(init_constant, module)?)?;
    module.add_function(wrap_pyfunction!(init_count, module)?)
}
