//! DLPack: memory shared with whoever else speaks it, both ways. The structures are those of its header, version 1.

use super::{PyTensor, array, elementwise};
use crate::error::{call, run};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use volta::{DType, Device, HostMemory, Tensor};

const CPU: i32 = 1;
/// The host's memory that CUDA has pinned: the processor reads it like any other.
const CPU_PINNED: i32 = 3;
const WEBGPU: i32 = 15;
const READ_ONLY: u64 = 1;
const MAJOR: u32 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
struct DlType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    ndim: i32,
    dtype: DlType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// DLPack's code and bits of every type, in the order of `DType::ALL`.
const TYPES: [(u8, u8); 9] = [(2, 32), (2, 64), (2, 16), (4, 16), (0, 32), (0, 64), (1, 8), (6, 8), (1, 32)];

fn code(dtype: DType) -> DlType {
    let (code, bits) = TYPES[dtype as usize];
    DlType { code, bits, lanes: 1 }
}

/// The two forms of a capsule: before version 1 and since.
trait Form: Sized + 'static {
    const NAME: &'static CStr;
    const USED: &'static CStr;
    fn new(tensor: DlTensor, context: *mut c_void, read_only: bool) -> Self;
    fn tensor(&self) -> &DlTensor;
    fn context(&self) -> *mut c_void;
    fn is_read_only(&self) -> bool;
    fn speaks_our_version(&self) -> bool;
    /// # Safety
    /// Only once, by whoever has it.
    unsafe fn delete(this: NonNull<Self>);
}

impl Form for Managed {
    const NAME: &'static CStr = c"dltensor";
    const USED: &'static CStr = c"used_dltensor";
    fn new(tensor: DlTensor, context: *mut c_void, _: bool) -> Self {
        Managed { tensor, context, deleter: Some(forget::<Self>) }
    }
    fn tensor(&self) -> &DlTensor {
        &self.tensor
    }
    fn context(&self) -> *mut c_void {
        self.context
    }
    fn is_read_only(&self) -> bool {
        false
    }
    fn speaks_our_version(&self) -> bool {
        true
    }
    unsafe fn delete(this: NonNull<Self>) {
        // SAFETY: promised by the caller.
        unsafe {
            if let Some(deleter) = this.as_ref().deleter {
                deleter(this.as_ptr());
            }
        }
    }
}

impl Form for Versioned {
    const NAME: &'static CStr = c"dltensor_versioned";
    const USED: &'static CStr = c"used_dltensor_versioned";
    fn new(tensor: DlTensor, context: *mut c_void, read_only: bool) -> Self {
        let flags = if read_only { READ_ONLY } else { 0 };
        Versioned { major: MAJOR, minor: 0, context, deleter: Some(forget::<Self>), flags, tensor }
    }
    fn tensor(&self) -> &DlTensor {
        &self.tensor
    }
    fn context(&self) -> *mut c_void {
        self.context
    }
    fn is_read_only(&self) -> bool {
        self.flags & READ_ONLY != 0
    }
    fn speaks_our_version(&self) -> bool {
        self.major == MAJOR
    }
    unsafe fn delete(this: NonNull<Self>) {
        // SAFETY: promised by the caller.
        unsafe {
            if let Some(deleter) = this.as_ref().deleter {
                deleter(this.as_ptr());
            }
        }
    }
}

/// What a tensor that was given away needs until it is let go.
struct Export<F> {
    managed: F,
    #[expect(dead_code, reason = "the memory lives as long as this")]
    memory: HostMemory,
    #[expect(dead_code, reason = "`managed` points to it")]
    shape: Box<[i64]>,
    #[expect(dead_code, reason = "`managed` points to it")]
    strides: Box<[i64]>,
}

/// The deleter of what we give away.
unsafe extern "C" fn forget<F: Form>(managed: *mut F) {
    // SAFETY: the context is the export that `give` made, and DLPack calls this once.
    unsafe { drop(Box::from_raw((*managed).context().cast::<Export<F>>())) };
}

/// The destructor of a capsule that nobody took.
unsafe extern "C" fn unclaimed<F: Form>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with the capsule that `give` made; one that was taken has another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, F::NAME.as_ptr()) == 1
            && let Some(managed) = NonNull::new(ffi::PyCapsule_GetPointer(capsule, F::NAME.as_ptr()))
        {
            F::delete(managed.cast());
        }
    }
}

