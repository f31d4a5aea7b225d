//! Movement: views that cost nothing until something must be copied for them.

use super::Tensor;
use super::record::record;
use crate::dtype::Scalar;
use crate::error::{Result, bail};
use crate::op::Op;
use crate::shape::{Dims, MAX_RANK, Shape};
use std::ops::{Bound, RangeBounds};
use volta_derive::op;

/// Part of an axis: `start..end` by `step`, negative numbers counted from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    start: Option<isize>,
    end: Option<isize>,
    step: usize,
}

impl Range {
    /// Every `step`-th of a range: `Range::by(1..9, 2)`, `Range::by(.., 3)`.
    pub fn by(range: impl RangeBounds<isize>, step: usize) -> Range {
        let start = match range.start_bound() {
            Bound::Included(&s) => Some(s),
            Bound::Excluded(&s) => Some(s.saturating_add(1)),
            Bound::Unbounded => None,
        };
        let end = match range.end_bound() {
            Bound::Included(&-1) | Bound::Unbounded => None,
            Bound::Included(&e) => Some(e.saturating_add(1)),
            Bound::Excluded(&e) => Some(e),
        };
        Range { start, end, step }
    }
}

macro_rules! range_from {
    ($($range:ty),*) => {$(
        impl From<$range> for Range {
            fn from(r: $range) -> Range {
                Range::by(r, 1)
            }
        }
    )*};
}
range_from!(
    std::ops::Range<isize>,
    std::ops::RangeFrom<isize>,
    std::ops::RangeTo<isize>,
    std::ops::RangeFull,
    std::ops::RangeInclusive<isize>,
    std::ops::RangeToInclusive<isize>
);

impl Tensor {
    /// Broadcast to `shape`, without an op where it has it already.
    pub(crate) fn expand_to(&self, shape: Shape) -> Result<Tensor> {
        let from = self.shape();
        if from == shape {
            return Ok(self.clone());
        }
        let fits = from.rank() <= shape.rank()
            && from.iter().rev().zip(shape.iter().rev()).all(|(&a, &b)| a == b || a == 1);
        if !fits {
            bail!(Shape, "shape {from} cannot be expanded to {shape}");
        }
        if let Op::Const(value) = self.node().op {
            return Ok(self.constant(value, shape, self.dtype()));
        }
        record(Op::Expand, &[self], shape, self.dtype())
    }

    /// The same elements in order under another shape of the same size.
    pub(crate) fn reshape_to(&self, shape: Shape) -> Result<Tensor> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        debug_assert_eq!(self.numel(), shape.numel());
        record(Op::Reshape, &[self], shape, self.dtype())
    }

    pub(crate) fn pad_with(&self, pads: &[(usize, usize)], fill: Scalar) -> Result<Tensor> {
        if pads.iter().all(|&p| p == (0, 0)) {
            return Ok(self.clone());
        }
        // Beyond what can be counted, `Shape::new` refuses it.
        let padded = |(e, p): (&usize, &(usize, usize))| e.saturating_add(p.0).saturating_add(p.1);
        let extents: Vec<usize> = self.shape().iter().zip(pads).map(padded).collect();
        let fill = fill.within(self.dtype());
        record(Op::Pad { pads: pads.into(), fill }, &[self], Shape::new(&extents)?, self.dtype())
    }

    /// Every `step`-th element of every axis from `start`, `extent` of them: (start, step, extent).
    pub(crate) fn slice_parts(&self, parts: &[(usize, usize, usize)]) -> Result<Tensor> {
        let shape = self.shape();
        if parts.iter().zip(shape.iter()).all(|(p, &e)| *p == (0, 1, e)) {
            return Ok(self.clone());
        }
        let extents: Vec<usize> = parts.iter().map(|p| p.2).collect();
        let parts: Box<[(usize, usize)]> = parts.iter().map(|p| (p.0, p.1)).collect();
        record(Op::Slice(parts), &[self], Shape::of(&extents), self.dtype())
    }

    pub(crate) fn permute_order(&self, order: &[usize]) -> Result<Tensor> {
        if order.iter().enumerate().all(|(k, &o)| k == o) {
            return Ok(self.clone());
        }
        // Back to where it came from, as gradients of transposed weights do.
        let node = self.node();
        if let Op::Permute(first) = &node.op
            && !node.tracked
            && order.iter().enumerate().all(|(k, &o)| first[o] as usize == k)
            && let Some(source) = node.sources().first()
            // What was cut from the tape stays cut.
            && !source.tracked
        {
            return Ok(Tensor::from_node(source.clone()));
        }
        let shape = self.shape();
        let extents: Vec<usize> = order.iter().map(|&o| shape[o]).collect();
        let mut axes = [0; MAX_RANK];
        for (axis, &o) in axes.iter_mut().zip(order) {
            *axis = o as u8;
        }
        record(Op::Permute(axes), &[self], Shape::of(&extents), self.dtype())
    }
}

