//! Means, spreads, norms and questions about all elements. Half floats are summed in f32.

use super::Tensor;
use super::record::require;
use crate::dtype::{DType, Scalar};
use crate::error::{Result, bail};
use crate::op::ReduceOp;
use crate::shape::{Dims, Shape};
use volta_derive::op;

/// The number of elements that fold into one over the axes of a mask.
fn folded(shape: Shape, mask: u8) -> usize {
    (0..shape.rank()).filter(|k| mask >> k & 1 == 1).map(|k| shape[k]).product()
}

/// √x whose gradient at 0 is 0 rather than infinite.
fn soft_sqrt(x: &Tensor) -> Result<Tensor> {
    let zero = x.try_eq(0.0)?;
    zero.try_where_(0.0, &zero.try_where_(1.0, x)?.try_sqrt()?)
}

impl Tensor {
    /// The mean over the axes of a mask, which stay with extent 1.
    pub(super) fn mean_mask(&self, mask: u8) -> Result<Tensor> {
        self.reduce_mask(ReduceOp::Sum, mask)?.try_div(folded(self.shape(), mask) as f64)
    }

    /// The mean over the axes of a mask, and the sum of the squares of what differs from it.
    pub(super) fn moments(&self, mask: u8) -> Result<(Tensor, Tensor)> {
        let mean = self.mean_mask(mask)?;
        let squares = self.try_sub(&mean)?.try_square()?.reduce_mask(ReduceOp::Sum, mask)?;
        Ok((mean, squares))
    }

    /// Folds wide floats by `f`, which keeps the axes of the mask.
    fn fold_wide(
        &self,
        axes: &[isize],
        keepdim: bool,
        f: impl FnOnce(&Tensor, u8) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let mask = self.shape().axes(axes)?;
        let kept = self.in_wide(|x| f(x, mask))?;
        if keepdim { Ok(kept) } else { kept.reshape_to(self.shape().without(mask)) }
    }

    fn variance(&self, axes: &[isize], correction: Scalar, keepdim: bool, root: bool) -> Result<Tensor> {
        self.fold_wide(axes, keepdim, |x, mask| {
            let degrees = (folded(x.shape(), mask) as f64 - correction.to_f64()).max(0.0);
            let variance = x.moments(mask)?.1.try_div(degrees)?;
            if root { soft_sqrt(&variance) } else { Ok(variance) }
        })
    }

    /// Whether any (or all) elements are true, over axes.
    fn truth(&self, any: bool, axes: &[isize], keepdim: bool) -> Result<Tensor> {
        let shape = self.shape();
        let mask = shape.axes(axes)?;
        let to = if keepdim { shape.keep(mask) } else { shape.without(mask) };
        // Among no elements none is true, and none is false.
        if folded(shape, mask) == 0 {
            return Ok(self.constant(!any, to, DType::Bool));
        }
        let op = if any { ReduceOp::Max } else { ReduceOp::Min };
        self.try_to_dtype(DType::Bool)?.reduce_mask(op, mask)?.reshape_to(to)
    }
}

/// The difference of integers, and the second of them, in floats. Those of 32 bits are subtracted before: f32, which some
/// devices have to do with, does not tell large ones apart.
fn gap(a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
    let float = if require(a.device(), DType::F64).is_ok() { DType::F64 } else { DType::F32 };
    let size = b.cast(float)?;
    let off = match a.dtype() {
        DType::I64 => a.cast(float)?.try_sub(&size)?,
        dtype => {
            let off = a.try_maximum(b)?.try_sub(&a.try_minimum(b)?)?;
            // The bits of what is beyond the signed numbers are those of an unsigned one.
            if dtype == DType::I32 { off.cast(DType::U32)?.cast(float)? } else { off.cast(float)? }
        }
    };
    Ok((off, size))
}

/// The p-norm over the axes of a mask.
fn norm(x: &Tensor, p: f64, mask: u8) -> Result<Tensor> {
    let sum = |t: Tensor| t.reduce_mask(ReduceOp::Sum, mask);
    if p.is_infinite() {
        if folded(x.shape(), mask) == 0 {
            bail!(Shape, "the extremum of no elements: shape {} is empty along the reduced axes", x.shape());
        }
        let op = if p > 0.0 { ReduceOp::Max } else { ReduceOp::Min };
        return x.try_abs()?.reduce_mask(op, mask);
    }
    if p == 0.0 {
        // A count, whose gradient is 0 everywhere: that of the signs.
        return sum(x.try_ne(0.0)?.try_where_(1.0, &x.try_sign()?)?);
    }
    if p == 1.0 {
        return sum(x.try_abs()?);
    }
    if p == 2.0 {
        return soft_sqrt(&sum(x.try_square()?)?);
    }
    // Powers have no finite slope at 0 for p < 1: there, and for a vector of zeros, the gradient is 0.
    let power = |t: &Tensor, p: f64| {
        let zero = t.try_eq(0.0)?;
        zero.try_where_(0f64.powf(p), &zero.try_where_(1.0, t)?.try_pow(p)?)
    };
    power(&sum(power(&x.try_abs()?, p)?)?, 1.0 / p)
}

