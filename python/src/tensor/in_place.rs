//! Ops that change a tensor rather than making one: PyTorch's names with an underscore behind.

use super::arguments::{Number, Other, axis};
use super::elementwise::{clamped, copied};
use super::movement::filled;
use super::{PyTensor, create};
use crate::error::call;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use volta::{DType, Operand, Scalar, Tensor};

/// A value in the type of the tensor it goes into, if that can hold it.
fn fitted(value: &Tensor, dtype: DType) -> PyResult<Tensor> {
    let kind = |d: DType| if d.is_float() { 2 } else { u8::from(d.is_int()) };
    if kind(value.dtype()) > kind(dtype) {
        let (from, to) = (super::dtype::name(value.dtype()), super::dtype::name(dtype));
        return Err(PyTypeError::new_err(format!(
            "a result of type {from} cannot be put into {to} in place"
        )));
    }
    call(|| value.try_to_dtype(dtype))
}

/// An error that says what to write instead, if the tensor is a value of its own that nobody else would see change.
pub fn check_assignable(tensor: &Tensor) -> PyResult<()> {
    if tensor.is_assignable() {
        return Ok(());
    }
    Err(PyValueError::new_err(
        "x.data, x[0] and the like are values of their own and cannot be assigned to: change x itself, as in x[0] = 1, \
         and a parameter within `with volta.no_grad(): p.normal_()`",
    ))
}

/// Gives the tensor a new value.
pub fn update(tensor: &Tensor, value: &Tensor) -> PyResult<()> {
    check_assignable(tensor)?;
    let value = fitted(value, tensor.dtype())?;
    call(|| tensor.try_update(&value))
}

/// Gives the tensor a new value and returns it.
pub fn changed<'py>(slf: &Bound<'py, PyTensor>, value: Tensor) -> PyResult<Bound<'py, PyTensor>> {
    update(&slf.get().0, &value)?;
    Ok(slf.clone())
}

/// What `a += b` leaves behind: the tensor itself, changed; or, of one that cannot be, such as `x[0]`, the new value,
/// which Python then assigns to where the old one came from.
pub fn or_new<'py>(slf: &Bound<'py, PyTensor>, value: Tensor) -> PyResult<Bound<'py, PyAny>> {
    if slf.get().0.is_assignable() {
        return Ok(changed(slf, value)?.into_any());
    }
    let value = fitted(&value, slf.get().0.dtype())?;
    Ok(PyTensor(value).into_pyobject(slf.py())?.into_any())
}

macro_rules! with_operand {
    ($($name:ident = $op:ident;)*) => {
        #[pymethods]
        impl PyTensor {$(
            #[doc = concat!("In-place form of `", stringify!($op), "` without its underscore: changes this tensor.")]
            fn $name<'py>(slf: &Bound<'py, Self>, other: Other) -> PyResult<Bound<'py, Self>> {
                changed(slf, call(|| slf.get().0.$op(other.0))?)
            }
        )*}
    };
}

with_operand! {
    mul_ = try_mul;
    multiply_ = try_mul;
    div_ = try_div;
    true_divide_ = try_div;
    floor_divide_ = try_floor_divide;
    remainder_ = try_remainder;
    pow_ = try_pow;
    logical_and_ = try_logical_and;
    logical_or_ = try_logical_or;
    logical_xor_ = try_logical_xor;
    bitwise_and_ = try_bitwise_and;
    bitwise_or_ = try_bitwise_or;
    bitwise_xor_ = try_bitwise_xor;
}

/// `alpha` times an operand.
pub fn scaled(other: Operand, alpha: Option<Number>) -> volta::Result<Operand> {
    let Some(Number(alpha)) = alpha else { return Ok(other) };
    Ok(match other {
        Operand::Tensor(t) => Operand::Tensor(t.try_mul(alpha)?),
        Operand::Scalar(s) if [s, alpha].iter().any(|x| matches!(x, Scalar::Float(_))) => {
            Operand::Scalar((s.to_f64() * alpha.to_f64()).into())
        }
        Operand::Scalar(s) => Operand::Scalar(s.to_i64().wrapping_mul(alpha.to_i64()).into()),
    })
}