/// A capsule with a tensor's memory.
fn give<F: Form>(py: Python<'_>, memory: HostMemory) -> PyResult<Bound<'_, PyAny>> {
    let mut shape: Box<[i64]> = memory.shape().iter().map(|&e| e as i64).collect();
    let mut strides = vec![1i64; shape.len()].into_boxed_slice();
    for k in (0..shape.len().saturating_sub(1)).rev() {
        strides[k] = strides[k + 1] * shape[k + 1].max(1);
    }
    let tensor = DlTensor {
        data: memory.as_ptr().cast(),
        device: DlDevice { kind: CPU, id: 0 },
        ndim: shape.len() as i32,
        dtype: code(memory.dtype()),
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let managed = F::new(tensor, std::ptr::null_mut(), !memory.is_writable());
    let export = Box::into_raw(Box::new(Export { managed, memory, shape, strides }));
    // SAFETY: the export is ours until the capsule has it. The context is written before anybody can read it.
    unsafe {
        let managed = &raw mut (*export).managed;
        managed.write(F::new(read_tensor(managed), export.cast(), (*managed).is_read_only()));
        let capsule = ffi::PyCapsule_New(managed.cast(), F::NAME.as_ptr(), Some(unclaimed::<F>));
        if capsule.is_null() {
            drop(Box::from_raw(export));
            return Err(PyErr::fetch(py));
        }
        Ok(Bound::from_owned_ptr(py, capsule))
    }
}

/// A copy of the description of a tensor; the arrays it points to are not copied.
unsafe fn read_tensor<F: Form>(managed: *const F) -> DlTensor {
    // SAFETY: the caller has a managed tensor; its description is plain numbers and pointers.
    unsafe { std::ptr::read((*managed).tensor()) }
}

/// Memory that somebody gave us, until it is dropped.
struct Import<F: Form>(NonNull<F>);

// SAFETY: DLPack lets any thread call the deleter, which is all that happens to it.
unsafe impl<F: Form> Send for Import<F> {}
// SAFETY: as for `Send`.
unsafe impl<F: Form> Sync for Import<F> {}

impl<F: Form> Drop for Import<F> {
    fn drop(&mut self) {
        // SAFETY: the import is dropped once, and nobody else has the tensor.
        unsafe { F::delete(self.0) };
    }
}

/// What to do with a capsule's tensor.
enum Taken {
    Tensor(Tensor),
    /// Its elements do not lie in order.
    Scattered,
}

/// Takes a capsule's tensor, if it has this form.
fn take<F: Form>(capsule: &Bound<'_, PyCapsule>) -> PyResult<Option<Taken>> {
    // SAFETY: Python checks the name, and whoever made a capsule of this name put such a structure into it. Renaming
    // it says that we have it now.
    let import = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), F::NAME.as_ptr()) != 1 {
            return Ok(None);
        }
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), F::NAME.as_ptr());
        let Some(managed) = NonNull::new(pointer.cast::<F>()) else { return Err(PyErr::fetch(capsule.py())) };
        ffi::PyCapsule_SetName(capsule.as_ptr(), F::USED.as_ptr());
        Import(managed)
    };
    // SAFETY: the tensor is ours until the import is dropped.
    let managed = unsafe { import.0.as_ref() };
    if !managed.speaks_our_version() {
        return Err(PyBufferError::new_err(
            "from_dlpack: the tensor speaks another version of DLPack than 1",
        ));
    }
    let (tensor, read_only) = (managed.tensor(), managed.is_read_only());
    if !matches!(tensor.device.kind, CPU | CPU_PINNED) {
        return Err(PyBufferError::new_err("from_dlpack: the tensor is not on the CPU: copy it there first"));
    }
    let Some(dtype) = DType::ALL.into_iter().find(|&d| code(d) == tensor.dtype) else {
        let DlType { code, bits, lanes } = tensor.dtype;
        let message = format!(
            "from_dlpack: there are no tensors of DLPack's type {code} of {bits} bits ({lanes} lanes)"
        );
        return Err(PyTypeError::new_err(message));
    };
    let numbers = |pointer: *mut i64| -> &[i64] {
        if pointer.is_null() || tensor.ndim <= 0 {
            return &[];
        }
        // SAFETY: DLPack's arrays have a number for each dimension.
        unsafe { std::slice::from_raw_parts(pointer, tensor.ndim as usize) }
    };
    let shape: Vec<usize> = numbers(tensor.shape).iter().map(|&e| e as usize).collect();
    if !in_order(&shape, numbers(tensor.strides)) {
        return Ok(Some(Taken::Scattered));
    }
    let data = (tensor.data as usize).wrapping_add(tensor.byte_offset as usize);
    let data = if shape.contains(&0) { 64 } else { data };
    let Some(data) = NonNull::new(data as *mut u8) else {
        return Err(PyBufferError::new_err("from_dlpack: the tensor has no memory"));
    };
    if !(data.as_ptr() as usize).is_multiple_of(dtype.size()) {
        return Ok(Some(Taken::Scattered));
    }
    // SAFETY: the producer promises that many elements of the type there, until its deleter is called.
    let made =
        call(|| unsafe { Tensor::try_from_foreign(data, &shape[..], dtype, !read_only, Box::new(import)) })?;
    Ok(Some(Taken::Tensor(made)))
}