impl Tensor {
    /// The same elements in order under another shape; one extent may be -1 and follows from the others.
    #[op]
    pub fn try_reshape(&self, shape: impl Into<Dims>) -> Result<Tensor> {
        let (wanted, from) = (shape.into(), self.shape());
        let extents = || wanted.iter().filter(|&&e| e >= 0).map(|&e| e as usize);
        let known =
            if extents().any(|e| e == 0) { Some(0) } else { extents().try_fold(1usize, usize::checked_mul) };
        let known = known.unwrap_or(usize::MAX);
        let open = wanted.iter().filter(|&&e| e == -1).count();
        let fits = match open {
            0 => known == from.numel(),
            1 => known > 0 && from.numel() % known == 0,
            _ => false,
        };
        if !fits || wanted.iter().any(|&e| e < -1) {
            bail!(Shape, "{} elements of shape {from} do not fit into shape {:?}", from.numel(), &wanted[..]);
        }
        let extents: Vec<usize> =
            wanted.iter().map(|&e| if e == -1 { from.numel() / known } else { e as usize }).collect();
        self.reshape_to(Shape::new(&extents)?)
    }

    /// [`reshape`](Self::reshape) to another tensor's shape.
    #[op]
    pub fn try_view_as(&self, other: &Tensor) -> Result<Tensor> {
        self.try_reshape(other.shape())
    }

    /// The axes in another order.
    #[op]
    pub fn try_permute(&self, order: impl Into<Dims>) -> Result<Tensor> {
        let (order, shape) = (order.into(), self.shape());
        let axes: Vec<usize> = order.iter().map(|&a| shape.axis(a)).collect::<Result<_>>()?;
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        if shape.rank() != axes.len() || sorted.iter().enumerate().any(|(k, &a)| k != a) {
            bail!(Shape, "order {:?} does not name every axis of shape {shape} once", &order[..]);
        }
        self.permute_order(&axes)
    }

    /// Two axes exchanged.
    #[op]
    pub fn try_transpose(&self, a: isize, b: isize) -> Result<Tensor> {
        let shape = self.shape();
        let mut order: Vec<usize> = (0..shape.rank()).collect();
        let (a, b) = (shape.axis(a)?, shape.axis(b)?);
        if shape.rank() > 0 {
            order.swap(a, b);
        }
        self.permute_order(&order)
    }

    /// The last two axes exchanged; a vector stays itself.
    #[op]
    pub fn try_t(&self) -> Result<Tensor> {
        if self.rank() < 2 { Ok(self.clone()) } else { self.try_transpose(-2, -1) }
    }

    /// Repeats axes of extent 1 (and new ones in front) without copying; -1 keeps an extent.
    #[op]
    pub fn try_expand(&self, shape: impl Into<Dims>) -> Result<Tensor> {
        let (wanted, from) = (shape.into(), self.shape());
        let added = wanted.len().saturating_sub(from.rank());
        let extents: Vec<isize> = wanted
            .iter()
            .enumerate()
            .map(|(k, &e)| if e == -1 && k >= added { from[k - added] as isize } else { e })
            .collect();
        if wanted.len() < from.rank() || extents.iter().any(|&e| e < 0) {
            bail!(Shape, "shape {from} cannot be expanded to {:?}", &wanted[..]);
        }
        self.expand_to(Dims::from(&extents[..]).extents()?)
    }

