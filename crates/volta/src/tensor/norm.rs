//! Normalization: by the mean and spread of axes, channels or groups, or by the length of a vector.

use super::Tensor;
use crate::error::{Result, bail};
use crate::shape::{Dims, Shape};
use volta_derive::op;

/// (x − mean) / √(variance + eps) over the axes of a mask: the result, the mean and the variance.
fn standardized(x: &Tensor, mask: u8, eps: f64) -> Result<(Tensor, Tensor, Tensor)> {
    let (mean, squares) = x.moments(mask)?;
    let count: usize = (0..x.rank()).filter(|k| mask >> k & 1 == 1).map(|k| x.shape()[k]).product();
    let variance = squares.try_div(count as f64)?;
    let y = x.try_sub(&mean)?.try_mul(&variance.try_add(eps)?.try_rsqrt()?)?;
    Ok((y, mean, variance))
}

/// y · weight + bias, both seen under `view`.
fn affine(y: Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>, view: Shape) -> Result<Tensor> {
    let seen = |t: &Tensor| t.try_to_dtype(y.dtype())?.reshape_to(view);
    let mut y = match weight {
        Some(w) => y.try_mul(&seen(w)?)?,
        None => y.clone(),
    };
    if let Some(b) = bias {
        y = y.try_add(&b.try_to_dtype(y.dtype())?.reshape_to(view)?)?;
    }
    Ok(y)
}

/// A mask of the last `count` axes.
fn last_axes(rank: usize, count: usize) -> u8 {
    (rank - count..rank).fold(0, |mask, k| mask | 1 << k)
}

impl Tensor {
    /// An error unless a scale or shift has these extents and a type that goes with this tensor's.
    fn check_parameter(&self, name: &str, parameter: Option<&Tensor>, extents: &[usize]) -> Result<()> {
        let Some(p) = parameter else { return Ok(()) };
        if p.shape()[..] != *extents {
            bail!(
                Shape,
                "the {name} has shape {}, and the input {} needs {extents:?}",
                p.shape(),
                self.shape()
            );
        }
        // f32 parameters of half inputs are what mixed precision keeps.
        if p.dtype() != self.dtype() && p.dtype() != self.dtype().wide() {
            bail!(DType, "the {name} is {} and the input {}", p.dtype(), self.dtype());
        }
        Ok(())
    }

    /// The normalized shape, checked against the last axes of this one.
    fn last_extents(&self, normalized: &Dims) -> Result<Shape> {
        let (shape, last) = (self.shape(), normalized.extents()?);
        if last.rank() == 0 || last.rank() > shape.rank() || shape[shape.rank() - last.rank()..] != last[..] {
            bail!(Shape, "the input has shape {shape}, which does not end in the normalized shape {last}");
        }
        Ok(last)
    }

    /// An error unless there are channels, on axis 1.
    fn channels(&self) -> Result<usize> {
        self.check_float()?;
        let shape = self.shape();
        if shape.rank() < 2 {
            bail!(Shape, "the input has shape {shape}: (batch, channels, …) is needed");
        }
        Ok(shape[1])
    }

    /// Extents that stand for one value a channel.
    fn channel_view(&self) -> Shape {
        let mut extents = vec![1; self.rank()];
        extents[1] = self.shape()[1];
        Shape::of(&extents)
    }
}

impl Tensor {
    /// Normalizes over the last axes, whose extents are `normalized_shape`, then scales and shifts.
    #[op]
    pub fn try_layer_norm(
        &self,
        normalized_shape: impl Into<Dims>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        self.check_float()?;
        let last = self.last_extents(&normalized_shape.into())?;
        self.check_parameter("weight", weight, &last)?;
        self.check_parameter("bias", bias, &last)?;
        self.in_wide(|x| {
            let (y, ..) = standardized(x, last_axes(x.rank(), last.rank()), eps)?;
            affine(y, weight, bias, last)
        })
    }

    /// x / √(mean of x² + eps) over the last axes, whose extents are `normalized_shape`, then scales.
    #[op]
    pub fn try_rms_norm(
        &self,
        normalized_shape: impl Into<Dims>,
        weight: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        self.check_float()?;
        let last = self.last_extents(&normalized_shape.into())?;
        self.check_parameter("weight", weight, &last)?;
        self.in_wide(|x| {
            let mean = x.try_square()?.mean_mask(last_axes(x.rank(), last.rank()))?;
            affine(x.try_mul(&mean.try_add(eps)?.try_rsqrt()?)?, weight, None, last)
        })
    }

