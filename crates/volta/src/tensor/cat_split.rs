//! Joining, cutting and repeating tensors.

use super::Tensor;
use super::record::run_op;
use crate::dtype::{DType, Scalar};
use crate::error::{Result, bail};
use crate::shape::{Dims, Shape};
use std::borrow::Borrow;
use volta_derive::op;

/// What does not change a value it is added to; 0 would change −0.
fn neutral(dtype: DType) -> Scalar {
    if dtype.is_float() { Scalar::Float(-0.0) } else { dtype.zero() }
}

/// As many parts as one kernel joins; more are joined in groups first, which are copied once more.
const PARTS_AT_ONCE: usize = 12;

/// Every part padded to the whole and added up: one kernel, and each part's gradient is a slice.
fn joined(parts: &[Tensor], axis: usize, dtype: DType) -> Result<Tensor> {
    if parts.len() > PARTS_AT_ONCE {
        let size = parts.len().div_ceil(PARTS_AT_ONCE).max(PARTS_AT_ONCE);
        let groups =
            parts.chunks(size).map(|group| joined(group, axis, dtype)).collect::<Result<Vec<_>>>()?;
        return joined(&groups, axis, dtype);
    }
    let whole: usize = parts.iter().map(|p| p.shape()[axis]).sum();
    let mut at = 0;
    let mut sum: Option<Tensor> = None;
    for part in parts {
        let extent = part.shape()[axis];
        let mut pads = vec![(0, 0); part.rank()];
        pads[axis] = (at, whole - at - extent);
        at += extent;
        let padded = part.try_to_dtype(dtype)?.pad_with(&pads, neutral(dtype))?;
        sum = Some(match sum {
            None => padded,
            Some(sum) if dtype == DType::Bool => sum.try_logical_or(&padded)?,
            Some(sum) => sum.try_add(&padded)?,
        });
    }
    Ok(sum.expect("at least one part"))
}

fn repeated(x: &Tensor, axis: usize, times: usize, inner: bool) -> Result<Tensor> {
    if times == 1 {
        return Ok(x.clone());
    }
    let mut extents = x.shape().to_vec();
    let at = if inner { axis + 1 } else { axis };
    let spread = x.try_unsqueeze(at as isize)?;
    let mut wide = spread.shape().to_vec();
    wide[at] = times;
    extents[axis] *= times;
    spread.expand_to(Shape::new(&wide)?)?.reshape_to(Shape::new(&extents)?)
}

impl Tensor {
    /// Tensors one behind the other along an axis. Types are promoted; vectors of no elements fit anything.
    ///
    /// ```
    /// use volta::Tensor;
    /// let (a, b) = (Tensor::vector(&[1.0]), Tensor::vector(&[2.0, 3.0]));
    /// assert_eq!(Tensor::cat(&[&a, &b], 0).to_vec::<f32>(), [1.0, 2.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn cat(tensors: &[impl Borrow<Tensor>], dim: isize) -> Tensor {
        Tensor::try_cat(tensors, dim).unwrap_or_else(|e| e.raise())
    }

    /// [`cat`](Self::cat) that returns its error.
    #[track_caller]
    pub fn try_cat(tensors: &[impl Borrow<Tensor>], dim: isize) -> Result<Tensor> {
        run_op("cat", || {
            let all: Vec<&Tensor> = tensors.iter().map(Borrow::borrow).collect();
            let Some(first) = all.first() else { bail!(Argument, "there is no tensor to join") };
            let dtype = all.iter().fold(first.dtype(), |d, t| d.promote(t.dtype()));
            let parts: Vec<Tensor> =
                all.iter().filter(|t| t.shape()[..] != [0]).map(|&t| t.clone()).collect();
            let Some(like) = parts.first() else {
                first.shape().axis(dim)?;
                return first.try_to_dtype(dtype);
            };
            let shape = like.shape();
            if let Some(t) = all.iter().find(|t| t.rank() == 0) {
                bail!(
                    Shape,
                    "a tensor without axes ({} {}) cannot be joined: stack them instead",
                    t.dtype(),
                    t.shape()
                );
            }
            let k = shape.axis(dim)?;
            for t in &parts {
                let other = t.shape();
                if other.rank() != shape.rank() || (0..shape.rank()).any(|j| j != k && other[j] != shape[j]) {
                    bail!(
                        Shape,
                        "shapes {shape} and {other} cannot be joined along axis {dim}: they differ elsewhere"
                    );
                }
            }
            joined(&parts, k, dtype)
        })
    }

    /// Tensors of one shape along a new axis.
    #[track_caller]
    pub fn stack(tensors: &[impl Borrow<Tensor>], dim: isize) -> Tensor {
        Tensor::try_stack(tensors, dim).unwrap_or_else(|e| e.raise())
    }

    /// [`stack`](Self::stack) that returns its error.
    #[track_caller]
    pub fn try_stack(tensors: &[impl Borrow<Tensor>], dim: isize) -> Result<Tensor> {
        run_op("stack", || {
            let Some(first) = tensors.first() else { bail!(Argument, "there is no tensor to stack") };
            let shape = first.borrow().shape();
            let mut parts = Vec::new();
            for t in tensors.iter().map(Borrow::borrow) {
                if t.shape() != shape {
                    bail!(Shape, "shapes {shape} and {} cannot be stacked: they must be equal", t.shape());
                }
                parts.push(t.try_unsqueeze(dim)?);
            }
            Tensor::try_cat(&parts, dim)
        })
    }

    /// The axis `dim` of a tensor that has axes.
    fn cut_axis(&self, dim: isize) -> Result<usize> {
        if self.rank() == 0 {
            bail!(Shape, "a tensor without axes cannot be cut");
        }
        self.shape().axis(dim)
    }
}

