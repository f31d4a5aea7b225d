//! Memory shared with NumPy, by its array interface: a dictionary with an address.
//!
//! A tensor made of an array, and an array made of a tensor, share memory where they can. The engine never writes it:
//! an op in place gives the tensor other memory, and leaves the array as it is. What is written to the array from
//! Python is seen by every tensor that shares it, and by ops that are computed later.

use super::PyTensor;
use super::dtype::{by_name, name};
use crate::error::{call, run};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ptr::NonNull;
use volta::{DType, Device, Element, HostMemory, Tensor, bf16, f16};

/// The memory of a tensor, lent to NumPy, which keeps this object for as long as it uses the memory.
#[pyclass(module = "volta", frozen)]
struct Memory(HostMemory);

/// The array interface's name of a type; bfloat16, which NumPy does not know, goes as bits.
fn code(dtype: DType) -> String {
    let kind = match dtype {
        DType::Bool => "|b",
        DType::U8 => "|u",
        DType::U32 | DType::BF16 => "<u",
        dtype if dtype.is_float() => "<f",
        _ => "<i",
    };
    let kind = if cfg!(target_endian = "big") { kind.replace('<', ">") } else { kind.to_string() };
    format!("{kind}{}", dtype.size())
}

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", PyTuple::new(py, self.0.shape().iter())?)?;
        interface.set_item("typestr", code(self.0.dtype()))?;
        interface.set_item("data", (self.0.as_ptr() as usize, !self.0.is_writable()))?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
}

/// The package that has `bfloat16` for NumPy.
fn bfloat16(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("ml_dtypes").and_then(|m| m.getattr("bfloat16")).map_err(|_| {
        PyTypeError::new_err("NumPy has no bfloat16: convert with .float(), or install the package ml_dtypes")
    })
}

/// An array of a tensor's own memory.
fn view<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let memory = run(py, || tensor.try_host_memory())?;
    let array = py.import("numpy")?.call_method1("asarray", (Memory(memory),))?;
    if tensor.dtype() == DType::BF16 { array.call_method1("view", (bfloat16(py)?,)) } else { Ok(array) }
}

#[pymethods]
impl PyTensor {
    /// The values as a NumPy array that shares this tensor's memory: writing to the array changes the tensor, while
    /// an op in place gives the tensor other memory and leaves the array as it is.
    ///
    /// A tensor on a GPU must be moved with `cpu()` first and one that requires gradients be detached; `force=True`
    /// does both.
    #[pyo3(signature = (*, force=false))]
    pub fn numpy<'py>(&self, py: Python<'py>, force: bool) -> PyResult<Bound<'py, PyAny>> {
        if force {
            let here = run(py, || self.0.detach().try_to_device(Device::Cpu))?;
            return view(py, &here);
        }
        if self.0.is_tracked() {
            return Err(PyRuntimeError::new_err(
                "numpy: the tensor requires gradients, which an array cannot: use detach().numpy()",
            ));
        }
        if self.0.device() != Device::Cpu {
            let message = format!("numpy: the tensor is on {}: move it with cpu() first", self.0.device());
            return Err(PyTypeError::new_err(message));
        }
        view(py, &self.0)
    }

    /// For `np.asarray(tensor)`.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.numpy(py, false)?;
        let options = PyDict::new(py);
        options.set_item("copy", copy.unwrap_or(false))?;
        match dtype {
            Some(dtype) => array.call_method("astype", (dtype,), Some(&options)),
            None if copy == Some(true) => array.call_method0("copy"),
            None => Ok(array),
        }
    }

    /// NumPy lets the tensor compute `array + tensor`.
    #[classattr]
    fn __array_priority__() -> i32 {
        1000
    }
}

/// Whether an object is an array, or lends its memory as one does.
pub fn is_array(object: Borrowed<'_, '_, PyAny>) -> PyResult<bool> {
    object.hasattr("__array_interface__")
}

/// Keeps a Python object alive.
struct Keeper(#[expect(dead_code, reason = "held, not used")] Py<PyAny>);

/// An array whose elements lie as the engine wants them.
struct Array<'py> {
    object: Bound<'py, PyAny>,
    data: NonNull<u8>,
    shape: Vec<usize>,
    dtype: DType,
    writable: bool,
    /// Whether somebody else may have it.
    shared: bool,
}

