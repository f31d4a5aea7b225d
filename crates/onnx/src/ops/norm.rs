//! Norms.

use super::Rows;
use crate::call::{Call, Outputs, one, size};
use volta::{DType, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("BatchNormalization", batch_norm),
    ("InstanceNormalization", |c| {
        let x = c.x(0)?;
        let y = standardized(&x, &(2..x.rank() as isize).collect::<Vec<_>>(), c.float("epsilon", 1e-5)?)?.0;
        let view = channels(&x);
        one(y.try_mul(&c.x(1)?.try_reshape(&view)?)?.try_add(&c.x(2)?.try_reshape(&view)?)?)
    }),
    ("GroupNormalization", |c| {
        let (x, groups) = (c.x(0)?, size(c.int("num_groups", 1)?)?);
        let (scale, bias) = (c.x(1)?, c.x(2)?);
        let eps = c.float("epsilon", 1e-5)?;
        if scale.numel() == x.size(1) {
            return one(x.try_group_norm(groups, Some(&scale), Some(&bias), eps)?);
        }
        // Before version 21 there is one number a group.
        let y = x.try_group_norm(groups, None, None, eps)?;
        let each =
            |t: &Tensor| t.try_repeat_interleave(x.size(1) / groups.max(1), None)?.try_reshape(&channels(&x));
        one(y.try_mul(&each(&scale)?)?.try_add(&each(&bias)?)?)
    }),
    ("LayerNormalization", |c| {
        let x = c.x(0)?;
        let axis = x.shape().axis(c.axis(-1)?)?;
        let (eps, scale, bias) = (c.float("epsilon", 1e-5)?, c.x(1)?, c.maybe(2)?);
        let wants_more = c.node.outputs.len() > 1;
        let normal = &x.shape()[axis..];
        let fits = |t: &Tensor| t.shape() == *normal;
        if !wants_more && fits(&scale) && bias.as_ref().is_none_or(fits) {
            return one(x.try_layer_norm(normal, Some(&scale), bias.as_ref(), eps)?);
        }
        let axes: Vec<isize> = (axis as isize..x.rank() as isize).collect();
        let (y, mean, inverse) = standardized(&x, &axes, eps)?;
        let y = y.try_mul(&scale)?;
        let y = match bias {
            Some(bias) => y.try_add(&bias)?,
            None => y,
        };
        Ok(vec![y.try_to_dtype(x.dtype())?.into(), mean.into(), inverse.into()])
    }),
    ("RMSNormalization", |c| {
        let (x, scale) = (c.x(0)?, c.x(1)?);
        let axis = x.shape().axis(c.axis(-1)?)?;
        let axes: Vec<isize> = (axis as isize..x.rank() as isize).collect();
        let wide = x.try_to_dtype(wide(x.dtype()))?;
        let root = wide
            .try_square()?
            .try_mean_dim(&axes[..], true)?
            .try_add(c.float("epsilon", 1e-5)?)?
            .try_rsqrt()?;
        one(wide.try_mul(&root)?.try_to_dtype(x.dtype())?.try_mul(&scale)?)
    }),
    ("MeanVarianceNormalization", |c| {
        let x = c.x(0)?;
        let axes: Vec<isize> =
            c.int_list("axes")?.unwrap_or_else(|| vec![0, 2, 3]).iter().map(|&k| k as isize).collect();
        let apart = x.try_sub(&x.try_mean_dim(&axes[..], true)?)?;
        one(apart.try_div(&apart.try_square()?.try_mean_dim(&axes[..], true)?.try_sqrt()?.try_add(1e-9)?)?)
    }),
    ("LpNormalization", |c| {
        let (x, axis, p) = (c.x(0)?, c.axis(-1)?, c.int("p", 2)?);
        let length = if p == 1 {
            x.try_abs()?.try_sum_dim(axis, true)?
        } else {
            x.try_square()?.try_sum_dim(axis, true)?.try_sqrt()?
        };
        // What has no length stays zero.
        let divisor = length.try_eq(0)?.try_where_(length.ones_like(), &length)?;
        one(x.try_div(&divisor)?)
    }),
    ("LRN", |c| {
        let (x, n) = (c.x(0)?, size(c.int("size", 1)?)?);
        let (alpha, beta, bias) = (c.float("alpha", 1e-4)?, c.float("beta", 0.75)?, c.float("bias", 1.0)?);
        let before = n.saturating_sub(1) / 2;
        let mut pads = vec![(0, 0); x.rank()];
        pads[1] = (before, n.saturating_sub(1) - before);
        let sums = x.try_square()?.try_pad(&pads, 0.0)?.try_windows(1, n, 1, 1)?.try_sum_dim(-1, false)?;
        one(x.try_div(&sums.try_mul(alpha / n as f64)?.try_add(bias)?.try_pow(beta)?)?)
    }),
];

/// The type in which halves are summed.
fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// The view in which a vector of channels meets images.
fn channels(x: &Tensor) -> Vec<isize> {
    let mut view = vec![1; x.rank()];
    view[1] = -1;
    view
}

/// Less the mean, over the deviation; the mean, and one over the deviation.
fn standardized(x: &Tensor, axes: &[isize], eps: f64) -> Result<(Tensor, Tensor, Tensor)> {
    let x = x.try_to_dtype(wide(x.dtype()))?;
    let mean = x.try_mean_dim(axes, true)?;
    let apart = x.try_sub(&mean)?;
    let inverse = apart.try_square()?.try_mean_dim(axes, true)?.try_add(eps)?.try_rsqrt()?;
    Ok((apart.try_mul(&inverse)?, mean, inverse))
}

fn batch_norm(c: &Call) -> Result<Outputs> {
    let x = c.x(0)?;
    let (scale, bias, mean, variance) = (c.x(1)?, c.x(2)?, c.x(3)?, c.x(4)?);
    let eps = c.float("epsilon", 1e-5)?;
    if !c.flag("training_mode", false)? {
        return one(x.try_batch_norm_eval(&mean, &variance, Some(&scale), Some(&bias), eps)?);
    }
    let momentum = c.float("momentum", 0.9)?;
    let axes: Vec<isize> = (0..x.rank() as isize).filter(|&k| k != 1).collect();
    let (y, seen, inverse) = standardized(&x, &axes, eps)?;
    let spread = inverse.try_square()?.try_recip()?.try_sub(eps)?;
    let view = channels(&x);
    let y = y.try_mul(&scale.try_reshape(&view)?)?.try_add(&bias.try_reshape(&view)?)?;
    let running = |old: &Tensor, new: &Tensor| {
        old.try_mul(momentum)?.try_add(&new.try_reshape(old.shape())?.try_mul(1.0 - momentum)?)
    };
    if mean.rank() != 1 {
        bail!(Shape, "the running mean has shape {}", mean.shape());
    }
    Ok(vec![
        y.try_to_dtype(x.dtype())?.into(),
        running(&mean, &seen)?.into(),
        running(&variance, &spread)?.into(),
    ])
}
