//! Masks and triangles, one-hot rows, running products and differences.

use super::{Operand, Tensor};
use crate::dtype::{DType, Scalar};
use crate::error::{Result, bail};
use crate::shape::{MAX_RANK, Shape};
use volta_derive::op;

/// A diagonal that is as far away from all elements as this one, if that is beyond them, and is an i32.
pub(super) fn reachable(diagonal: i64) -> i64 {
    diagonal.clamp(-(1 << 30), 1 << 30)
}

/// The elements whose column less row satisfies a comparison with `diagonal`, zeros elsewhere.
fn triangle(x: &Tensor, diagonal: i64, lower: bool) -> Result<Tensor> {
    let shape = x.shape();
    let rank = shape.rank();
    if rank < 2 {
        bail!(Shape, "a tensor of shape {shape} has no rows and columns");
    }
    let (row, column) =
        (x.index_rule(rank - 2, shape, DType::I32), x.index_rule(rank - 1, shape, DType::I32));
    let limit = row.try_add(reachable(diagonal))?;
    let kept = if lower { column.try_le(&limit)? } else { column.try_ge(&limit)? };
    kept.try_where_(x, x.dtype().zero())
}

impl Tensor {
    /// Zeros above the `diagonal`-th diagonal of the last two axes.
    #[op]
    pub fn try_tril(&self, diagonal: i64) -> Result<Tensor> {
        triangle(self, diagonal, true)
    }

    /// Zeros below the `diagonal`-th diagonal of the last two axes.
    #[op]
    pub fn try_triu(&self, diagonal: i64) -> Result<Tensor> {
        triangle(self, diagonal, false)
    }

    /// `value`, a number or a tensor without axes, where the mask is true; the mask is broadcast. A tensor's gradient is
    /// the sum of those where it was filled in.
    #[op]
    pub fn try_masked_fill(&self, mask: &Tensor, value: impl Into<Operand>) -> Result<Tensor> {
        if mask.dtype() != DType::Bool {
            bail!(DType, "the mask is {}: it must be bool", mask.dtype());
        }
        let value = match value.into() {
            Operand::Scalar(number) => self.constant_like(number.checked(self.dtype())?),
            Operand::Tensor(t) if t.rank() > 0 => {
                bail!(
                    Shape,
                    "the value has shape {}: it must be a number or a tensor without axes",
                    t.shape()
                )
            }
            Operand::Tensor(t) => t.cast(self.dtype())?,
        };
        mask.try_where_(value, self)
    }

    /// A row of `classes` for every index, 1 at the index and 0 elsewhere; a new last axis. An index that is no class is an
    /// error, as for [`gather`](Self::gather), and gives a row of zeros.
    #[op]
    pub fn try_one_hot(&self, classes: usize) -> Result<Tensor> {
        if !self.dtype().is_int() {
            bail!(DType, "the index is {}: it must be an integer type", self.dtype());
        }
        // A byte could not count beyond 255.
        let dtype = self.dtype().of_positions();
        let shape = Shape::new(&[&self.shape()[..], &[classes]].concat())?;
        let class = self.index_rule(shape.rank() - 1, shape, dtype);
        class.try_eq(&self.try_to_dtype(dtype)?.in_bounds(classes)?.try_unsqueeze(-1)?)?.try_to_dtype(dtype)
    }

    /// The running product along an axis; integers are multiplied as i64. Its time grows with the square of the
    /// axis.
    #[op]
    pub fn try_cumprod(&self, dim: isize) -> Result<Tensor> {
        let (shape, k) = (self.shape(), self.shape().axis(dim)?);
        let x = if self.dtype().is_float() { self.upcast()? } else { self.try_to_dtype(self.sum_type())? };
        if shape.rank() == 0 {
            return Ok(x);
        }
        if shape.rank() == MAX_RANK {
            bail!(Shape, "a running product of shape {shape} needs one axis more than {MAX_RANK}");
        }
        // Each place multiplies what stands before it, and ones for the rest.
        let mut extents = shape.to_vec();
        extents.insert(k, shape[k]);
        let square = Shape::new(&extents)?;
        let before = x.index_rule(k + 1, square, DType::I32).try_le(x.index_rule(k, square, DType::I32))?;
        let one = if x.dtype().is_float() { Scalar::Float(1.0) } else { Scalar::Int(1) };
        before.try_where_(&x.try_unsqueeze(k as isize)?, one)?.try_prod_dim(k as isize + 1, false)
    }

    /// Each element less the one before along an axis, `n` times over; of bools, whether they differ.
    #[op]
    pub fn try_diff(&self, n: usize, dim: isize) -> Result<Tensor> {
        let k = self.shape().axis(dim)?;
        if self.rank() == 0 {
            bail!(Shape, "a tensor without axes has no differences");
        }
        let mut x = self.clone();
        for _ in 0..n {
            let rest = x.shape()[k].saturating_sub(1);
            let skip = x.shape()[k].min(1);
            let (next, before) = (x.try_narrow(dim, skip, rest)?, x.try_narrow(dim, 0, rest)?);
            x = if x.dtype() == DType::Bool {
                next.try_logical_xor(&before)?
            } else {
                next.try_sub(&before)?
            };
        }
        Ok(x)
    }
}
