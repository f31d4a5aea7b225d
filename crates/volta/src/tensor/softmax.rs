//! The softmax family: exponentials that are divided by their sum, and the logarithm of that sum.

use super::Tensor;
use crate::error::Result;
use crate::graph::no_grad;
use crate::shape::Dims;
use volta_derive::op;

/// The elements less the largest along an axis, so that no exponential overflows. The largest is a constant to
/// autograd: whatever is taken away here, the result is the same.
pub(crate) fn shifted(x: &Tensor, dim: isize) -> Result<Tensor> {
    x.shape().axis(dim)?;
    if x.numel() == 0 {
        return Ok(x.clone());
    }
    x.try_sub(&no_grad(|| x.try_max_dim(dim, true))?)
}

impl Tensor {
    /// eˣ along an axis, divided by their sum.
    ///
    /// ```
    /// use volta::Tensor;
    /// let x = Tensor::vector(&[1.0, 1.0]);
    /// assert_eq!(x.softmax(0).to_vec::<f32>(), [0.5, 0.5]);
    /// ```
    #[op]
    pub fn try_softmax(&self, dim: isize) -> Result<Tensor> {
        self.in_wide(|x| {
            let e = shifted(x, dim)?.try_exp()?;
            // One division a row, not one an element.
            e.try_mul(e.try_sum_dim(dim, true)?.try_recip()?)
        })
    }

    /// The logarithm of [`softmax`](Self::softmax), exact also where that is nearly zero.
    #[op]
    pub fn try_log_softmax(&self, dim: isize) -> Result<Tensor> {
        self.in_wide(|x| {
            let x = shifted(x, dim)?;
            x.try_sub(&x.try_exp()?.try_sum_dim(dim, true)?.try_log()?)
        })
    }

    /// The logarithm of the sum of eˣ over axes, without overflow. Of nothing but −∞, or of nothing, it is −∞.
    #[op]
    pub fn try_logsumexp(&self, axes: impl Into<Dims>, keepdim: bool) -> Result<Tensor> {
        let (x, axes) = (self.floated()?, axes.into());
        let (shape, mask) = (x.shape(), x.shape().axes(&axes)?);
        let kept = x.in_wide(|x| {
            if x.numel() == 0 {
                return x.try_exp()?.try_sum_dim(&axes[..], true)?.try_log();
            }
            let peak = no_grad(|| {
                let peak = x.try_max_dim(&axes[..], true)?;
                // Taking an infinity away would make NaN of itself.
                peak.try_abs()?.try_eq(f64::INFINITY)?.try_where_(0.0, &peak)
            })?;
            x.try_sub(&peak)?.try_exp()?.try_sum_dim(&axes[..], true)?.try_log()?.try_add(&peak)
        })?;
        if keepdim { Ok(kept) } else { kept.reshape_to(shape.without(mask)) }
    }
}
