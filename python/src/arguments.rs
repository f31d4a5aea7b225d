//! Tensors in lists of arguments and results.

use crate::tensor::PyTensor;
use pyo3::prelude::*;
use volta::Tensor;

/// A tensor in a list, or on its way to Python.
pub struct TensorArg(pub Tensor);

impl<'a, 'py> FromPyObject<'a, 'py> for TensorArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(TensorArg(object.cast::<PyTensor>()?.get().0.clone()))
    }
}

impl<'py> IntoPyObject<'py> for TensorArg {
    type Target = PyTensor;
    type Output = Bound<'py, PyTensor>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Bound::new(py, PyTensor::from(self.0))
    }
}
