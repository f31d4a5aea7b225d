//! Arguments as Python writes them: numbers, operands, axes, shapes, lists of tensors.

use super::PyTensor;
use super::device::{as_integers, integer_type};
use crate::tensor::array;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple};
use volta::{DType, Device, Operand, Result, Scalar, Tensor};

/// A number: Python's or NumPy's.
#[derive(Clone, Copy)]
pub struct Number(pub Scalar);

/// The number that an object is, if it is one.
fn number(object: Borrowed<'_, '_, PyAny>) -> PyResult<Option<Scalar>> {
    if let Ok(x) = object.cast::<PyFloat>() {
        return Ok(Some(Scalar::Float(x.extract()?)));
    }
    if let Ok(x) = object.cast_exact::<PyInt>() {
        return Ok(Some(Scalar::Int(x.extract()?)));
    }
    if let Ok(x) = object.cast::<PyBool>() {
        return Ok(Some(Scalar::Bool(x.is_true())));
    }
    if object.is_instance_of::<PyInt>() {
        return Ok(Some(Scalar::Int(object.extract()?)));
    }
    // NumPy's own numbers have an item() that is Python's.
    if object.hasattr("dtype")? && object.getattr("ndim")?.extract::<usize>()? == 0 {
        return number(object.call_method0("item")?.as_borrowed());
    }
    Ok(None)
}

fn not_a(what: &str, object: Borrowed<'_, '_, PyAny>) -> PyErr {
    let kind = object.get_type().name().map(|n| n.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!("{what} is needed, not {kind}"))
}

impl<'a, 'py> FromPyObject<'a, 'py> for Number {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Number> {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            check_constant(&tensor.get().0)?;
            return super::read::scalar(object.py(), &tensor.get().0).map(Number);
        }
        number(object)?.map(Number).ok_or_else(|| not_a("a number", object))
    }
}

/// An error for a tensor in the place of a number whose gradient would be lost there.
fn check_constant(tensor: &Tensor) -> PyResult<()> {
    if tensor.is_tracked() {
        return Err(PyTypeError::new_err(
            "a number is needed, and the gradient of this tensor would be lost: use .item() or .detach()",
        ));
    }
    Ok(())
}

/// A number as a float; a tensor that requires gradients is none.
pub fn float(object: &Bound<'_, PyAny>) -> PyResult<f64> {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        check_constant(&tensor.get().0)?;
    }
    object.extract()
}

/// The other operand of an op: a tensor, a number or an array.
pub struct Other(pub Operand);

impl Other {
    /// The operand beside a tensor: an integer beside truth values is of the type of Python's integers there.
    pub fn beside(self, x: &Tensor) -> Result<Operand> {
        match self.0 {
            Operand::Scalar(number @ Scalar::Int(_)) if x.dtype() == DType::Bool => {
                constant(&[], number, x.device()).map(Operand::Tensor)
            }
            operand => Ok(operand),
        }
    }

    /// The operand as a tensor on a device, unless it is one.
    pub fn into_tensor(self, device: Device) -> Result<Tensor> {
        match self.0 {
            Operand::Tensor(tensor) => Ok(tensor),
            Operand::Scalar(number) => constant(&[], number, device),
        }
    }
}

/// A number everywhere, in the type that Python's numbers of its kind have on a device.
pub fn constant(shape: &[usize], number: Scalar, device: Device) -> Result<Tensor> {
    volta::with_device(device, || match number {
        Scalar::Int(x) => as_integers(&Tensor::try_full_of(shape, x, integer_type(device)?)?, x, x),
        other => Tensor::try_full_of(shape, other, other.natural_dtype()),
    })
}

impl<'a, 'py> FromPyObject<'a, 'py> for Other {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Other> {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            return Ok(Other(Operand::Tensor(tensor.get().0.clone())));
        }
        if let Some(scalar) = number(object)? {
            return Ok(Other(Operand::Scalar(scalar)));
        }
        if array::is_array(object)? {
            // A copy: what is written to the array after this line is not part of the result.
            return Ok(Other(Operand::Tensor(array::from_array(&object, Device::Cpu)?)));
        }
        Err(not_a("a tensor or a number", object))
    }
}

/// One axis: an integer that is no truth value, since Python's True is 1 but was meant for another argument.
pub fn axis(object: &Bound<'_, PyAny>) -> PyResult<isize> {
    match object.extract() {
        Ok(axis) if !object.is_instance_of::<PyBool>() => Ok(axis),
        _ => Err(not_a("an integer", object.as_borrowed())),
    }
}

/// An axis, or none.
pub fn axis_or_none(object: &Bound<'_, PyAny>) -> PyResult<Option<isize>> {
    if object.is_none() { Ok(None) } else { axis(object).map(Some) }
}

/// Axes, sizes or extents: one number, or several in a tuple or list.
pub struct Dims(pub Vec<isize>);

impl<'a, 'py> FromPyObject<'a, 'py> for Dims {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Dims> {
        // Mostly a tuple: asking that for a number would make an exception first.
        let dims = match object.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().map(|one| axis(&one)).collect(),
            Err(_) => axis(&object).map(|one| vec![one]).or_else(|_| {
                let several: Vec<Bound<'py, PyAny>> = object.extract()?;
                several.iter().map(axis).collect()
            }),
        };
        dims.map(Dims).map_err(|_: PyErr| not_a("an integer or a tuple of integers", object))
    }
}

impl From<Dims> for volta::Dims {
    fn from(dims: Dims) -> volta::Dims {
        volta::Dims::from(&dims.0[..])
    }
}

/// Sizes as PyTorch takes them: `f(2, 3)`, `f((2, 3))` or `f([2, 3])`.
pub fn sizes(arguments: &Bound<'_, PyTuple>) -> PyResult<Vec<isize>> {
    if arguments.len() == 1 {
        let first = arguments.get_item(0)?;
        if first.is_instance_of::<PyTuple>() || first.is_instance_of::<PyList>() {
            return first.extract::<Dims>().map(|d| d.0);
        }
    }
    arguments.extract::<Dims>().map(|d| d.0)
}

/// Sizes by position, or by the name that PyTorch gives them: `f(2, 3)` or `f(size=(2, 3))`.
pub fn sizes_or_named(
    arguments: &Bound<'_, PyTuple>,
    named: Option<Dims>,
    name: &str,
) -> PyResult<Vec<isize>> {
    match named {
        None => sizes(arguments),
        Some(Dims(named)) if arguments.is_empty() => Ok(named),
        Some(_) => Err(PyTypeError::new_err(format!("{name} is given twice: by position and by name"))),
    }
}

/// Extents, none of which is negative.
pub fn extents(sizes: &[isize]) -> PyResult<Vec<usize>> {
    let positive = |&s: &isize| {
        usize::try_from(s).map_err(|_| PyValueError::new_err(format!("size {s} of {sizes:?} is negative")))
    };
    sizes.iter().map(positive).collect()
}

/// The tensors of a list or tuple.
pub fn tensors(list: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    list.try_iter()?.map(|t| Ok(t?.cast::<PyTensor>()?.get().0.clone())).collect()
}
