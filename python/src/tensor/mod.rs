//! `volta.Tensor`, and the functions that make tensors.
//!
//! | module | holds |
//! |---|---|
//! | `arguments` `dtype` `device` | arguments as Python writes them |
//! | `array` `dlpack` | memory shared with NumPy and others |
//! | `create` | tensors from data, by rules, at random |
//! | `operators` `elementwise` `reduce` `movement` `combine` | ops, most of them rows of a table |
//! | `in_place` | what changes a tensor rather than making one |
//! | `index` | `x[...]` and `x[...] = y` |
//! | `read` | values for Python |
//! | `autograd` | gradients; functions whose gradients are written in Python |

mod arguments;
mod array;
mod autograd;
mod combine;
mod create;
mod device;
mod dlpack;
mod dtype;
mod elementwise;
mod in_place;
mod index;
mod movement;
mod operators;
mod read;
mod reduce;

// What the other modules of this crate take arguments by.
pub use arguments::Other;
pub use array::from_array;
pub use autograd::call_for_tensor;
pub use device::{DeviceArg, PyDevice, or_default};
pub use dtype::{DTypeArg, PyDType};
pub use elementwise::copied;
pub use in_place::check_assignable;

use crate::error::call;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use volta::{Result, Tensor};

/// A tensor: numbers in a shape, on a device, that remember how they were computed.
///
/// Tensors are lazy: an op checks its arguments at once and records what to do; reading a value computes what is
/// pending. Make them with `volta.tensor`, `volta.zeros`, `volta.from_numpy`, ...
#[pyclass(name = "Tensor", module = "volta", frozen, subclass, weakref, from_py_object)]
#[derive(Clone)]
pub struct PyTensor(pub Tensor);

impl From<Tensor> for PyTensor {
    /// The tensor as Python holds it: what an op gave can be changed in place too.
    fn from(tensor: Tensor) -> PyTensor {
        PyTensor(tensor.assignable())
    }
}

/// Records an op.
pub fn record(op: impl FnOnce() -> Result<Tensor>) -> PyResult<PyTensor> {
    call(op).map(PyTensor::from)
}

/// Records an op that has several results.
pub fn record_all(op: impl FnOnce() -> Result<Vec<Tensor>>) -> PyResult<Vec<PyTensor>> {
    Ok(call(op)?.into_iter().map(PyTensor::from).collect())
}

#[pymethods]
impl PyTensor {
    #[new]
    #[pyo3(signature = (data=None))]
    fn new(data: Option<&Bound<'_, PyAny>>) -> PyResult<PyTensor> {
        match data {
            None => record(|| Tensor::try_zeros([0usize])),
            Some(data) => match data.cast::<PyTensor>() {
                Ok(tensor) => Ok(tensor.get().clone()),
                Err(_) => create::tensor(data, None, None, false),
            },
        }
    }

    /// The sizes of all dimensions, as a tuple.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape().iter())
    }

    /// The sizes of all dimensions, or of one of them.
    #[pyo3(signature = (dim=None))]
    fn size<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::axis_or_none)] dim: Option<isize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match dim {
            None => Ok(self.shape(py)?.into_any()),
            Some(dim) => Ok(self.0.shape()[self.axis(dim)?].into_pyobject(py)?.into_any()),
        }
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.rank()
    }

    /// The number of dimensions.
    fn dim(&self) -> usize {
        self.0.rank()
    }

    /// The number of elements.
    fn numel(&self) -> usize {
        self.0.numel()
    }

    /// The number of elements.
    fn nelement(&self) -> usize {
        self.0.numel()
    }

    /// The type of the elements.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        dtype::object(py, self.0.dtype())
    }

    /// Where it lives.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.0.device())
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.dtype().size()
    }

    /// Bytes of one element.
    fn element_size(&self) -> usize {
        self.0.dtype().size()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.numel() * self.0.dtype().size()
    }

    /// Whether its elements are floats.
    fn is_floating_point(&self) -> bool {
        self.0.dtype().is_float()
    }

    /// Whether it lives on a GPU.
    #[getter]
    fn is_gpu(&self) -> bool {
        self.0.device().is_gpu()
    }

    /// Whether its elements lie in order. They always do: views are values of their own.
    fn is_contiguous(&self) -> bool {
        true
    }

    /// Itself: elements always lie in order.
    fn contiguous(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Whether both names are of one tensor: what changes one in place changes the other.
    fn is_same(&self, other: &PyTensor) -> bool {
        self.0.is_same(&other.0)
    }

    fn __len__(&self) -> PyResult<usize> {
        let shape = self.0.shape();
        shape
            .first()
            .copied()
            .ok_or_else(|| PyTypeError::new_err("a tensor without dimensions has no length"))
    }

    /// By identity: `==` compares elements.
    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        (slf.as_ptr() as isize) >> 4
    }
}

impl PyTensor {
    /// The dimension that `dim` means, counted from the end when negative.
    fn axis(&self, dim: isize) -> PyResult<usize> {
        let shape = self.0.shape();
        let rank = shape.rank() as isize;
        if dim < -rank || dim >= rank {
            return Err(PyIndexError::new_err(format!("dimension {dim} is out of range for shape {shape}")));
        }
        Ok(dim.rem_euclid(rank) as usize)
    }
}

/// Adds the classes and functions of tensors.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTensor>()?;
    dtype::register(module)?;
    device::register(module)?;
    create::register(module)?;
    combine::register(module)?;
    array::register(module)?;
    dlpack::register(module)?;
    operators::register(&module.getattr("Tensor")?)?;
    autograd::register(module)
}
