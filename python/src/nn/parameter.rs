//! `volta.nn.Parameter`.

use crate::error::call;
use crate::tensor::{PyTensor, copied, record};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use volta::Tensor;

/// A tensor that a module trains: assigned to an attribute of a module, it is found by `parameters()`.
///
/// It starts with the values of `data`, and is a tensor of its own.
#[pyclass(name = "Parameter", module = "volta.nn", extends = PyTensor, subclass, dict, frozen)]
pub struct PyParameter;

/// What pickle calls to make a parameter anew, and what with.
type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyTensor>, bool));

#[pymethods]
impl PyParameter {
    #[new]
    #[pyo3(signature = (data, requires_grad = true))]
    fn new(data: PyRef<'_, PyTensor>, requires_grad: bool) -> PyResult<PyClassInitializer<Self>> {
        let own = call(|| data.0.try_requires_grad(requires_grad))?;
        Ok(PyClassInitializer::from(PyTensor(own)).add_subclass(PyParameter))
    }

    fn __deepcopy__(slf: Bound<'_, Self>, memo: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
        let copy = PyParameter::copied(&slf)?;
        memo.set_item(slf.as_ptr() as usize, &copy)?;
        Ok(copy.unbind())
    }

    fn __copy__(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        PyParameter::copied(&slf).map(Bound::unbind)
    }

    fn __reduce_ex__<'py>(slf: Bound<'py, Self>, _protocol: i32) -> PyResult<Reduced<'py>> {
        let tensor = &slf.as_super().get().0;
        let value = Bound::new(slf.py(), PyTensor(tensor.variable()))?;
        Ok((slf.get_type().into_any(), (value, tensor.is_tracked())))
    }

    fn __repr__(slf: Bound<'_, Self>) -> PyResult<String> {
        let tensor = slf.as_super().get();
        let value = Bound::new(slf.py(), PyTensor(tensor.0.variable()))?.repr()?.to_string();
        let value = value.strip_suffix(')').unwrap_or(&value);
        let flag = if tensor.0.is_tracked() { ", requires_grad=True" } else { "" };
        Ok(format!("Parameter containing:\n{value}{flag})"))
    }
}

impl PyParameter {
    /// The tensor itself as a parameter: what changes one changes the other.
    pub fn shared(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, Self>> {
        Bound::new(py, PyClassInitializer::from(PyTensor(tensor)).add_subclass(PyParameter))
    }

    /// The same value in a parameter of its own, of the same class.
    fn copied<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let tensor = slf.as_super().get();
        // In memory of its own, since what is written to an array of one must not be seen by the other.
        let value = Bound::new(slf.py(), record(|| copied(&tensor.0.detach()))?)?;
        slf.get_type().call1((value, tensor.0.is_tracked()))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyParameter>()
}