    /// [`expand`](Self::expand) to another tensor's shape.
    #[op]
    pub fn try_expand_as(&self, other: &Tensor) -> Result<Tensor> {
        self.expand_to(other.shape())
    }

    /// Adds elements before and after: (before, after) of every axis, filled with `value`.
    #[op]
    pub fn try_pad(&self, pads: &[(usize, usize)], value: impl Into<Scalar>) -> Result<Tensor> {
        if pads.len() != self.rank() {
            bail!(
                Shape,
                "{} pairs of padding for shape {}: one pair an axis is needed",
                pads.len(),
                self.shape()
            );
        }
        self.pad_with(pads, value.into())
    }

    /// Ranges of the leading axes, the others whole: `x.slice([(1..3).into(), Range::by(.., 2)])`.
    #[op]
    pub fn try_slice(&self, ranges: impl AsRef<[Range]>) -> Result<Tensor> {
        let (ranges, shape) = (ranges.as_ref(), self.shape());
        if ranges.len() > shape.rank() {
            bail!(Shape, "{} ranges for shape {shape}", ranges.len());
        }
        let mut parts: Vec<(usize, usize, usize)> = shape.iter().map(|&e| (0, 1, e)).collect();
        for (k, r) in ranges.iter().enumerate() {
            if r.step == 0 {
                bail!(Argument, "the step of a range must not be 0");
            }
            let extent = shape[k] as isize;
            // As in Python: beyond the ends means the ends.
            let place = |p: isize| (if p < 0 { p + extent } else { p }).clamp(0, extent);
            let start = place(r.start.unwrap_or(0));
            let end = place(r.end.unwrap_or(extent)).max(start);
            parts[k] = (start as usize, r.step, ((end - start) as usize).div_ceil(r.step));
        }
        self.slice_parts(&parts)
    }

    /// `length` elements of an axis from `start`.
    #[op]
    pub fn try_narrow(&self, axis: isize, start: usize, length: usize) -> Result<Tensor> {
        let shape = self.shape();
        let k = shape.axis(axis)?;
        if shape.rank() == 0 || start > shape[k] || length > shape[k] - start {
            bail!(Shape, "{length} elements from {start} of axis {axis} are outside shape {shape}");
        }
        let mut parts: Vec<(usize, usize, usize)> = shape.iter().map(|&e| (0, 1, e)).collect();
        parts[k] = (start, 1, length);
        self.slice_parts(&parts)
    }

    /// One element of an axis, which goes; negative counts from the end.
    #[op]
    pub fn try_select(&self, axis: isize, index: isize) -> Result<Tensor> {
        let shape = self.shape();
        let k = shape.axis(axis)?;
        let extent = if shape.rank() == 0 { 0 } else { shape[k] as isize };
        if index < -extent || index >= extent {
            bail!(Shape, "index {index} is out of range for axis {axis} of shape {shape}");
        }
        let picked = self.try_narrow(axis, index.rem_euclid(extent) as usize, 1)?;
        picked.reshape_to(shape.without(1 << k))
    }

    /// Axes in reverse order of elements.
    #[op]
    pub fn try_flip(&self, axes: impl Into<Dims>) -> Result<Tensor> {
        let axes = axes.into();
        let mask = if axes.is_empty() { 0 } else { self.shape().axes(&axes)? };
        if mask == 0 {
            return Ok(self.clone());
        }
        record(Op::Flip(mask), &[self], self.shape(), self.dtype())
    }

    /// Sliding windows of `size` over an axis, every `step`, as a new last axis (PyTorch's `unfold`).
    #[op]
    pub fn try_unfold(&self, axis: isize, size: usize, step: usize) -> Result<Tensor> {
        self.try_windows(axis, size, step, 1)
    }

