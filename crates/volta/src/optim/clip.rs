//! Keeping gradients from being too large.

use super::multi_tensor_sum::sum_of_all;
use crate::autograd::no_grad;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::tensor::Tensor;
use volta_derive::op;

/// Makes the gradients of all parameters together no longer than `max_norm`, as one vector; how long they were
/// before. Nothing is computed or read back here: the norm is one more value of the step's plan.
///
/// A norm that is infinite or NaN makes the gradients NaN, as in PyTorch; a [`GradScaler`](crate::GradScaler) skips
/// such steps.
///
/// ```
/// use volta::{Tensor, optim::clip_grad_norm};
/// let w = Tensor::vector(&[3.0, 4.0]).requires_grad(true);
/// (w.square().sum() * 0.5).backward();
/// let norm = clip_grad_norm(&[w.clone()], 1.0);
/// assert_eq!(norm.item::<f32>(), 5.0);
/// assert!((w.grad().unwrap().square().sum().item::<f32>() - 1.0).abs() < 1e-5);
/// ```
#[op]
pub fn try_clip_grad_norm(parameters: &[Tensor], max_norm: f64) -> Result<Tensor> {
    if max_norm.is_nan() || max_norm < 0.0 {
        bail!(Argument, "gradients cannot be as long as {max_norm}");
    }
    no_grad(|| {
        let gradients: Vec<Tensor> = parameters.iter().filter_map(Tensor::grad).collect();
        let wide = |g: &Tensor| g.try_to_dtype(if g.dtype() == DType::F64 { DType::F64 } else { DType::F32 });
        let squares = gradients.iter().map(|g| wide(g)?.try_square()).collect::<Result<Vec<_>>>()?;
        let Some(total) = sum_of_all(&squares)? else { return Ok(Tensor::scalar(0.0)) };
        let norm = total.try_sqrt()?;
        shorten(parameters, &norm, max_norm)?;
        Ok(norm)
    })
}

/// Makes gradients shorter that are together as long as `norm`, if that is more than `max_norm`.
pub(crate) fn shorten(parameters: &[Tensor], norm: &Tensor, max_norm: f64) -> Result<()> {
    // 10⁻⁶ as PyTorch has it.
    let factor = norm.try_add(1e-6)?.try_recip()?.try_mul(max_norm)?.try_minimum(1.0)?;
    for (p, g) in parameters.iter().filter_map(|p| Some((p, p.grad()?))) {
        p.set_grad(Some(g.in_wide(|g| g.try_mul(&factor.try_to_dtype(g.dtype())?))?));
    }
    Ok(())
}

/// Brings every element of every gradient between −`limit` and `limit`; NaN stays NaN.
#[op]
pub fn try_clip_grad_value(parameters: &[Tensor], limit: f64) -> Result<()> {
    if limit.is_nan() || limit < 0.0 {
        bail!(Argument, "gradients cannot lie between -{limit} and {limit}");
    }
    no_grad(|| {
        for (p, g) in parameters.iter().filter_map(|p| Some((p, p.grad()?))) {
            p.set_grad(Some(g.try_maximum(-limit)?.try_minimum(limit)?));
        }
        Ok(())
    })
}
