//! Activations: PyTorch's names, formulas and gradients at the corners. Each is a few elementwise ops, which
//! the planner fuses with what stands around them.

use super::Tensor;
use crate::dtype::{DType, Scalar};
use crate::error::{Result, bail};
use crate::shape::Shape;
use volta_derive::op;

/// Beyond this ln(1 + eˣ) is x in every type.
const SOFTPLUS_IS_LINEAR: f64 = 40.0;

/// ln(1 + eˣ); the unused branch sees 0, where its exponential and so its gradient are finite.
fn softplus(x: &Tensor, threshold: f64) -> Result<Tensor> {
    let linear = x.try_gt(threshold)?;
    let curve = linear.try_where_(0.0, x)?.try_exp()?.try_log1p()?;
    linear.try_where_(x, &curve)
}

/// min(max(x, low), high) whose gradient is zero at the bounds too.
fn clipped(x: &Tensor, low: f64, high: f64) -> Result<Tensor> {
    x.try_le(low)?.try_where_(low, &x.try_ge(high)?.try_where_(high, x)?)
}

/// ln σ(x).
pub(crate) fn log_sigmoid(x: &Tensor) -> Result<Tensor> {
    softplus(&x.try_neg()?, SOFTPLUS_IS_LINEAR)?.try_neg()
}

/// A bound as a number that keeps integers integers where it is one, and that their type holds.
fn bound(value: f64, dtype: DType) -> Scalar {
    let is_one = dtype.is_int() && value.fract() == 0.0;
    if is_one { Scalar::Int(dtype.nearest(value as i64)) } else { Scalar::Float(value) }
}

impl Tensor {
    /// x·Φ(x), with the exact Φ.
    #[op]
    pub fn try_gelu(&self) -> Result<Tensor> {
        self.in_wide(|x| {
            let phi = x.try_mul(std::f64::consts::FRAC_1_SQRT_2)?.try_erf()?.try_add(1.0)?;
            x.try_mul(0.5)?.try_mul(&phi)
        })
    }

    /// [`gelu`](Self::gelu) by the hyperbolic tangent (PyTorch's `approximate="tanh"`), as x·σ(2y), which is x·(1 + tanh y) / 2
    /// but keeps its precision below zero.
    #[op]
    pub fn try_gelu_tanh(&self) -> Result<Tensor> {
        self.in_wide(|x| {
            let slope = (8.0 / std::f64::consts::PI).sqrt();
            let twice = x.try_square()?.try_mul(0.044715 * slope)?.try_add(slope)?.try_mul(x)?;
            x.try_mul(&twice.try_sigmoid()?)
        })
    }

    /// x·σ(x), also called swish.
    #[op]
    pub fn try_silu(&self) -> Result<Tensor> {
        self.in_wide(|x| x.try_mul(&x.try_sigmoid()?))
    }

    /// ln(1 + e^(βx)) / β, and x itself where βx is above `threshold`. PyTorch's defaults are 1 and 20.
    #[op]
    pub fn try_softplus(&self, beta: f64, threshold: f64) -> Result<Tensor> {
        self.in_wide(|x| {
            let scaled = x.try_mul(beta)?;
            let linear = scaled.try_gt(threshold)?;
            let curve = linear.try_where_(0.0, &scaled)?.try_exp()?.try_log1p()?;
            linear.try_where_(x, &curve.try_div(beta)?)
        })
    }

    /// x above zero, α·(eˣ − 1) below.
    #[op]
    pub fn try_elu(&self, alpha: f64) -> Result<Tensor> {
        self.in_wide(|x| {
            let positive = x.try_gt(0.0)?;
            let curve = positive.try_where_(0.0, x)?.try_expm1()?.try_mul(alpha)?;
            positive.try_where_(x, &curve)
        })
    }

    /// x above zero, `slope`·x below. PyTorch's default slope is 0.01.
    #[op]
    pub fn try_leaky_relu(&self, slope: f64) -> Result<Tensor> {
        self.in_wide(|x| x.try_gt(0.0)?.try_where_(x, &x.try_mul(slope)?))
    }

