//! `micrograd_rs.Device`.

use crate::error::run;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Where values live: `Device.cpu()`, or `Device.gpu()` where there is one.
///
/// A `Value` on the GPU remembers its device and is computed by the host all the same: one number is not worth a
/// kernel. `ValueBatch` and `Tensor` are computed on their device.
#[pyclass(eq, eq_int, hash, frozen, from_py_object, module = "micrograd_rs")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Device {
    #[default]
    Cpu,
    Gpu,
}

#[pymethods]
impl Device {
    /// The host's processor.
    #[staticmethod]
    fn cpu() -> Device {
        Device::Cpu
    }

    /// The best GPU. Raises RuntimeError, with what to install, where there is none; the environment variable
    /// VOLTA_ADAPTER picks one by a part of its name, software ones too.
    #[staticmethod]
    fn gpu(py: Python<'_>) -> PyResult<Device> {
        run(py, volta::Device::gpu).map(|_| Device::Gpu)
    }

    /// Whether there is a GPU.
    #[staticmethod]
    fn is_gpu_available(py: Python<'_>) -> bool {
        run(py, volta::Device::gpu).is_ok()
    }
}

impl Device {
    /// The engine's device.
    pub fn place(self) -> volta::Device {
        match self {
            Device::Cpu => volta::Device::Cpu,
            Device::Gpu => volta::Device::Gpu(0),
        }
    }

    /// The device of what is computed from values on two; they must be one.
    #[inline]
    pub fn meet(self, other: Device) -> PyResult<Device> {
        if self == other { Ok(self) } else { Err(mixed(self, other)) }
    }
}

#[cold]
fn mixed(a: Device, b: Device) -> PyErr {
    PyRuntimeError::new_err(format!(
        "one value is on Device.{a:?} and the other on Device.{b:?}: move one with .to(device)"
    ))
}