#[pymethods]
impl PyTensor {
    /// Adds `alpha` times a tensor or number, in place.
    #[pyo3(signature = (other, *, alpha=None))]
    fn add_<'py>(slf: &Bound<'py, Self>, other: Other, alpha: Option<Number>) -> PyResult<Bound<'py, Self>> {
        changed(slf, call(|| slf.get().0.try_add(scaled(other.0, alpha)?))?)
    }

    /// Subtracts `alpha` times a tensor or number, in place.
    #[pyo3(signature = (other, *, alpha=None))]
    fn sub_<'py>(slf: &Bound<'py, Self>, other: Other, alpha: Option<Number>) -> PyResult<Bound<'py, Self>> {
        changed(slf, call(|| slf.get().0.try_sub(scaled(other.0, alpha)?))?)
    }

    /// Sets every element to 0.
    fn zero_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        changed(slf, slf.get().0.zeros_like())
    }

    /// Sets every element to a number, or to that of a tensor without dimensions.
    fn fill_<'py>(slf: &Bound<'py, Self>, value: Other) -> PyResult<Bound<'py, Self>> {
        let x = &slf.get().0;
        let filled = match value.0 {
            Operand::Scalar(number) => call(|| x.try_full_like(number))?,
            Operand::Tensor(t) if t.rank() > 0 => {
                let shape = t.shape();
                let message =
                    format!("fill_: the value has shape {shape}: it must be a number or have no dimensions");
                return Err(PyValueError::new_err(message));
            }
            Operand::Tensor(t) => call(|| {
                let value = t.try_to_dtype(x.dtype())?.try_to_device(x.device())?;
                copied(&value.try_expand(x.shape())?)
            })?,
        };
        changed(slf, filled)
    }

    /// Takes the elements of another tensor, converted and broadcast to this one's type, device and shape.
    #[pyo3(signature = (src, non_blocking=false))]
    fn copy_<'py>(slf: &Bound<'py, Self>, src: &PyTensor, non_blocking: bool) -> PyResult<Bound<'py, Self>> {
        let _ = non_blocking;
        let tensor = &slf.get().0;
        let value = call(|| {
            let moved = src.0.try_to_device(tensor.device())?.try_to_dtype(tensor.dtype())?;
            // In memory of its own, since what is written to an array of one must not be seen by the other.
            copied(&moved.try_expand(tensor.shape())?)
        })?;
        changed(slf, value)
    }

    /// Fills the tensor with uniform random numbers from `low` up to `high`.
    #[pyo3(signature = (low=0.0, high=1.0))]
    fn uniform_<'py>(slf: &Bound<'py, Self>, low: f64, high: f64) -> PyResult<Bound<'py, Self>> {
        let value = call(|| slf.get().0.rand_like().try_mul(high - low)?.try_add(low))?;
        changed(slf, value)
    }

    /// Fills the tensor with normal random numbers.
    #[pyo3(signature = (mean=0.0, std=1.0))]
    fn normal_<'py>(slf: &Bound<'py, Self>, mean: f64, std: f64) -> PyResult<Bound<'py, Self>> {
        let value = call(|| slf.get().0.randn_like().try_mul(std)?.try_add(mean))?;
        changed(slf, value)
    }

    /// Sets every element to 1 with probability `p` and to 0 elsewhere.
    #[pyo3(signature = (p=0.5))]
    fn bernoulli_<'py>(slf: &Bound<'py, Self>, p: f64) -> PyResult<Bound<'py, Self>> {
        let tensor = &slf.get().0;
        let value = call(|| {
            let drawn = volta::with_device(tensor.device(), || Tensor::try_bernoulli(p, tensor.shape()))?;
            drawn.try_to_dtype(tensor.dtype())
        })?;
        changed(slf, value)
    }

    /// `clamp` in place.
    #[pyo3(signature = (min=None, max=None))]
    fn clamp_<'py>(
        slf: &Bound<'py, Self>,
        min: Option<Other>,
        max: Option<Other>,
    ) -> PyResult<Bound<'py, Self>> {
        changed(slf, call(|| clamped(&slf.get().0, min, max))?)
    }

    /// `masked_fill` in place.
    fn masked_fill_<'py>(
        slf: &Bound<'py, Self>,
        mask: &PyTensor,
        value: Other,
    ) -> PyResult<Bound<'py, Self>> {
        changed(slf, call(|| filled(&slf.get().0, &mask.0, value))?)
    }

    /// `scatter_add` in place.
    fn scatter_add_<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = axis)] dim: isize,
        index: &PyTensor,
        src: &PyTensor,
    ) -> PyResult<Bound<'py, Self>> {
        changed(slf, call(|| slf.get().0.try_scatter_add(dim, &index.0, &src.0))?)
    }

    /// `index_add` in place.
    #[pyo3(signature = (dim, index, source, *, alpha=None))]
    fn index_add_<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = axis)] dim: isize,
        index: &PyTensor,
        source: &PyTensor,
        alpha: Option<Number>,
    ) -> PyResult<Bound<'py, Self>> {
        changed(slf, slf.get().index_add(dim, index, source, alpha)?.0)
    }

    /// The same value cut from the tape. Assigning to it gives the tensor a new value, gradients or not.
    #[getter]
    fn data(&self) -> PyTensor {
        PyTensor(self.0.detach())
    }

    #[setter]
    fn set_data(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = create::operand_tensor(value)?;
        call(|| self.0.try_assign(&value))
    }
}
