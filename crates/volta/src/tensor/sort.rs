//! Order: sorting, extrema with their positions, medians.

use super::Tensor;
use crate::error::{Result, bail};
use crate::shape::Shape;
use volta_derive::op;

/// A tensor without axes as a vector, so that it has one to order.
fn at_least_1d(x: &Tensor) -> Result<Tensor> {
    if x.rank() == 0 { x.reshape_to(Shape::of(&[1])) } else { Ok(x.clone()) }
}

/// The elements at `index` along an axis, beside the index itself; both without axes if `x` has none.
fn taken(x: &Tensor, axis: usize, index: Tensor) -> Result<(Tensor, Tensor)> {
    if x.rank() == 0 {
        return Ok((x.clone(), index.reshape_to(Shape::of(&[]))?));
    }
    Ok((x.gather_primitive(axis, &index)?, index))
}

/// Without the axis that one element was taken from, unless it is kept.
fn reduced((values, index): (Tensor, Tensor), axis: usize, keepdim: bool) -> Result<(Tensor, Tensor)> {
    if keepdim || values.rank() == 0 {
        return Ok((values, index));
    }
    let shape = values.shape().without(1 << axis);
    Ok((values.reshape_to(shape)?, index.reshape_to(shape)?))
}

impl Tensor {
    /// An axis in order, with the positions (i32) its elements had; equal ones keep their order, NaN counts as
    /// the largest.
    #[op]
    pub fn try_sort(&self, dim: isize, descending: bool) -> Result<(Tensor, Tensor)> {
        let k = self.shape().axis(dim)?;
        taken(self, k, at_least_1d(self)?.try_argsort(dim, descending)?)
    }

    /// The `k` largest (or smallest) elements of an axis in order, with their positions (i32).
    #[op]
    pub fn try_topk(&self, k: usize, dim: isize, largest: bool) -> Result<(Tensor, Tensor)> {
        let (shape, axis) = (self.shape(), self.shape().axis(dim)?);
        let x = at_least_1d(self)?;
        if k > x.shape()[axis] {
            bail!(Shape, "axis {dim} of shape {shape} has no {k} elements to choose");
        }
        if k == 1 && largest {
            return taken(self, axis, x.try_argmax_dim(dim, true)?);
        }
        let index = x.try_argsort(dim, largest)?.try_narrow(dim, 0, k)?;
        if self.rank() == 0 && k == 0 {
            return Ok((x.try_narrow(0, 0, 0)?, index));
        }
        taken(self, axis, index)
    }

    /// The largest element of an axis and its position (i32), the first of ties; NaN wins. This is PyTorch's
    /// `max(dim)`: the gradient goes to that position alone.
    #[op]
    pub fn try_max_with_index(&self, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let k = self.shape().axis(dim)?;
        reduced(taken(self, k, at_least_1d(self)?.try_argmax_dim(dim, true)?)?, k, keepdim)
    }

    /// The smallest element of an axis and its position (i32), the first of ties; NaN wins.
    #[op]
    pub fn try_min_with_index(&self, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let k = self.shape().axis(dim)?;
        reduced(taken(self, k, at_least_1d(self)?.try_argmin_dim(dim, true)?)?, k, keepdim)
    }

    /// The middle element of an axis, the lower one of two, and its position (i32); NaN wins.
    #[op]
    pub fn try_median_dim(&self, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let (shape, k) = (self.shape(), self.shape().axis(dim)?);
        let x = at_least_1d(self)?;
        let extent = x.shape()[k];
        if extent == 0 {
            bail!(Shape, "the median of no elements: axis {dim} of shape {shape} is empty");
        }
        let mut index = x.try_argsort(dim, false)?.try_narrow(dim, (extent - 1) / 2, 1)?;
        if x.dtype().is_float() {
            let nan = x.try_isnan()?;
            index = nan.try_any_dim(dim, true)?.try_where_(&nan.try_argmax_dim(dim, true)?, &index)?;
        }
        reduced(taken(self, k, index)?, k, keepdim)
    }

    /// The middle element of all, the lower one of two; NaN wins.
    #[op]
    pub fn try_median(&self) -> Result<Tensor> {
        Ok(self.reshape_to(Shape::of(&[self.numel()]))?.try_median_dim(0, false)?.0)
    }
}