impl Tensor {
    /// The mean of all elements; of none it is NaN.
    #[op]
    pub fn try_mean(&self) -> Result<Tensor> {
        self.fold_wide(&[], false, Tensor::mean_mask)
    }

    /// The mean over axes.
    #[op]
    pub fn try_mean_dim(&self, axes: impl Into<Dims>, keepdim: bool) -> Result<Tensor> {
        self.fold_wide(&axes.into(), keepdim, Tensor::mean_mask)
    }

    /// The variance of all elements, divided by their number less `correction`: 1 (PyTorch's default) for a
    /// sample, 0 for the whole.
    #[op]
    pub fn try_var(&self, correction: impl Into<Scalar>) -> Result<Tensor> {
        self.variance(&[], correction.into(), false, false)
    }

    /// The variance over axes.
    #[op]
    pub fn try_var_dim(
        &self,
        axes: impl Into<Dims>,
        correction: impl Into<Scalar>,
        keepdim: bool,
    ) -> Result<Tensor> {
        self.variance(&axes.into(), correction.into(), keepdim, false)
    }

    /// The square root of [`var`](Self::var); where that is 0 its gradient is 0.
    #[op]
    pub fn try_std(&self, correction: impl Into<Scalar>) -> Result<Tensor> {
        self.variance(&[], correction.into(), false, true)
    }

    /// The standard deviation over axes.
    #[op]
    pub fn try_std_dim(
        &self,
        axes: impl Into<Dims>,
        correction: impl Into<Scalar>,
        keepdim: bool,
    ) -> Result<Tensor> {
        self.variance(&axes.into(), correction.into(), keepdim, true)
    }

    /// (Σ|x|ᵖ)^(1/p) of all elements. Infinity gives the largest |x|, its negative the smallest, 0 the number
    /// of elements that are not zero. The gradient at a vector of zeros is 0.
    #[op]
    pub fn try_norm(&self, p: f64) -> Result<Tensor> {
        self.try_norm_dim(p, &[0isize; 0][..], false)
    }

    /// The [`norm`](Self::norm) over axes.
    #[op]
    pub fn try_norm_dim(&self, p: f64, axes: impl Into<Dims>, keepdim: bool) -> Result<Tensor> {
        if p.is_nan() {
            bail!(Argument, "the order of a norm must not be NaN");
        }
        self.upcast()?.fold_wide(&axes.into(), keepdim, |x, mask| norm(x, p, mask))
    }

    /// Whether any element is true (not zero).
    #[op]
    pub fn try_any(&self) -> Result<Tensor> {
        self.truth(true, &[], false)
    }

    /// Whether any element is true, over axes.
    #[op]
    pub fn try_any_dim(&self, axes: impl Into<Dims>, keepdim: bool) -> Result<Tensor> {
        self.truth(true, &axes.into(), keepdim)
    }

    /// Whether all elements are true (not zero).
    #[op]
    pub fn try_all(&self) -> Result<Tensor> {
        self.truth(false, &[], false)
    }

    /// Whether all elements are true, over axes.
    #[op]
    pub fn try_all_dim(&self, axes: impl Into<Dims>, keepdim: bool) -> Result<Tensor> {
        self.truth(false, &axes.into(), keepdim)
    }

    /// Where |a − b| ≤ `atol` + `rtol`·|b|. Equal infinities are close, NaN is close to nothing.
    #[op]
    pub fn try_isclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Result<Tensor> {
        if rtol < 0.0 || atol < 0.0 {
            bail!(Argument, "the tolerances {rtol} and {atol} must not be negative");
        }
        let dtype = match self.dtype().promote(other.dtype()).wide() {
            DType::Bool => DType::U8,
            dtype => dtype,
        };
        let (a, b) = (self.try_to_dtype(dtype)?, other.try_to_dtype(dtype)?);
        let (off, size) = if dtype.is_float() { (a.try_sub(&b)?, b.clone()) } else { gap(&a, &b)? };
        let off = off.try_abs()?;
        let near = off.try_le(&size.try_abs()?.try_mul(rtol)?.try_add(atol)?)?;
        // Otherwise everything would be close to infinity.
        let finite = off.try_lt(f64::INFINITY)?;
        a.try_eq(&b)?.try_logical_or(&near.try_logical_and(&finite)?)
    }

    /// Whether all elements are [`isclose`](Self::isclose). PyTorch's defaults are 1e-5 and 1e-8.
    #[op]
    pub fn try_allclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Result<bool> {
        self.try_isclose(other, rtol, atol)?.try_all()?.detach().try_item()
    }
}
