//! Elementwise ops for random programs: bounded, so that long chains neither blow up nor vanish.

use crate::reference::sigmoid;
use volta::Tensor;

pub type Unary = (&'static str, fn(&Tensor) -> Tensor, fn(f64) -> f64);

pub const SMOOTH: &[Unary] = &[
    ("tanh", Tensor::tanh, f64::tanh),
    ("sigmoid", Tensor::sigmoid, sigmoid),
    ("sin", Tensor::sin, f64::sin),
    ("cos", Tensor::cos, f64::cos),
    ("neg", Tensor::neg, |x| -x),
    ("x * 0.7 + 0.1", |x| x * 0.7 + 0.1, |x| x * 0.7 + 0.1),
    ("1.5 - x", |x| 1.5 - x, |x| 1.5 - x),
    ("exp(-x²)", |x| x.square().neg().exp(), |x| (-x * x).exp()),
    ("ln(1 + x²)", |x| x.square().log1p(), |x| (x * x).ln_1p()),
    ("√(x² + 1)", |x| (x.square() + 1.0).sqrt(), |x| (x * x + 1.0).sqrt()),
    ("1 / (x² + 1)", |x| (x.square() + 1.0).recip(), |x| 1.0 / (x * x + 1.0)),
    ("gelu", Tensor::gelu, |x| 0.5 * x * (1.0 + crate::reference::erf(x / 2f64.sqrt()))),
];

/// With corners, away from zero: a value that is zero but for rounding must not decide anything.
pub const KINKED: &[Unary] = &[
    ("relu(x + 0.0137)", |x| (x + 0.0137).relu(), |x| (x + 0.0137).max(0.0)),
    ("|x - 0.0271|", |x| (x - 0.0271).abs(), |x| (x - 0.0271).abs()),
    ("min(x, 0.6123)", |x| x.minimum(0.6123), |x| x.min(0.6123)),
    ("max(x, -0.3571)", |x| x.maximum(-0.3571), |x| x.max(-0.3571)),
    (
        "x where x > 0.1719, else x / 8 + 0.1504125",
        |x| x.gt(0.1719).where_(x, x * 0.125 + 0.150_412_5),
        |x| {
            if x > 0.1719 { x } else { x * 0.125 + 0.150_412_5 }
        },
    ),
];

pub type Binary = (&'static str, fn(&Tensor, &Tensor) -> Tensor, fn(f64, f64) -> f64);

pub const PAIRS: &[Binary] = &[
    ("(a + b) / 2", |a, b| (a + b) * 0.5, |a, b| (a + b) * 0.5),
    ("a - b / 2", |a, b| a - b * 0.5, |a, b| a - b * 0.5),
    ("tanh(a)·b", |a, b| a.tanh() * b, |a, b| a.tanh() * b),
    ("a / (1 + b²)", |a, b| a / (b.square() + 1.0), |a, b| a / (b * b + 1.0)),
    ("sin(a·b)", |a, b| (a * b).sin(), |a, b| (a * b).sin()),
];