impl Tensor {
    /// Parts of `size` along an axis; the last may be smaller.
    #[op]
    pub fn try_split(&self, size: usize, dim: isize) -> Result<Vec<Tensor>> {
        let extent = self.shape()[self.cut_axis(dim)?];
        if size == 0 && extent != 0 {
            bail!(Argument, "axis {dim} of shape {} cannot be cut into parts of 0", self.shape());
        }
        if extent == 0 {
            return Ok(vec![self.clone()]);
        }
        (0..extent).step_by(size).map(|at| self.try_narrow(dim, at, size.min(extent - at))).collect()
    }

    /// Parts of these sizes along an axis.
    #[op]
    pub fn try_split_sizes(&self, sizes: &[usize], dim: isize) -> Result<Vec<Tensor>> {
        let extent = self.shape()[self.cut_axis(dim)?];
        if sizes.iter().sum::<usize>() != extent {
            bail!(
                Shape,
                "sizes {sizes:?} do not add up to the {extent} elements of axis {dim} of shape {}",
                self.shape()
            );
        }
        let mut at = 0;
        sizes
            .iter()
            .map(|&size| {
                at += size;
                self.try_narrow(dim, at - size, size)
            })
            .collect()
    }

    /// At most `chunks` equal parts along an axis; the last may be smaller.
    #[op]
    pub fn try_chunk(&self, chunks: usize, dim: isize) -> Result<Vec<Tensor>> {
        let extent = self.shape()[self.cut_axis(dim)?];
        if chunks == 0 {
            bail!(Argument, "a tensor cannot be cut into 0 parts");
        }
        if extent == 0 {
            Ok(vec![self.clone(); chunks])
        } else {
            self.try_split(extent.div_ceil(chunks), dim)
        }
    }

    /// The slices of an axis, which goes.
    #[op]
    pub fn try_unbind(&self, dim: isize) -> Result<Vec<Tensor>> {
        let extent = self.shape()[self.cut_axis(dim)?];
        (0..extent).map(|k| self.try_select(dim, k as isize)).collect()
    }

    /// The whole tensor repeated along every axis; more numbers than axes add axes in front.
    #[op]
    pub fn try_repeat(&self, times: impl Into<Dims>) -> Result<Tensor> {
        let (shape, times) = (self.shape(), times.into());
        if times.len() < shape.rank() || times.iter().any(|&t| t < 0) {
            bail!(Shape, "{:?} does not say how often to repeat each axis of shape {shape}", &times[..]);
        }
        let added = times.len() - shape.rank();
        let mut x = self.reshape_to(Shape::new(&[&vec![1; added][..], &shape[..]].concat())?)?;
        for (k, &t) in times.iter().enumerate() {
            x = repeated(&x, k, t as usize, false)?;
        }
        Ok(x)
    }

    /// [`repeat`](Self::repeat) that takes fewer numbers than axes, for the last ones.
    #[op]
    pub fn try_tile(&self, times: impl Into<Dims>) -> Result<Tensor> {
        let times = times.into();
        let mut all = vec![1isize; self.rank().saturating_sub(times.len())];
        all.extend(&times[..]);
        self.try_repeat(&all[..])
    }

    /// Every element repeated in place, along an axis or, without one, of the flattened tensor.
    #[op]
    pub fn try_repeat_interleave(&self, times: usize, dim: Option<isize>) -> Result<Tensor> {
        match dim {
            None => repeated(&self.try_flatten(0, -1)?, 0, times, true),
            Some(dim) => repeated(self, self.cut_axis(dim)?, times, true),
        }
    }

    /// Elements moved by `shifts` along `dims`; what leaves at one end comes back at the other. Without `dims`
    /// the flattened tensor is moved.
    #[op]
    pub fn try_roll(&self, shifts: impl Into<Dims>, dims: impl Into<Dims>) -> Result<Tensor> {
        let (shifts, dims) = (shifts.into(), dims.into());
        if dims.is_empty() && shifts.len() == 1 {
            let flat = self.reshape_to(Shape::of(&[self.numel()]))?;
            return flat.try_roll(shifts[0], 0)?.reshape_to(self.shape());
        }
        if shifts.len() != dims.len() || shifts.is_empty() {
            bail!(Argument, "{} shifts for {} axes", shifts.len(), dims.len());
        }
        let mut x = self.clone();
        for (&shift, &dim) in shifts.iter().zip(dims.iter()) {
            let extent = x.shape()[x.cut_axis(dim)?] as isize;
            let by = if extent == 0 { 0 } else { shift.rem_euclid(extent) };
            if by != 0 {
                let (head, tail) = ((extent - by) as usize, by as usize);
                x = Tensor::try_cat(&[x.try_narrow(dim, head, tail)?, x.try_narrow(dim, 0, head)?], dim)?;
            }
        }
        Ok(x)
    }
}
