//! Python's operators, with numbers and arrays on either side.

use super::arguments::{Other, constant};
use super::in_place;
use super::{PyTensor, record};
use crate::error::call;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use volta::{DType, Operand, Result, Scalar, Tensor};

type Op = fn(&Tensor, Operand) -> Result<Tensor>;

/// A number on the left as a tensor of the kind of the one on the right.
fn on_the_left(operand: Operand, right: &Tensor) -> Result<Tensor> {
    let number = match operand {
        Operand::Tensor(tensor) => return Ok(tensor),
        Operand::Scalar(number) => number,
    };
    let dtype = match (number, right.dtype()) {
        (Scalar::Float(_), dtype) if !dtype.is_float() => DType::F32,
        (Scalar::Int(_), DType::Bool) => return constant(&[], number, right.device()),
        (_, dtype) => dtype,
    };
    // Numbers wrap around in operands, as PyTorch's do; those that stand for int64 must not.
    let number = match (number, dtype) {
        (Scalar::Int(x), DType::U8) => Scalar::Int(i64::from(x as u8)),
        (Scalar::Int(x), DType::U32) => Scalar::Int(i64::from(x as u32)),
        (Scalar::Int(x), DType::I32) if !right.holds_wide_integers() => Scalar::Int(i64::from(x as i32)),
        (number, _) => number,
    };
    volta::with_device(right.device(), || Tensor::try_full_of([0usize; 0], number, dtype))
}

/// An op with what may be a number on the left. In half precision the number is not rounded to it before: it may lie out of
/// its range where the result does not.
pub fn reflected(
    left: Operand,
    right: &Tensor,
    op: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    if matches!(left, Operand::Tensor(_)) || !right.dtype().is_half() {
        return op(&on_the_left(left, right)?, right);
    }
    let wide = right.try_to_dtype(DType::F32)?;
    op(&on_the_left(left, &wide)?, &wide)?.try_to_dtype(right.dtype())
}

/// `& | ^` are of truth values only: the engine does not know the bits of integers.
fn only_bools(a: &Tensor, b: &Operand) -> PyResult<()> {
    let other = match b {
        Operand::Tensor(b) => b.dtype(),
        Operand::Scalar(s) => s.natural_dtype(),
    };
    if (a.dtype(), other) == (DType::Bool, DType::Bool) {
        return Ok(());
    }
    let message = format!("& | ^ ~ are for bool tensors, and these are {} and {other}", a.dtype());
    Err(PyTypeError::new_err(message))
}

macro_rules! arithmetic {
    ($($forward:ident $reflected:ident $in_place:ident = $op:ident;)*) => {
        #[pymethods]
        impl PyTensor {$(
            fn $forward(&self, other: Other) -> PyResult<PyTensor> {
                record(|| self.0.$op(other.beside(&self.0)?))
            }

            fn $reflected(&self, other: Other) -> PyResult<PyTensor> {
                record(|| reflected(other.0, &self.0, |a, b| a.$op(b)))
            }

            fn $in_place<'py>(slf: &Bound<'py, Self>, other: Other) -> PyResult<Bound<'py, PyAny>> {
                let x = &slf.get().0;
                in_place::or_new(slf, call(|| x.$op(other.beside(x)?))?)
            }
        )*}
    };
}

arithmetic! {
    __add__ __radd__ _iadd = try_add;
    __sub__ __rsub__ _isub = try_sub;
    __mul__ __rmul__ _imul = try_mul;
    __truediv__ __rtruediv__ _itruediv = try_div;
    __floordiv__ __rfloordiv__ _ifloordiv = try_floor_divide;
    __mod__ __rmod__ _imod = try_remainder;
}

macro_rules! logic {
    ($($forward:ident $reflected:ident $in_place:ident = $op:ident;)*) => {
        #[pymethods]
        impl PyTensor {$(
            fn $forward(&self, other: Other) -> PyResult<PyTensor> {
                only_bools(&self.0, &other.0)?;
                record(|| self.0.$op(other.0))
            }

            fn $reflected(&self, other: Other) -> PyResult<PyTensor> {
                self.$forward(other)
            }

            fn $in_place<'py>(slf: &Bound<'py, Self>, other: Other) -> PyResult<Bound<'py, PyAny>> {
                in_place::or_new(slf, slf.get().$forward(other)?.0)
            }
        )*}
    };
}

