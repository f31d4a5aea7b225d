//! Elementwise ops: a row of a table each.

use super::arguments::{Number, Other, float};
use super::device::DeviceArg;
use super::dtype::{DTypeArg, PyDType};
use super::in_place::{changed, scaled};
use super::operators::reflected;
use super::{PyDevice, PyTensor, record};
use crate::error::{call, run};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use volta::{DType, Device, Operand, Result, Scalar, Tensor};

macro_rules! unary {
    ($($(#[doc = $doc:literal])* $name:ident $in_place:ident = $op:ident;)*) => {
        /// Methods that are functions as well.
        const UNARY: &[&str] = &[$(stringify!($name)),*];

        #[pymethods]
        impl PyTensor {$(
            $(#[doc = $doc])*
            fn $name(&self) -> PyResult<PyTensor> {
                record(|| self.0.$op())
            }

            #[doc = concat!("`", stringify!($name), "` in place.")]
            fn $in_place<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
                changed(slf, call(|| slf.get().0.$op())?)
            }
        )*}
    };
}

unary! {
    /// -x
    neg neg_ = try_neg;
    /// |x|
    abs abs_ = try_abs;
    /// 1 / x
    reciprocal reciprocal_ = try_recip;
    /// Square root; NaN below zero.
    sqrt sqrt_ = try_sqrt;
    /// 1 / square root of x
    rsqrt rsqrt_ = try_rsqrt;
    /// x * x
    square square_ = try_square;
    /// e to the power of x.
    exp exp_ = try_exp;
    /// exp(x) - 1, exact near zero.
    expm1 expm1_ = try_expm1;
    /// 2 to the power of x.
    exp2 exp2_ = try_exp2;
    /// Natural logarithm.
    log log_ = try_log;
    /// log(1 + x), exact near zero.
    log1p log1p_ = try_log1p;
    /// Logarithm to base 2.
    log2 log2_ = try_log2;
    /// Sine of radians.
    sin sin_ = try_sin;
    /// Cosine of radians.
    cos cos_ = try_cos;
    /// Tangent of radians.
    tan tan_ = try_tan;
    /// Hyperbolic tangent.
    tanh tanh_ = try_tanh;
    /// 1 / (1 + exp(-x))
    sigmoid sigmoid_ = try_sigmoid;
    /// The Gauss error function.
    erf erf_ = try_erf;
    /// 1 - erf(x), exact where that is small.
    erfc erfc_ = try_erfc;
    /// -1, 0 or 1; of NaN it is 0.
    sign sign_ = try_sign;
    /// The next integer below.
    floor floor_ = try_floor;
    /// The next integer above.
    ceil ceil_ = try_ceil;
    /// The integer part.
    trunc trunc_ = try_trunc;
    /// The nearest integer, halves to even.
    round round_ = try_round;
    /// max(x, 0); NaN stays NaN.
    relu relu_ = try_relu;
    /// x held between 0 and 6.
    relu6 relu6_ = try_relu6;
    /// x * sigmoid(x), also called swish.
    silu silu_ = try_silu;
    /// x * tanh(log(1 + exp(x)))
    mish mish_ = try_mish;
    /// x / (1 + |x|)
    softsign softsign_ = try_softsign;
    /// (x + 3) / 6 held between 0 and 1.
    hardsigmoid hardsigmoid_ = try_hardsigmoid;
    /// x * hardsigmoid(x)
    hardswish hardswish_ = try_hardswish;
    /// log(sigmoid(x)), exact where that is nearly 0 or 1.
    logsigmoid logsigmoid_ = try_log_sigmoid;
    /// True where zero or false.
    logical_not logical_not_ = try_logical_not;
    /// The bits that an integer does not have.
    bitwise_not bitwise_not_ = try_bitwise_not;
}

macro_rules! binary {
    ($($(#[doc = $doc:literal])* $name:ident = $op:ident;)*) => {
        /// Methods that are functions as well.
        const BINARY: &[&str] = &[$(stringify!($name)),*];

        #[pymethods]
        impl PyTensor {$(
            $(#[doc = $doc])*
            fn $name(&self, other: Other) -> PyResult<PyTensor> {
                record(|| self.0.$op(other.beside(&self.0)?))
            }
        )*}
    };
}

binary! {
    /// self * other
    mul = try_mul;
    /// self / other; of integers too, in floats.
    true_divide = try_div;
    /// The quotient rounded down. Integers by zero give 0.
    floor_divide = try_floor_divide;
    /// self - other * floor(self / other): has the sign of `other`. Integers by zero give 0.
    remainder = try_remainder;
    /// The larger one, elementwise; NaN wins.
    maximum = try_maximum;
    /// The smaller one, elementwise; NaN wins.
    minimum = try_minimum;
    /// self < other
    lt = try_lt;
    /// self <= other
    le = try_le;
    /// self == other
    eq = try_eq;
    /// self != other
    ne = try_ne;
    /// self > other
    gt = try_gt;
    /// self >= other
    ge = try_ge;
    /// Both true (not zero).
    logical_and = try_logical_and;
    /// At least one true (not zero).
    logical_or = try_logical_or;
    /// Exactly one true (not zero).
    logical_xor = try_logical_xor;
    /// The bits that both integers have.
    bitwise_and = try_bitwise_and;
    /// The bits that at least one of two integers has.
    bitwise_or = try_bitwise_or;
    /// The bits that exactly one of two integers has.
    bitwise_xor = try_bitwise_xor;
}

/// The names of the methods in the tables above: `volta._functions` makes functions of them.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("_ELEMENTWISE", [UNARY, BINARY].concat())
}

/// `x` held between bounds that are numbers or tensors.
pub fn clamped(x: &Tensor, min: Option<Other>, max: Option<Other>) -> Result<Tensor> {
    let number = |bound: &Option<Other>| match bound {
        None => Some(None),
        Some(Other(Operand::Scalar(number))) => Some(Some(number.to_f64())),
        Some(Other(Operand::Tensor(_))) => None,
    };
    if let (Some(min), Some(max)) = (number(&min), number(&max)) {
        return x.try_clamp(min, max);
    }
    // NaN as a bound wins, as it does as a value.
    let beyond = |x: &Tensor, bound: &Tensor, is_beyond: Tensor| {
        is_beyond.try_logical_or(bound.try_isnan()?)?.try_where_(bound, x)
    };
    let mut y = x.clone();
    if let Some(min) = min {
        let min = min.into_tensor(x.device())?;
        y = beyond(&y, &min, y.try_lt(&min)?)?;
    }
    if let Some(max) = max {
        let max = max.into_tensor(x.device())?;
        y = beyond(&y, &max, y.try_gt(&max)?)?;
    }
    Ok(y)
}

/// a / b rounded toward zero; of integers exactly, whatever their size.
fn truncated(a: &Tensor, b: Operand) -> Result<Tensor> {
    let is_int = match &b {
        Operand::Tensor(b) => b.dtype().is_int(),
        Operand::Scalar(b) => matches!(b, Scalar::Int(_)),
    };
    if !is_int || !a.dtype().is_int() {
        return a.try_div(b)?.try_trunc();
    }
    let again = match &b {
        Operand::Tensor(b) => Operand::Tensor(b.clone()),
        Operand::Scalar(b) => Operand::Scalar(*b),
    };
    let (below, rest) = (a.try_floor_divide(b)?, a.try_remainder(again)?);
    let is_above = below.try_lt(0)?.try_logical_and(&rest.try_ne(0)?)?;
    below.try_add(&is_above.try_to_dtype(below.dtype())?)
}

#[pymethods]
impl PyTensor {
    /// self + alpha * other
    #[pyo3(signature = (other, *, alpha=None))]
    fn add(&self, other: Other, alpha: Option<Number>) -> PyResult<PyTensor> {
        record(|| self.0.try_add(scaled(other.beside(&self.0)?, alpha)?))
    }

    /// self - alpha * other
    #[pyo3(signature = (other, *, alpha=None))]
    fn sub(&self, other: Other, alpha: Option<Number>) -> PyResult<PyTensor> {
        record(|| self.0.try_sub(scaled(other.beside(&self.0)?, alpha)?))
    }

    /// other - self
    fn rsub(&self, other: Other) -> PyResult<PyTensor> {
        record(|| reflected(other.0, &self.0, |a, b| a.try_sub(b)))
    }

    /// self / other, or the quotient rounded: `rounding_mode='floor'` or `'trunc'`.
    #[pyo3(signature = (other, *, rounding_mode=None))]
    fn div(&self, other: Other, rounding_mode: Option<&str>) -> PyResult<PyTensor> {
        match rounding_mode {
            None => record(|| self.0.try_div(other.0)),
            Some("floor") => record(|| self.0.try_floor_divide(other.beside(&self.0)?)),
            Some("trunc") => record(|| truncated(&self.0, other.0)),
            Some(mode) => {
                Err(PyValueError::new_err(format!("div: no rounding mode {mode:?}: use 'floor' or 'trunc'")))
            }
        }
    }

    /// self to the power of `exponent`.
    fn pow(&self, exponent: Other) -> PyResult<PyTensor> {
        record(|| self.0.try_pow(exponent.beside(&self.0)?))
    }

    /// x held between bounds, numbers or tensors, of which one may be missing. The gradient is 1 inside, 0 at a number and
    /// outside; outside of a tensor it is the tensor's.
    #[pyo3(signature = (min=None, max=None))]
    fn clamp(&self, min: Option<Other>, max: Option<Other>) -> PyResult<PyTensor> {
        record(|| clamped(&self.0, min, max))
    }

    /// x * Phi(x) with the exact Phi, or by the hyperbolic tangent with `approximate='tanh'`.
    #[pyo3(signature = (approximate="none"))]
    fn gelu(&self, approximate: &str) -> PyResult<PyTensor> {
        match approximate {
            "none" => record(|| self.0.try_gelu()),
            "tanh" => record(|| self.0.try_gelu_tanh()),
            other => {
                Err(PyValueError::new_err(format!("gelu: no approximation {other:?}: use 'none' or 'tanh'")))
            }
        }
    }

    /// log(1 + exp(beta * x)) / beta, and x itself where beta * x is above `threshold`.
    #[pyo3(signature = (beta=1.0, threshold=20.0))]
    fn softplus(
        &self,
        #[pyo3(from_py_with = float)] beta: f64,
        #[pyo3(from_py_with = float)] threshold: f64,
    ) -> PyResult<PyTensor> {
        record(|| self.0.try_softplus(beta, threshold))
    }

    /// x above zero, alpha * (exp(x) - 1) below.
    #[pyo3(signature = (alpha=1.0))]
    fn elu(&self, #[pyo3(from_py_with = float)] alpha: f64) -> PyResult<PyTensor> {
        record(|| self.0.try_elu(alpha))
    }

    /// x above zero, negative_slope * x below.
    #[pyo3(signature = (negative_slope=0.01))]
    fn leaky_relu(&self, #[pyo3(from_py_with = float)] negative_slope: f64) -> PyResult<PyTensor> {
        record(|| self.0.try_leaky_relu(negative_slope))
    }

    /// x above zero, weight * x below, with one weight or one for every channel (dimension 1).
    fn prelu(&self, weight: &PyTensor) -> PyResult<PyTensor> {
        record(|| self.0.try_prelu(&weight.0))
    }

    /// x held between two bounds, where its gradient is zero.
    #[pyo3(signature = (min_val=-1.0, max_val=1.0), text_signature = "($self, min_val=-1.0, max_val=1.0)")]
    fn hardtanh(
        &self,
        #[pyo3(from_py_with = float)] min_val: f64,
        #[pyo3(from_py_with = float)] max_val: f64,
    ) -> PyResult<PyTensor> {
        record(|| self.0.try_hardtanh(min_val, max_val))
    }

    /// True where NaN.
    fn isnan(&self) -> PyResult<PyTensor> {
        record(|| self.0.try_isnan())
    }

    /// True where infinite.
    fn isinf(&self) -> PyResult<PyTensor> {
        record(|| {
            if self.0.dtype().is_float() {
                self.0.try_abs()?.try_eq(f64::INFINITY)
            } else {
                self.0.try_ne(&self.0)
            }
        })
    }

    /// True where neither NaN nor infinite.
    fn isfinite(&self) -> PyResult<PyTensor> {
        record(|| {
            if self.0.dtype().is_float() {
                self.0.try_abs()?.try_lt(f64::INFINITY)
            } else {
                self.0.try_eq(&self.0)
            }
        })
    }

    /// Where |self - other| <= atol + rtol * |other|.
    #[pyo3(signature = (other, rtol=1e-5, atol=1e-8))]
    fn isclose(&self, other: &PyTensor, rtol: f64, atol: f64) -> PyResult<PyTensor> {
        record(|| self.0.try_isclose(&other.0, rtol, atol))
    }

    /// Whether all elements are close.
    #[pyo3(signature = (other, rtol=1e-5, atol=1e-8))]
    fn allclose(&self, py: Python<'_>, other: &PyTensor, rtol: f64, atol: f64) -> PyResult<bool> {
        run(py, || self.0.try_allclose(&other.0, rtol, atol))
    }

    /// Whether both have the same shape and equal elements.
    fn equal(&self, py: Python<'_>, other: &PyTensor) -> PyResult<bool> {
        if self.0.shape() != other.0.shape() {
            return Ok(false);
        }
        run(py, || self.0.detach().try_eq(other.0.detach())?.try_all()?.try_item())
    }

    /// The elements of this tensor where `condition` holds, of `other` elsewhere.
    fn r#where(&self, condition: &PyTensor, other: Other) -> PyResult<PyTensor> {
        record(|| condition.0.try_where_(&self.0, other.beside(&self.0)?))
    }

    /// The same values as another type, on another device, or both: `x.to('gpu')`, `x.to(volta.float16)`, `x.to(other)`.
    #[pyo3(signature = (*args, device=None, dtype=None, non_blocking=false, copy=false))]
    fn to<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        device: Option<DeviceArg>,
        dtype: Option<DTypeArg>,
        non_blocking: bool,
        copy: bool,
    ) -> PyResult<Bound<'py, Self>> {
        let _ = non_blocking;
        let (mut device, mut dtype) = (device.map(|d| d.0), dtype.map(|d| d.0));
        for argument in args {
            if let Ok(like) = argument.cast::<PyTensor>() {
                (device, dtype) = (Some(like.get().0.device()), Some(like.get().0.dtype()));
            } else if let Ok(wanted) = argument.cast::<PyDType>() {
                dtype = Some(wanted.get().0);
            } else if argument.is_instance_of::<PyDevice>() || argument.extract::<String>().is_ok() {
                device = Some(argument.extract::<DeviceArg>()?.0);
            } else if let Ok(wanted) = argument.extract::<DTypeArg>() {
                dtype = Some(wanted.0);
            } else {
                return Err(PyTypeError::new_err("to: a device, a dtype or a tensor is needed"));
            }
        }
        slf.get().moved(slf, device, dtype, copy)
    }

    /// The same values as another type.
    fn r#type<'py>(slf: &Bound<'py, Self>, dtype: DTypeArg) -> PyResult<Bound<'py, Self>> {
        slf.get().moved(slf, None, Some(dtype.0), false)
    }

    /// The same values in the type of another tensor.
    fn type_as<'py>(slf: &Bound<'py, Self>, other: &PyTensor) -> PyResult<Bound<'py, Self>> {
        slf.get().moved(slf, None, Some(other.0.dtype()), false)
    }

    /// The same values on the CPU.
    fn cpu<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().moved(slf, Some(Device::Cpu), None, false)
    }

    /// The same values on a GPU.
    #[pyo3(signature = (index=0))]
    fn gpu<'py>(slf: &Bound<'py, Self>, index: usize) -> PyResult<Bound<'py, Self>> {
        slf.get().moved(slf, Some(Device::Gpu(index)), None, false)
    }

    /// A copy with memory of its own; gradients flow through it.
    #[pyo3(name = "clone")]
    fn clone_values(&self) -> PyResult<PyTensor> {
        record(|| copied(&self.0))
    }
}