/// Whether elements lie row by row; without strides they do.
fn in_order(shape: &[usize], strides: &[i64]) -> bool {
    let mut expected = 1;
    strides.is_empty()
        || shape.contains(&0)
        || shape.iter().zip(strides).rev().all(|(&extent, &stride)| {
            let fits = extent == 1 || stride == expected;
            expected *= extent as i64;
            fits
        })
}

/// A tensor that shares the memory of any object on the CPU that speaks DLPack, such as arrays of NumPy and JAX. One
/// whose elements do not lie in order is copied.
#[pyfunction]
fn from_dlpack(ext_tensor: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let py = ext_tensor.py();
    let capsule = if ext_tensor.is_instance_of::<PyCapsule>() {
        ext_tensor.clone()
    } else {
        let options = PyDict::new(py);
        options.set_item("max_version", (MAJOR, 0))?;
        let newer = ext_tensor.call_method("__dlpack__", (), Some(&options));
        match newer {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => ext_tensor.call_method0("__dlpack__")?,
            other => other?,
        }
    };
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let taken = match take::<Versioned>(&capsule)? {
        Some(taken) => taken,
        None => take::<Managed>(&capsule)?.ok_or_else(|| {
            PyBufferError::new_err("from_dlpack: the capsule holds no tensor, or one that was taken already")
        })?,
    };
    match taken {
        Taken::Tensor(tensor) => Ok(PyTensor::from(tensor)),
        Taken::Scattered if ext_tensor.is_instance_of::<PyCapsule>() => Err(PyBufferError::new_err(
            "from_dlpack: the elements do not lie in order: give the object, not its capsule",
        )),
        Taken::Scattered => {
            let array = py.import("numpy")?.call_method1("from_dlpack", (ext_tensor,))?;
            array::from_array(&array, Device::Cpu).map(PyTensor::from)
        }
    }
}

#[pymethods]
impl PyTensor {
    /// A DLPack capsule that shares this tensor's memory, for `np.from_dlpack(tensor)` and the like.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The host has no streams: what is given out is computed.
        let _ = stream;
        if self.0.is_tracked() {
            return Err(PyBufferError::new_err(
                "the tensor requires gradients, which others do not know: use detach()",
            ));
        }
        let elsewhere = dl_device.is_some_and(|(kind, _)| kind != CPU);
        if self.0.device() != Device::Cpu || elsewhere {
            let message =
                format!("a tensor on {} can be given away on the CPU only: use cpu()", self.0.device());
            return Err(PyBufferError::new_err(message));
        }
        let versioned = max_version.is_some_and(|(major, _)| major >= MAJOR);
        let mut memory = run(py, || self.0.try_host_memory())?;
        // Only the newer form can say that memory is not to be written.
        if copy == Some(true) || (!versioned && !memory.is_writable()) {
            memory = run(py, || elementwise::copied(&self.0)?.try_host_memory())?;
        }
        if versioned { give::<Versioned>(py, memory) } else { give::<Managed>(py, memory) }
    }

    /// DLPack's number for the device: its kind and index.
    fn __dlpack_device__(&self) -> (i32, i32) {
        match self.0.device() {
            Device::Gpu(index) => (WEBGPU, index as i32),
            _ => (CPU, 0),
        }
    }
}

/// Adds the function.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_dlpack, module)?)
}
