//! `volta.Tensor`.

use crate::error::raise;
use pyo3::prelude::*;

/// A tensor: numbers in a shape, on a device, that remember how they were computed.
#[pyclass(name = "Tensor", module = "volta", frozen, subclass)]
#[derive(Clone)]
pub struct PyTensor(pub volta::Tensor);

#[pymethods]
impl PyTensor {
    /// The sizes of all dimensions.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.0.shape().to_vec()
    }

    fn __add__(&self, other: &PyTensor) -> PyResult<PyTensor> {
        self.0.try_add(&other.0).map(PyTensor).map_err(raise)
    }
}

/// Adds the class and the functions that make tensors.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTensor>()
}