macro_rules! conversions {
    ($($(#[doc = $doc:literal])* $name:ident $dtype:ident;)*) => {
        #[pymethods]
        impl PyTensor {$(
            $(#[doc = $doc])*
            fn $name<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
                slf.get().moved(slf, None, Some(DType::$dtype), false)
            }
        )*}
    };
}

conversions! {
    /// The same values as float32.
    float F32;
    /// The same values as float64.
    double F64;
    /// The same values as float16.
    half F16;
    /// The same values as bfloat16.
    bfloat16 BF16;
    /// The same values as int32.
    int I32;
    /// The same values as int64.
    long I64;
    /// The same values as uint8.
    byte U8;
    /// The same values as bool: whether they are not zero.
    bool Bool;
}

/// Equal values in memory of their own: adding nothing makes them anew. -0 changes no float, and 0 would change -0.
pub fn copied(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::Bool => x.try_logical_or(false),
        dtype if dtype.is_float() => x.try_add(-0.0),
        _ => x.try_add(0),
    }
}

impl PyTensor {
    /// Itself, if it is there in that type already.
    fn moved<'py>(
        &self,
        slf: &Bound<'py, Self>,
        device: Option<Device>,
        dtype: Option<DType>,
        copy: bool,
    ) -> PyResult<Bound<'py, Self>> {
        let device = device.unwrap_or(self.0.device());
        // What is int32 only for want of int64 is int64 where there is one.
        let widens = self.0.holds_wide_integers() && device == Device::Cpu;
        let dtype = dtype.unwrap_or(if widens { DType::I64 } else { self.0.dtype() });
        if (device, dtype) == (self.0.device(), self.0.dtype()) {
            return if copy { Bound::new(slf.py(), self.clone_values()?) } else { Ok(slf.clone()) };
        }
        let x = &self.0;
        let result = if device == x.device() {
            call(|| x.try_to_dtype(dtype))?
        } else {
            // The GPU may not have the type it comes in, nor the CPU's in which it is to arrive.
            let near = device == Device::Cpu;
            run(slf.py(), || {
                if near {
                    x.try_to_device(device)?.try_to_dtype(dtype)
                } else {
                    x.try_to_dtype(dtype)?.try_to_device(device)
                }
            })?
        };
        Bound::new(slf.py(), PyTensor::from(result))
    }
}