    /// x above zero, weight·x below, with one weight or one for every channel (axis 1).
    #[op]
    pub fn try_prelu(&self, weight: &Tensor) -> Result<Tensor> {
        let (x, w) = (self.shape(), weight.shape());
        let channels = if x.rank() > 1 { x[1] } else { 1 };
        if w.rank() > 1 || (weight.numel() != 1 && weight.numel() != channels) {
            bail!(
                Shape,
                "the weight has shape {w}, and the input {x} has {channels} channels: one weight or one a channel is needed"
            );
        }
        if weight.dtype() != self.dtype() {
            bail!(
                DType,
                "the weight is {} and the input {}: both must be the same float type",
                weight.dtype(),
                self.dtype()
            );
        }
        let mut extents = vec![1; x.rank()];
        if weight.numel() != 1 {
            extents[1] = channels;
        }
        let weight = weight.reshape_to(Shape::of(&extents))?.widened()?;
        self.in_wide(|x| x.try_gt(0.0)?.try_where_(x, &x.try_mul(&weight)?))
    }

    /// x held between two bounds, where its gradient is zero. PyTorch's defaults are −1 and 1.
    #[op]
    pub fn try_hardtanh(&self, min: f64, max: f64) -> Result<Tensor> {
        if min > max {
            bail!(Argument, "the lower bound {min} is above the upper bound {max}");
        }
        self.in_wide(|x| clipped(x, min, max))
    }

    /// x held between 0 and 6.
    #[op]
    pub fn try_relu6(&self) -> Result<Tensor> {
        self.in_wide(|x| clipped(x, 0.0, 6.0))
    }

    /// (x + 3) / 6 held between 0 and 1.
    #[op]
    pub fn try_hardsigmoid(&self) -> Result<Tensor> {
        self.in_wide(|x| clipped(&x.try_add(3.0)?, 0.0, 6.0)?.try_div(6.0))
    }

    /// x·hardsigmoid(x).
    #[op]
    pub fn try_hardswish(&self) -> Result<Tensor> {
        self.in_wide(|x| x.try_mul(&clipped(&x.try_add(3.0)?, 0.0, 6.0)?)?.try_div(6.0))
    }

    /// x·tanh(ln(1 + eˣ)).
    #[op]
    pub fn try_mish(&self) -> Result<Tensor> {
        self.in_wide(|x| x.try_mul(&softplus(x, SOFTPLUS_IS_LINEAR)?.try_tanh()?))
    }

    /// x / (1 + |x|).
    #[op]
    pub fn try_softsign(&self) -> Result<Tensor> {
        self.in_wide(|x| x.try_div(&x.try_abs()?.try_add(1.0)?))
    }

    /// ln σ(x), exact where σ(x) is nearly 0 or 1.
    #[op]
    pub fn try_log_sigmoid(&self) -> Result<Tensor> {
        self.in_wide(log_sigmoid)
    }

    /// Tangent of radians.
    #[op]
    pub fn try_tan(&self) -> Result<Tensor> {
        self.floated()?.upcast()?.in_wide(|x| x.try_sin()?.try_div(&x.try_cos()?))
    }

    /// x held between bounds, of which one may be missing. The gradient is 1 inside, 0 at the bounds and outside. Where
    /// the lower bound is above the upper one, everything becomes the upper one.
    ///
    /// ```
    /// use volta::Tensor;
    /// let x = Tensor::vector(&[-2.0, 0.5, 2.0]);
    /// assert_eq!(x.clamp(Some(-1.0), Some(1.0)).to_vec::<f32>(), [-1.0, 0.5, 1.0]);
    /// ```
    #[op]
    pub fn try_clamp(&self, min: Option<f64>, max: Option<f64>) -> Result<Tensor> {
        let dtype = self.dtype();
        if dtype == DType::Bool {
            bail!(DType, "bool is not a number: convert it with to_dtype");
        }
        match (min, max) {
            (None, None) => bail!(Argument, "at least one of the two bounds is needed"),
            (Some(min), Some(max)) if min > max => {
                let max = bound(max, dtype);
                self.try_le(max)?.try_where_(max, &self.try_gt(max)?.try_where_(max, self)?)
            }
            _ => {
                let mut x = self.clone();
                if let Some(min) = min.map(|m| bound(m, dtype)) {
                    x = self.try_le(min)?.try_where_(min, &x)?;
                }
                if let Some(max) = max.map(|m| bound(m, dtype)) {
                    x = self.try_ge(max)?.try_where_(max, &x)?;
                }
                Ok(x)
            }
        }
    }
}