    /// Normalizes every channel (axis 1) by the mean and variance of the batch: the result and these two, one
    /// value a channel, for running averages. The variance is the biased one.
    #[op]
    pub fn try_batch_norm_train(
        &self,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let channels = self.channels()?;
        self.check_parameter("weight", weight, &[channels])?;
        self.check_parameter("bias", bias, &[channels])?;
        if self.shape().without(0b10).numel() == 1 {
            bail!(
                Shape,
                "the input has shape {}: more than one value a channel is needed for a spread",
                self.shape()
            );
        }
        let mask = last_axes(self.rank(), self.rank()) & !0b10;
        let (y, mean, variance) = standardized(&self.widened()?, mask, eps)?;
        let y = affine(y, weight, bias, self.channel_view())?.try_to_dtype(self.dtype())?;
        let flat = Shape::of(&[channels]);
        Ok((y, mean.reshape_to(flat)?, variance.reshape_to(flat)?))
    }

    /// Normalizes every channel (axis 1) by a mean and variance that were measured before.
    #[op]
    pub fn try_batch_norm_eval(
        &self,
        mean: &Tensor,
        variance: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let channels = self.channels()?;
        self.check_parameter("mean", Some(mean), &[channels])?;
        self.check_parameter("variance", Some(variance), &[channels])?;
        self.check_parameter("weight", weight, &[channels])?;
        self.check_parameter("bias", bias, &[channels])?;
        let view = self.channel_view();
        self.in_wide(|x| {
            let scale = variance.widened()?.try_add(eps)?.try_rsqrt()?.reshape_to(view)?;
            let y = x.try_sub(&mean.widened()?.reshape_to(view)?)?.try_mul(&scale)?;
            affine(y, weight, bias, view)
        })
    }

    /// Normalizes every block of channels (axis 1) of every example, then scales and shifts each channel.
    #[op]
    pub fn try_group_norm(
        &self,
        groups: usize,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let (channels, shape) = (self.channels()?, self.shape());
        if groups == 0 || channels % groups != 0 {
            bail!(Shape, "the {channels} channels of the input {shape} do not divide into {groups} groups");
        }
        self.check_parameter("weight", weight, &[channels])?;
        self.check_parameter("bias", bias, &[channels])?;
        self.in_wide(|x| {
            let inner: usize = shape[2..].iter().product();
            let blocks = x.reshape_to(Shape::of(&[shape[0], groups, channels / groups * inner]))?;
            let (y, ..) = standardized(&blocks, 0b100, eps)?;
            affine(y.reshape_to(shape)?, weight, bias, self.channel_view())
        })
    }

    /// x divided by its p-norm along an axis, or by `eps` where the norm is smaller. PyTorch's defaults are 2,
    /// 1 and 1e-12.
    #[op]
    pub fn try_normalize(&self, p: f64, dim: isize, eps: f64) -> Result<Tensor> {
        self.in_wide(|x| x.try_div(&x.try_norm_dim(p, dim, true)?.try_clamp(Some(eps), None)?))
    }

    /// The cosine of the angle between vectors along an axis; each length counts as at least `eps`.
    #[op]
    pub fn try_cosine_similarity(&self, other: &Tensor, dim: isize, eps: f64) -> Result<Tensor> {
        self.check_float()?;
        other.check_float()?;
        let dtype = self.dtype().promote(other.dtype());
        let shape = self.shape().broadcast(&other.shape())?;
        let wide = |t: &Tensor| t.try_to_dtype(dtype.wide())?.expand_to(shape);
        let (a, b) = (wide(self)?, wide(other)?);
        let length = |t: &Tensor| t.try_norm_dim(2.0, dim, false)?.try_clamp(Some(eps), None);
        let dot = a.try_mul(&b)?.try_sum_dim(dim, false)?;
        dot.try_div(&length(&a)?.try_mul(&length(&b)?)?)?.try_to_dtype(dtype)
    }
}
