//! Folding axes: sums, extrema, products and their positions.

use super::Tensor;
use super::record::record;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::op::{Op, ReduceOp};
use crate::shape::Dims;
use volta_derive::op;

impl Tensor {
    /// Folds the axes of a mask, which stay with extent 1.
    pub(crate) fn reduce_mask(&self, op: ReduceOp, axes: u8) -> Result<Tensor> {
        let shape = self.shape();
        if axes == 0 && matches!(op, ReduceOp::Max | ReduceOp::Min) {
            return Ok(self.clone());
        }
        // Integers are summed in i64, where they hardly overflow.
        let wide = matches!(op, ReduceOp::Sum | ReduceOp::Prod) && !self.dtype().is_float();
        let x = if wide { self.try_to_dtype(self.sum_type())? } else { self.clone() };
        if axes == 0 {
            return Ok(x);
        }
        record(Op::Reduce { op, axes }, &[&x], shape.keep(axes), x.dtype())
    }

    fn fold(&self, op: ReduceOp, axes: &[isize], keepdim: bool) -> Result<Tensor> {
        let shape = self.shape();
        let mask = shape.axes(axes)?;
        let empty = (0..shape.rank()).any(|k| mask >> k & 1 == 1 && shape[k] == 0);
        if empty && matches!(op, ReduceOp::Max | ReduceOp::Min) {
            bail!(Shape, "the extremum of no elements: shape {shape} is empty along the reduced axes");
        }
        let grows = matches!(op, ReduceOp::Sum | ReduceOp::Prod);
        let folded = if grows { self.upcast()?.reduce_mask(op, mask)? } else { self.reduce_mask(op, mask)? };
        if keepdim { Ok(folded) } else { folded.reshape_to(shape.without(mask)) }
    }

    fn arg(&self, max: bool, axes: &[isize], keepdim: bool) -> Result<Tensor> {
        let shape = self.shape();
        if self.dtype() == DType::Bool {
            return self.try_to_dtype(DType::U8)?.arg(max, axes, keepdim);
        }
        let mask = shape.axes(axes)?;
        if (0..shape.rank()).any(|k| mask >> k & 1 == 1 && shape[k] == 0) {
            bail!(Shape, "the extremum of no elements: shape {shape} is empty along the reduced axes");
        }
        if mask == 0 {
            return Ok(self.constant(0, shape, DType::I32));
        }
        let kept = record(Op::ArgReduce { max, axes: mask }, &[self], shape.keep(mask), DType::I32)?;
        if keepdim { Ok(kept) } else { kept.reshape_to(shape.without(mask)) }
    }
}

impl Tensor {
    /// The sum of all elements; integers are summed as i64.
    #[op]
    pub fn try_sum(&self) -> Result<Tensor> {
        self.fold(ReduceOp::Sum, &[], false)
    }

    /// The sum over axes.
    #[op]
    pub fn try_sum_dim(&self, axes: impl Into<Dims>, keepdim: bool) -> Result<Tensor> {
        self.fold(ReduceOp::Sum, &axes.into(), keepdim)
    }

    /// The product of all elements.
    #[op]
    pub fn try_prod(&self) -> Result<Tensor> {
        self.fold(ReduceOp::Prod, &[], false)
    }

    /// The product over axes.
    #[op]
    pub fn try_prod_dim(&self, axes: impl Into<Dims>, keepdim: bool) -> Result<Tensor> {
        self.fold(ReduceOp::Prod, &axes.into(), keepdim)
    }

    /// The largest element; NaN wins. Its gradient is shared equally among ties.
    #[op]
    pub fn try_max(&self) -> Result<Tensor> {
        self.fold(ReduceOp::Max, &[], false)
    }

    /// The largest elements over axes (PyTorch's `amax`).
    #[op]
    pub fn try_max_dim(&self, axes: impl Into<Dims>, keepdim: bool) -> Result<Tensor> {
        self.fold(ReduceOp::Max, &axes.into(), keepdim)
    }

    /// The smallest element; NaN wins.
    #[op]
    pub fn try_min(&self) -> Result<Tensor> {
        self.fold(ReduceOp::Min, &[], false)
    }

    /// The smallest elements over axes (PyTorch's `amin`).
    #[op]
    pub fn try_min_dim(&self, axes: impl Into<Dims>, keepdim: bool) -> Result<Tensor> {
        self.fold(ReduceOp::Min, &axes.into(), keepdim)
    }

    /// The flat position of the largest element, the first of ties, as i32.
    #[op]
    pub fn try_argmax(&self) -> Result<Tensor> {
        self.arg(true, &[], false)
    }

    /// The position of the largest element along an axis, the first of ties, as i32.
    #[op]
    pub fn try_argmax_dim(&self, axis: isize, keepdim: bool) -> Result<Tensor> {
        self.arg(true, &[axis], keepdim)
    }

    /// The flat position of the smallest element, the first of ties, as i32.
    #[op]
    pub fn try_argmin(&self) -> Result<Tensor> {
        self.arg(false, &[], false)
    }

    /// The position of the smallest element along an axis, the first of ties, as i32.
    #[op]
    pub fn try_argmin_dim(&self, axis: isize, keepdim: bool) -> Result<Tensor> {
        self.arg(false, &[axis], keepdim)
    }
}