logic! {
    __and__ __rand__ _iand = try_logical_and;
    __or__ __ror__ _ior = try_logical_or;
    __xor__ __rxor__ _ixor = try_logical_xor;
}

/// Names that Python gives to what happens in place.
const IN_PLACE: [(&str, &str); 10] = [
    ("__iadd__", "_iadd"),
    ("__isub__", "_isub"),
    ("__imul__", "_imul"),
    ("__itruediv__", "_itruediv"),
    ("__ifloordiv__", "_ifloordiv"),
    ("__imod__", "_imod"),
    ("__ipow__", "_ipow"),
    ("__iand__", "_iand"),
    ("__ior__", "_ior"),
    ("__ixor__", "_ixor"),
];

/// `a += b` may give the name another tensor, which these methods can and PyO3's slots cannot.
pub fn register(class: &Bound<'_, PyAny>) -> PyResult<()> {
    IN_PLACE.iter().try_for_each(|(slot, method)| class.setattr(slot, class.getattr(method)?))
}

fn compared(a: &Tensor, b: Operand, op: CompareOp) -> Result<Tensor> {
    let op: Op = match op {
        CompareOp::Lt => |a, b| a.try_lt(b),
        CompareOp::Le => |a, b| a.try_le(b),
        CompareOp::Eq => |a, b| a.try_eq(b),
        CompareOp::Ne => |a, b| a.try_ne(b),
        CompareOp::Gt => |a, b| a.try_gt(b),
        CompareOp::Ge => |a, b| a.try_ge(b),
    };
    op(a, b)
}

/// A matrix product of whatever is on the other side.
fn product(a: &Tensor, b: &Operand) -> PyResult<PyTensor> {
    match b {
        Operand::Tensor(b) => record(|| a.try_matmul(b)),
        Operand::Scalar(_) => Err(PyTypeError::new_err("matmul: a number is no matrix: use *")),
    }
}

#[pymethods]
impl PyTensor {
    fn __pow__(&self, other: Other, _modulo: Option<&Bound<'_, PyAny>>) -> PyResult<PyTensor> {
        record(|| self.0.try_pow(other.beside(&self.0)?))
    }

    fn __rpow__(&self, other: Other, _modulo: Option<&Bound<'_, PyAny>>) -> PyResult<PyTensor> {
        record(|| reflected(other.0, &self.0, |a, b| a.try_pow(b)))
    }

    fn _ipow<'py>(slf: &Bound<'py, Self>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        let x = &slf.get().0;
        in_place::or_new(slf, call(|| x.try_pow(other.beside(x)?))?)
    }

    fn __matmul__(&self, other: Other) -> PyResult<PyTensor> {
        product(&self.0, &other.0)
    }

    fn __rmatmul__(&self, other: Other) -> PyResult<PyTensor> {
        match other.0 {
            Operand::Tensor(left) => product(&left, &Operand::from(&self.0)),
            number => product(&self.0, &number),
        }
    }

    fn __neg__(&self) -> PyResult<PyTensor> {
        record(|| self.0.try_neg())
    }

    fn __pos__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __abs__(&self) -> PyResult<PyTensor> {
        record(|| self.0.try_abs())
    }

    fn __invert__(&self) -> PyResult<PyTensor> {
        only_bools(&self.0, &Operand::Scalar(Scalar::Bool(true)))?;
        record(|| self.0.try_logical_not())
    }

    /// Elementwise. What is no operand, such as `None`, is equal to no tensor.
    fn __richcmp__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        match other.extract::<Other>() {
            Ok(other) => Ok(record(|| compared(&self.0, other.0, op))?.into_pyobject(py)?.into_any()),
            Err(_) => Ok(py.NotImplemented().into_bound(py)),
        }
    }
}
