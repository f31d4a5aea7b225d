//! `micrograd_rs.Tensor` and `ValueBatch`: many numbers at once, on Volta's tensors.

use super::device::Device;
use crate::error::{call, run};
use crate::tensor::{PyTensor, from_array};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use volta::{BackwardOptions, DType, Operand};

/// Numbers in a shape, computed on their device, that remember how they were computed.
///
/// Made from numbers, nested lists or arrays; f64 on the CPU and f32 on the GPU, which has no f64. Ops are recorded, and run
/// fused when numbers are read: by `numpy()`, `tolist()`, `item()` or printing.
///
/// >>> w = Tensor([[1.0, 2.0], [3.0, 4.0]])
/// >>> (w @ w).sum().backward()
/// >>> w.grad.tolist()
/// [[7.0, 11.0], [9.0, 13.0]]
#[pyclass(frozen, subclass, module = "micrograd_rs")]
pub struct Tensor(volta::Tensor);

/// A list of numbers that are computed together, on their device: a `Tensor` of one dimension.
///
/// >>> batch = ValueBatch([1.0, 2.0, 3.0])
/// >>> (batch * 2.0).tolist()
/// [2.0, 4.0, 6.0]
#[pyclass(frozen, extends = Tensor, module = "micrograd_rs")]
pub struct ValueBatch;

/// Python's numbers as a tensor that collects gradients.
fn read(data: &Bound<'_, PyAny>, device: Device) -> PyResult<volta::Tensor> {
    let kind = if device == Device::Cpu { "float64" } else { "float32" };
    let array = data.py().import("numpy")?.call_method1("array", (data, kind))?;
    let tensor = from_array(&array, device.place())?;
    call(|| tensor.try_requires_grad(true))
}

/// A result: a batch where it came from one and still has one dimension.
fn wrap<'py>(py: Python<'py>, tensor: volta::Tensor, batch: bool) -> PyResult<Bound<'py, Tensor>> {
    if batch && tensor.rank() == 1 {
        return Ok(Bound::new(py, (ValueBatch, Tensor(tensor)))?.into_super());
    }
    Bound::new(py, Tensor(tensor))
}

fn is_batch(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<ValueBatch>()
}

type Binary = fn(&volta::Tensor, Operand) -> volta::Result<volta::Tensor>;
type Unary = fn(&volta::Tensor) -> volta::Result<volta::Tensor>;

fn unary<'py>(this: &Bound<'py, Tensor>, op: Unary) -> PyResult<Bound<'py, Tensor>> {
    wrap(this.py(), call(|| op(&this.get().0))?, is_batch(this))
}

fn binary<'py>(
    this: &Bound<'py, Tensor>,
    other: &Bound<'py, PyAny>,
    op: Binary,
) -> PyResult<Bound<'py, PyAny>> {
    let py = this.py();
    let operand: Operand = if let Ok(other) = other.cast::<Tensor>() {
        this.get().device().meet(other.get().device())?;
        (&other.get().0).into()
    } else if let Ok(number) = other.extract::<f64>() {
        number.into()
    } else {
        return Ok(py.NotImplemented().into_bound(py));
    };
    let result = call(|| op(&this.get().0, operand))?;
    wrap(py, result, is_batch(this) || is_batch(other)).map(Bound::into_any)
}

/// `number op this`.
fn reflected<'py>(
    this: &Bound<'py, Tensor>,
    other: &Bound<'py, PyAny>,
    op: Binary,
) -> PyResult<Bound<'py, PyAny>> {
    let py = this.py();
    let Ok(number) = other.extract::<f64>() else {
        return Ok(py.NotImplemented().into_bound(py));
    };
    let tensor = &this.get().0;
    let result = call(|| {
        let make = || volta::Tensor::try_full_of([0usize; 0], number, tensor.dtype());
        op(&volta::with_device(tensor.device(), make)?, tensor.into())
    })?;
    wrap(py, result, is_batch(this)).map(Bound::into_any)
}

