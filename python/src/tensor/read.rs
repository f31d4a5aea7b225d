//! Values for Python: numbers, lists, text, pickles, copies.

use super::elementwise::copied;
use super::{PyTensor, dtype};
use crate::error::{call, run};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyDict, PyInt};
use volta::{DType, Device, Scalar, Tensor};

/// The one number of a tensor.
pub fn scalar(py: Python<'_>, x: &Tensor) -> PyResult<Scalar> {
    run(py, || {
        Ok(match x.dtype() {
            DType::Bool => Scalar::Bool(x.try_item()?),
            dtype if dtype.is_float() => Scalar::Float(x.try_item()?),
            _ => Scalar::Int(x.try_item()?),
        })
    })
}

/// The tensor on the host, cut from the tape, in a type that NumPy has.
fn readable(py: Python<'_>, x: &Tensor) -> PyResult<PyTensor> {
    run(py, || {
        let here = x.detach().try_to_device(Device::Cpu)?;
        match here.dtype() {
            DType::BF16 => here.try_to_dtype(DType::F32),
            _ if x.holds_wide_integers() => here.try_to_dtype(DType::I64),
            _ => Ok(here),
        }
    })
    .map(PyTensor)
}

#[pymethods]
impl PyTensor {
    /// The value of a tensor of one element, as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match scalar(py, &self.0)? {
            Scalar::Float(x) => x.into_pyobject(py)?.into_any(),
            Scalar::Int(x) => x.into_pyobject(py)?.into_any(),
            Scalar::Bool(x) => x.into_pyobject(py)?.to_owned().into_any(),
        })
    }

    /// The values as nested lists of Python numbers; of a tensor without dimensions, the number.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        readable(py, &self.0)?.numpy(py, false)?.call_method0("tolist")
    }

    /// Computes the value now, if it is not there yet, and returns the tensor.
    fn realize<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let x = &slf.get().0;
        run(slf.py(), || x.try_realize())?;
        Ok(slf.clone())
    }

    /// Whether the value was computed already.
    #[getter]
    fn is_realized(&self) -> bool {
        self.0.is_realized()
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        if self.0.numel() != 1 {
            let message =
                format!("the truth of a tensor of shape {} is ambiguous: use any() or all()", self.0.shape());
            return Err(PyValueError::new_err(message));
        }
        Ok(scalar(py, &self.0)?.is_true())
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(scalar(py, &self.0)?.to_f64())
    }

    /// As Python's `int`: exact however large, and an error of what is no integer.
    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<PyInt>().call1((self.item(py)?,))
    }

    fn __index__(&self, py: Python<'_>) -> PyResult<i64> {
        if !self.0.dtype().is_int() || self.0.numel() != 1 {
            return Err(PyTypeError::new_err("only a tensor of one integer can be an index"));
        }
        Ok(scalar(py, &self.0)?.to_i64())
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyComplex>> {
        Ok(PyComplex::from_doubles(py, self.__float__(py)?, 0.0))
    }

    /// Whether any element equals a number.
    fn __contains__(&self, py: Python<'_>, element: super::Other) -> PyResult<bool> {
        run(py, || self.0.detach().try_eq(element.0)?.try_any()?.try_item())
    }

    fn __format__(slf: &Bound<'_, Self>, spec: &str) -> PyResult<String> {
        if spec.is_empty() || slf.get().0.numel() != 1 || slf.get().0.rank() != 0 {
            return Ok(slf.str()?.to_string());
        }
        slf.get().item(slf.py())?.call_method1("__format__", (spec,))?.extract()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let array = readable(slf.py(), &slf.get().0)?.numpy(slf.py(), false)?;
        slf.py().import("volta._format")?.call_method1("tensor_repr", (slf, array))?.extract()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let py = slf.py();
        let x = &slf.get().0;
        let memory = run(py, || x.detach().try_to_device(Device::Cpu)?.try_host_memory())?;
        let bytes = PyBytes::new(py, memory.bytes());
        let leaf = x.is_tracked() && x.is_leaf();
        let device = x.device().to_string();
        let arguments =
            (bytes, x.shape().to_vec(), dtype::name(x.dtype()), device, leaf).into_pyobject(py)?;
        Ok((py.import("volta._volta")?.getattr("_rebuild")?, arguments.into_any()))
    }

    /// A copy with memory of its own; the gradient, if there is one, is copied with it.
    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let key = slf.as_ptr() as usize;
        if let Some(done) = memo.get_item(key)? {
            return Ok(done);
        }
        let x = &slf.get().0;
        if !x.is_leaf() {
            return Err(pyo3::exceptions::PyRuntimeError::new_err(
                "deepcopy: only leaves can be copied whole: detach() the tensor first",
            ));
        }
        let copy = call(|| {
            let copy = copied(&x.detach())?;
            let copy = if x.is_tracked() { copy.try_requires_grad(true)? } else { copy.assignable() };
            if let Some(gradient) = x.grad() {
                copy.set_grad(Some(copied(&gradient.detach())?));
            }
            Ok(copy)
        })?;
        let copy = Bound::new(slf.py(), PyTensor(copy))?.into_any();
        memo.set_item(key, &copy)?;
        Ok(copy)
    }

    /// Another name of the same tensor.
    fn __copy__(&self) -> PyTensor {
        self.clone()
    }
}
