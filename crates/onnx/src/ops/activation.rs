//! Functions of one element, with settings.

use super::Rows;
use crate::call::{Call, one};
use volta::{Result, Tensor};

pub(super) const ROWS: Rows = &[
    ("Relu", |c| one(c.x(0)?.try_relu()?)),
    ("Sigmoid", |c| one(c.x(0)?.try_sigmoid()?)),
    ("Tanh", |c| one(c.x(0)?.try_tanh()?)),
    ("LeakyRelu", |c| one(c.x(0)?.try_leaky_relu(c.float("alpha", 0.01)?)?)),
    ("Elu", |c| one(c.x(0)?.try_elu(c.float("alpha", 1.0)?)?)),
    ("Celu", |c| one(celu(&c.x(0)?, c.float("alpha", 1.0)?)?)),
    ("Selu", |c| {
        let (alpha, gamma) =
            (c.float("alpha", 1.673_263_242_354_377_2)?, c.float("gamma", 1.050_700_987_355_480_5)?);
        one(c.x(0)?.try_elu(alpha)?.try_mul(gamma)?)
    }),
    ("ThresholdedRelu", |c| {
        let x = c.x(0)?;
        one(x.try_gt(c.float("alpha", 1.0)?)?.try_where_(&x, &x.try_mul(0)?)?)
    }),
    ("HardSigmoid", |c| one(hard_sigmoid(&c.x(0)?, c.float("alpha", 0.2)?, c.float("beta", 0.5)?)?)),
    ("HardSwish", |c| {
        let x = c.x(0)?;
        one(x.try_mul(&hard_sigmoid(&x, 1.0 / 6.0, 0.5)?)?)
    }),
    ("Softplus", |c| one(softplus(&c.x(0)?)?)),
    ("Softsign", |c| one(c.x(0)?.try_softsign()?)),
    ("Mish", |c| {
        let x = c.x(0)?;
        one(x.try_mul(&softplus(&x)?.try_tanh()?)?)
    }),
    ("Swish", |c| {
        let x = c.x(0)?;
        one(x.try_mul(&x.try_mul(c.float("alpha", 1.0)?)?.try_sigmoid()?)?)
    }),
    ("SwiGLU", swiglu),
    ("Gelu", |c| {
        let x = c.x(0)?;
        one(if c.text("approximate", "none")? == "tanh" { x.try_gelu_tanh()? } else { x.try_gelu()? })
    }),
    ("PRelu", |c| {
        let (x, slope) = (c.x(0)?, c.x(1)?);
        one(x.try_lt(0)?.try_where_(&x.try_mul(&slope)?, &x)?)
    }),
    ("Shrink", |c| {
        let (x, bias, edge) = (c.x(0)?, c.float("bias", 0.0)?, c.float("lambd", 0.5)?);
        let dtype = x.dtype();
        let low = x.try_lt(-edge)?.try_where_(&x.try_add(bias)?, &x.try_mul(0)?)?;
        one(x.try_gt(edge)?.try_where_(&x.try_sub(bias)?, &low)?.try_to_dtype(dtype)?)
    }),
    ("Softmax", |c| one(over_axis(c, Tensor::try_softmax)?)),
    ("LogSoftmax", |c| one(over_axis(c, Tensor::try_log_softmax)?)),
    ("Hardmax", |c| one(over_axis(c, hardmax)?)),
];

/// ln(1 + eˣ), without overflow.
pub(super) fn softplus(x: &Tensor) -> Result<Tensor> {
    x.try_relu()?.try_add(&x.try_abs()?.try_neg()?.try_exp()?.try_log1p()?)
}

pub(super) fn hard_sigmoid(x: &Tensor, alpha: f64, beta: f64) -> Result<Tensor> {
    x.try_mul(alpha)?.try_add(beta)?.try_clamp(Some(0.0), Some(1.0))
}

fn celu(x: &Tensor, alpha: f64) -> Result<Tensor> {
    x.try_relu()?.try_add(&x.try_div(alpha)?.try_minimum(0)?.try_expm1()?.try_mul(alpha)?)
}

fn swiglu(c: &Call) -> Result<crate::call::Outputs> {
    let gate = c.x(0)?;
    one(gate.try_mul(&gate.try_mul(c.float("alpha", 1.0)?)?.try_sigmoid()?)?.try_mul(&c.x(1)?)?)
}

fn hardmax(x: &Tensor, axis: isize) -> Result<Tensor> {
    let place = x.try_argmax_dim(axis, true)?;
    let axis = x.shape().axis(axis)?;
    let mut extents = vec![1; x.rank()];
    extents[axis] = x.shape()[axis];
    let index = volta::with_device(x.device(), || Tensor::try_arange(0, extents[axis] as i64))?;
    place.try_eq(&index.try_reshape(&extents)?)?.try_to_dtype(x.dtype())
}

/// Before version 13 of the operators all axes from the given one on were one.
fn over_axis(c: &Call, f: impl Fn(&Tensor, isize) -> Result<Tensor>) -> Result<Tensor> {
    let x = c.x(0)?;
    if c.opset >= 13 {
        return f(&x, c.axis(-1)?);
    }
    let axis = c.axis(1)?;
    let at = if axis == x.rank() as isize { x.rank() } else { x.shape().axis(axis)? };
    let rows: usize = x.shape()[..at].iter().product();
    let columns: usize = x.shape()[at..].iter().product();
    f(&x.try_reshape([rows, columns])?, 1)?.try_reshape(x.shape())
}