impl<'py> Array<'py> {
    /// The array itself, or a copy where it is not contiguous, aligned or of the machine's byte order.
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
        let py = object.py();
        let numpy = py.import("numpy")?;
        let object = numpy.call_method1("asarray", (object,))?;
        let kind = object.getattr("dtype")?;
        let named: String = kind.getattr("name")?.extract()?;
        let dtype = by_name(&named).ok_or_else(|| {
            PyTypeError::new_err(format!("there are no tensors of {named}: convert the array with astype"))
        })?;
        if let Some(array) = Array::as_it_lies(&object, dtype, true)? {
            return Ok(array);
        }
        let options = PyDict::new(py);
        options.set_item("order", "C")?;
        options.set_item("dtype", kind.call_method1("newbyteorder", ("=",))?)?;
        let copy = numpy.call_method("array", (&object,), Some(&options))?;
        Array::as_it_lies(&copy, dtype, false)?
            .ok_or_else(|| PyRuntimeError::new_err("NumPy's copy of the array does not lie in order"))
    }

    fn as_it_lies(object: &Bound<'py, PyAny>, dtype: DType, shared: bool) -> PyResult<Option<Array<'py>>> {
        let interface = object.getattr("__array_interface__")?;
        let (address, read_only): (usize, bool) = interface.get_item("data")?.extract()?;
        let native: bool = object.getattr("dtype")?.getattr("isnative")?.extract()?;
        let in_order = interface.get_item("strides")?.is_none();
        let shape: Vec<usize> = interface.get_item("shape")?.extract()?;
        // Of no elements the address may be anything.
        let empty = shape.contains(&0);
        let Some(data) = NonNull::new(if empty { 64 as *mut u8 } else { address as *mut u8 }) else {
            return Ok(None);
        };
        if !in_order || !native || !(data.as_ptr() as usize).is_multiple_of(dtype.size()) {
            return Ok(None);
        }
        Ok(Some(Array { object: object.clone(), data, shape, dtype, writable: !read_only, shared }))
    }

    /// A tensor on the CPU that shares the array's memory.
    fn lend(self) -> PyResult<Tensor> {
        let keeper = Keeper(self.object.unbind());
        // SAFETY: NumPy promises as many aligned elements of that type at the address, in order, for as long as the
        // array lives, which the keeper sees to. Whoever writes them from another thread while they are read gets
        // what NumPy gives in that case too: some value.
        call(|| unsafe {
            Tensor::try_from_foreign(self.data, &self.shape[..], self.dtype, self.writable, Box::new(keeper))
        })
    }

    /// A tensor on a device with a copy of the array's elements.
    fn copy_to(&self, device: Device) -> PyResult<Tensor> {
        match self.dtype {
            DType::F32 => self.elements_to::<f32>(device),
            DType::F64 => self.elements_to::<f64>(device),
            DType::F16 => self.elements_to::<f16>(device),
            DType::BF16 => self.elements_to::<bf16>(device),
            DType::I32 => self.elements_to::<i32>(device),
            DType::I64 => self.elements_to::<i64>(device),
            DType::U8 => self.elements_to::<u8>(device),
            DType::Bool => self.elements_to::<bool>(device),
            DType::U32 => self.elements_to::<u32>(device),
        }
    }

    fn elements_to<T: Element>(&self, device: Device) -> PyResult<Tensor> {
        let count = self.shape.iter().product();
        // SAFETY: as in `lend`; NumPy's truth values are bytes of 0 and 1.
        let elements: &[T] = unsafe { std::slice::from_raw_parts(self.data.as_ptr().cast(), count) };
        let shape = &self.shape[..];
        run(self.object.py(), || volta::with_device(device, || Tensor::try_from_slice(elements, shape)))
    }
}

/// A tensor on the CPU that shares an array's memory, or the memory of a copy where it cannot.
pub fn shared(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    Array::of(object)?.lend()
}

/// A tensor with elements of its own, on a device.
pub fn from_array(object: &Bound<'_, PyAny>, device: Device) -> PyResult<Tensor> {
    let array = Array::of(object)?;
    if array.shared || device != Device::Cpu { array.copy_to(device) } else { array.lend() }
}

/// A tensor on the CPU that shares the memory of a NumPy array: what is written to the array is seen by the tensor.
///
/// An array that is not contiguous, misaligned or of the other byte order is copied. Ops in place on the tensor do not
/// write to the array. The `numpy()` of a tensor that shares a read-only array is read-only too.
#[pyfunction]
fn from_numpy(ndarray: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let is_array = ndarray.is_instance(&ndarray.py().import("numpy")?.getattr("ndarray")?)?;
    if !is_array {
        let kind = ndarray.get_type().name()?;
        return Err(PyTypeError::new_err(format!("from_numpy: a NumPy array is needed, not {kind}")));
    }
    shared(ndarray).map(PyTensor::from)
}

/// A tensor of bytes that were pickled.
#[pyfunction]
fn _rebuild(
    bytes: &Bound<'_, PyAny>,
    shape: Vec<usize>,
    dtype: &str,
    device: super::DeviceArg,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let py = bytes.py();
    let dtype = by_name(dtype).ok_or_else(|| PyTypeError::new_err(format!("there is no type {dtype}")))?;
    let kind = if dtype == DType::BF16 { bfloat16(py)? } else { name(dtype).into_pyobject(py)?.into_any() };
    let array = py.import("numpy")?.call_method1("frombuffer", (bytes, kind))?;
    let array = array.call_method1("reshape", (shape,))?;
    let tensor = from_array(&array, device.0)?;
    Ok(PyTensor::from(if requires_grad { call(|| tensor.try_requires_grad(true))? } else { tensor }))
}

/// Adds the functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_numpy, module)?)?;
    module.add_function(wrap_pyfunction!(_rebuild, module)?)
}