#[pymethods]
impl Tensor {
    #[new]
    #[pyo3(signature = (data, device = None))]
    fn new(data: &Bound<'_, PyAny>, device: Option<Device>) -> PyResult<Tensor> {
        read(data, device.unwrap_or_default()).map(Tensor)
    }

    /// The sizes of all dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape().iter())
    }

    /// Where it lives and is computed.
    #[getter]
    fn device(&self) -> Device {
        if self.0.device().is_gpu() { Device::Gpu } else { Device::Cpu }
    }

    /// The numbers, on the device, without how they were computed. `w.data -= 0.1 * w.grad` gives a tensor new ones.
    #[getter]
    fn data<'py>(this: &Bound<'py, Tensor>) -> PyResult<Bound<'py, Tensor>> {
        wrap(this.py(), this.get().0.detach(), is_batch(this))
    }

    #[setter]
    fn set_data(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let new = match data.cast::<Tensor>() {
            Ok(tensor) => tensor.get().0.clone(),
            Err(_) => read(data, self.device())?,
        };
        call(|| self.0.try_assign(&new))
    }

    /// The gradient that `backward` added up, zeros before; None for the result of an op.
    #[getter]
    fn grad<'py>(this: &Bound<'py, Tensor>) -> PyResult<Option<Bound<'py, Tensor>>> {
        let tensor = &this.get().0;
        let gradient = match tensor.grad() {
            Some(gradient) => gradient,
            None if tensor.is_tracked() && tensor.is_leaf() => tensor.zeros_like(),
            None => return Ok(None),
        };
        wrap(this.py(), gradient.detach(), is_batch(this)).map(Some)
    }

    /// Sets the gradient to zero.
    fn zero_grad(&self) {
        self.0.zero_grad();
    }

    /// Adds to the gradients of all tensors that this was computed from; every number of it counts once.
    fn backward(&self, py: Python<'_>) -> PyResult<()> {
        let options = BackwardOptions { retain_graph: true, ..Default::default() };
        run(py, || self.0.try_backward_with(Some(&self.0.ones_like()), options))
    }

    /// The same numbers on another device, as f64 on the CPU and f32 on the GPU. Gradients flow back.
    fn to<'py>(this: &Bound<'py, Tensor>, device: Device) -> PyResult<Bound<'py, Tensor>> {
        let tensor = &this.get().0;
        let moved = run(this.py(), || match device {
            Device::Gpu => tensor.try_to_dtype(DType::F32)?.try_to_device(device.place()),
            Device::Cpu => tensor.try_to_device(device.place())?.try_to_dtype(DType::F64),
        })?;
        wrap(this.py(), moved, is_batch(this))
    }

    /// The numbers as an array of NumPy's.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyTensor(self.0.clone()).numpy(py, true)?.call_method0("copy")
    }

    /// The numbers as nested lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy(py)?.call_method0("tolist")
    }

    /// The only number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.numel() {
            1 => self.numpy(py)?.call_method0("item"),
            n => Err(PyValueError::new_err(format!("item() needs one number, and there are {n}"))),
        }
    }

    /// Zero where it is negative.
    fn relu<'py>(this: &Bound<'py, Tensor>) -> PyResult<Bound<'py, Tensor>> {
        unary(this, volta::Tensor::try_relu)
    }

    /// The hyperbolic tangent.
    fn tanh<'py>(this: &Bound<'py, Tensor>) -> PyResult<Bound<'py, Tensor>> {
        unary(this, volta::Tensor::try_tanh)
    }

    /// e to the power of it.
    fn exp<'py>(this: &Bound<'py, Tensor>) -> PyResult<Bound<'py, Tensor>> {
        unary(this, volta::Tensor::try_exp)
    }

    /// The natural logarithm.
    fn log<'py>(this: &Bound<'py, Tensor>) -> PyResult<Bound<'py, Tensor>> {
        unary(this, volta::Tensor::try_log)
    }

    /// The sum of all numbers.
    fn sum<'py>(this: &Bound<'py, Tensor>) -> PyResult<Bound<'py, Tensor>> {
        unary(this, volta::Tensor::try_sum)
    }

    /// The mean of all numbers.
    fn mean<'py>(this: &Bound<'py, Tensor>) -> PyResult<Bound<'py, Tensor>> {
        unary(this, volta::Tensor::try_mean)
    }

    /// Rows and columns exchanged.
    #[getter]
    #[pyo3(name = "T")]
    fn transposed<'py>(this: &Bound<'py, Tensor>) -> PyResult<Bound<'py, Tensor>> {
        unary(this, volta::Tensor::try_t)
    }

    fn __neg__<'py>(this: &Bound<'py, Tensor>) -> PyResult<Bound<'py, Tensor>> {
        unary(this, volta::Tensor::try_neg)
    }

    fn __add__<'py>(this: &Bound<'py, Tensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(this, other, |a, b| a.try_add(b))
    }

    fn __radd__<'py>(this: &Bound<'py, Tensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        reflected(this, other, |a, b| a.try_add(b))
    }

    fn __sub__<'py>(this: &Bound<'py, Tensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(this, other, |a, b| a.try_sub(b))
    }

    fn __rsub__<'py>(this: &Bound<'py, Tensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        reflected(this, other, |a, b| a.try_sub(b))
    }

    fn __mul__<'py>(this: &Bound<'py, Tensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(this, other, |a, b| a.try_mul(b))
    }

    fn __rmul__<'py>(this: &Bound<'py, Tensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        reflected(this, other, |a, b| a.try_mul(b))
    }

    fn __truediv__<'py>(this: &Bound<'py, Tensor>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        binary(this, other, |a, b| a.try_div(b))
    }

    fn __rtruediv__<'py>(
        this: &Bound<'py, Tensor>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reflected(this, other, |a, b| a.try_div(b))
    }

    fn __pow__<'py>(
        this: &Bound<'py, Tensor>,
        other: &Bound<'py, PyAny>,
        _modulo: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        binary(this, other, |a, b| a.try_pow(b))
    }

    fn __rpow__<'py>(
        this: &Bound<'py, Tensor>,
        other: &Bound<'py, PyAny>,
        _modulo: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        reflected(this, other, |a, b| a.try_pow(b))
    }

    fn __matmul__<'py>(
        this: &Bound<'py, Tensor>,
        other: &Bound<'py, Tensor>,
    ) -> PyResult<Bound<'py, Tensor>> {
        this.get().device().meet(other.get().device())?;
        let product = call(|| this.get().0.try_matmul(&other.get().0))?;
        wrap(this.py(), product, is_batch(this) || is_batch(other))
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.0.shape().first() {
            Some(&length) => Ok(length),
            None => Err(PyTypeError::new_err("a tensor without dimensions has no length")),
        }
    }

    fn __repr__(this: &Bound<'_, Tensor>) -> PyResult<String> {
        let numbers = |t: &Bound<'_, Tensor>| t.get().tolist(t.py())?.repr().map(|r| r.to_string());
        let data = numbers(this)?;
        let grad = Tensor::grad(this)?.map_or(Ok("None".to_string()), |g| numbers(&g))?;
        Ok(format!("{}(data={data}, grad={grad})", this.get_type().name()?))
    }
}

#[pymethods]
impl ValueBatch {
    #[new]
    #[pyo3(signature = (data, device = None))]
    fn new(data: &Bound<'_, PyAny>, device: Option<Device>) -> PyResult<PyClassInitializer<ValueBatch>> {
        let tensor = read(data, device.unwrap_or_default())?;
        match tensor.rank() {
            1 => Ok(PyClassInitializer::from(Tensor(tensor)).add_subclass(ValueBatch)),
            n => Err(PyValueError::new_err(format!(
                "a batch is one list of numbers, and this has {n} dimensions: use Tensor"
            ))),
        }
    }
}