    /// [`unfold`](Self::unfold) with `dilation` between a window's elements.
    #[op]
    pub fn try_windows(&self, axis: isize, size: usize, step: usize, dilation: usize) -> Result<Tensor> {
        let shape = self.shape();
        let k = shape.axis(axis)?;
        let reach = if size == 0 { 0 } else { (size - 1).saturating_mul(dilation).saturating_add(1) };
        if step == 0 || dilation == 0 || shape.rank() == 0 || reach > shape[k] {
            bail!(
                Shape,
                "windows of {size} by step {step} and dilation {dilation} do not fit axis {axis} of shape {shape}"
            );
        }
        let mut extents = shape.to_vec();
        extents[k] = (shape[k] - reach) / step + 1;
        extents.push(size);
        record(Op::Windows { axis: k as u8, step, dilation }, &[self], Shape::new(&extents)?, self.dtype())
    }

    /// Without one axis of extent 1; an axis of another extent stays.
    #[op]
    pub fn try_squeeze(&self, axis: isize) -> Result<Tensor> {
        let shape = self.shape();
        let k = shape.axis(axis)?;
        if shape.rank() == 0 || shape[k] != 1 {
            return Ok(self.clone());
        }
        self.reshape_to(shape.without(1 << k))
    }

    /// Without any axis of extent 1.
    #[op]
    pub fn try_squeeze_all(&self) -> Result<Tensor> {
        let extents: Vec<usize> = self.shape().iter().copied().filter(|&e| e != 1).collect();
        self.reshape_to(Shape::of(&extents))
    }

    /// With a new axis of extent 1 at `axis`.
    #[op]
    pub fn try_unsqueeze(&self, axis: isize) -> Result<Tensor> {
        let shape = self.shape();
        let rank = shape.rank() as isize + 1;
        if axis < -rank || axis >= rank {
            bail!(
                Shape,
                "a new axis {axis} is out of range for shape {shape}: it must lie in {}..={}",
                -rank,
                rank - 1
            );
        }
        let mut extents = shape.to_vec();
        extents.insert(axis.rem_euclid(rank) as usize, 1);
        self.reshape_to(Shape::new(&extents)?)
    }

    /// The axes `first..=last` as one.
    #[op]
    pub fn try_flatten(&self, first: isize, last: isize) -> Result<Tensor> {
        let shape = self.shape();
        if shape.rank() == 0 {
            return self.reshape_to(Shape::of(&[1]));
        }
        let (a, b) = (shape.axis(first)?, shape.axis(last)?);
        if a > b {
            bail!(Shape, "axis {first} comes after axis {last} in shape {shape}");
        }
        let mut extents = shape[..a].to_vec();
        extents.push(shape[a..=b].iter().product());
        extents.extend(&shape[b + 1..]);
        self.reshape_to(Shape::of(&extents))
    }

    /// One axis as several; one extent may be -1.
    #[op]
    pub fn try_unflatten(&self, axis: isize, extents: impl Into<Dims>) -> Result<Tensor> {
        let (shape, extents) = (self.shape(), extents.into());
        let k = shape.axis(axis)?;
        let known =
            extents.iter().filter(|&&e| e != -1).try_fold(1isize, |product, &e| product.checked_mul(e));
        let extent = if shape.rank() == 0 { 1 } else { shape[k] as isize };
        let open = extents.iter().filter(|&&e| e == -1).count();
        let fits = match (known, open) {
            (Some(known), 0) => known == extent,
            (Some(known), 1) => known > 0 && extent % known == 0,
            _ => false,
        };
        if !fits || shape.rank() == 0 || extents.iter().any(|&e| e < -1) {
            bail!(Shape, "axis {axis} of shape {shape} does not unflatten into {:?}", &extents[..]);
        }
        let rest = extent / known.unwrap_or(1).max(1);
        let mut all: Vec<isize> = shape[..k].iter().map(|&e| e as isize).collect();
        all.extend(extents.iter().map(|&e| if e == -1 { rest } else { e }));
        all.extend(shape[k + 1..].iter().map(|&e| e as isize));
        self.reshape_to(Dims::from(&all[..]).extents()?)
    }
}
