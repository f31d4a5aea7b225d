//! Activations and what else is made of a few elementwise ops.

use crate::reference::{Array, erf, sigmoid};
use crate::table::*;
use volta::Tensor;
use volta_testing::test;

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn rows() -> Vec<Row> {
    const R: Values = Between(-3.0, 3.0);
    /// Off the corners at 0, ±1 and ±3.
    const OFF: Values = OffIntegers;
    type Entry = (&'static str, fn(&Tensor) -> Tensor, fn(f64) -> f64, Values);
    let table: &[Entry] = &[
        ("gelu", Tensor::gelu, |x| 0.5 * x * (1.0 + erf(x / 2f64.sqrt())), R),
        (
            "gelu_tanh",
            Tensor::gelu_tanh,
            |x| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh()),
            R,
        ),
        ("silu", Tensor::silu, |x| x * sigmoid(x), R),
        (
            "softplus(1, 20)",
            |x| x.softplus(1.0, 20.0),
            |x| if x > 20.0 { x } else { softplus(x) },
            Between(-30.0, 30.0),
        ),
        (
            "softplus(2, 1)",
            |x| x.softplus(2.0, 1.0),
            |x| if 2.0 * x > 1.0 { x } else { softplus(2.0 * x) / 2.0 },
            OFF,
        ),
        ("elu(0.7)", |x| x.elu(0.7), |x| if x > 0.0 { x } else { 0.7 * x.exp_m1() }, OFF),
        ("leaky_relu(0.1)", |x| x.leaky_relu(0.1), |x| if x > 0.0 { x } else { 0.1 * x }, OFF),
        ("hardtanh(-1, 2)", |x| x.hardtanh(-1.0, 2.0), |x| x.clamp(-1.0, 2.0), OFF),
        ("relu6", Tensor::relu6, |x| x.clamp(0.0, 6.0), Between(0.5, 5.5)),
        ("relu6 outside", |x| x.mul(10.0).relu6(), |x| (10.0 * x).clamp(0.0, 6.0), OFF),
        ("hardsigmoid", Tensor::hardsigmoid, |x| (x + 3.0).clamp(0.0, 6.0) / 6.0, OFF),
        ("hardswish", Tensor::hardswish, |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0, OFF),
        ("mish", Tensor::mish, |x| x * softplus(x).tanh(), R),
        ("softsign", Tensor::softsign, |x| x / (1.0 + x.abs()), AwayFromZero(0.2, 3.0)),
        ("log_sigmoid", Tensor::log_sigmoid, |x| -softplus(-x), Between(-30.0, 30.0)),
        ("tan", Tensor::tan, f64::tan, Between(-1.2, 1.2)),
        ("clamp(-1, 2)", |x| x.clamp(Some(-1.0), Some(2.0)), |x| x.clamp(-1.0, 2.0), OFF),
        ("clamp(-1, none)", |x| x.clamp(Some(-1.0), None), |x| x.max(-1.0), OFF),
        ("clamp(none, 2)", |x| x.clamp(None, Some(2.0)), |x| x.min(2.0), OFF),
        ("clamp(2, -1)", |x| x.clamp(Some(2.0), Some(-1.0)), |_| -1.0, OFF),
    ];
    let mut rows: Vec<Row> = table
        .iter()
        .map(|&(name, call, reference, values)| {
            row(name, move |x| call(&x[0]), move |x| x[0].map(reference))
                .cases(&[&[&[3, 5]], &[&[]], &[&[0, 2]], &[&[2, 1, 3]], &[&[519]]])
                .values(&[values])
                .slack(2.0)
                .exact()
        })
        .collect();
    // A bound below zero is not for unsigned numbers.
    for (lower, dtypes) in [(-1.0, &INTS[..2]), (1.0, INTS)] {
        rows.push(
            row(
                format!("clamp({lower}, 2) of integers"),
                move |x| x[0].clamp(Some(lower), Some(2.0)),
                move |x| x[0].map(|v| v.clamp(lower, 2.0)),
            )
            .case(&[&[20]])
            .values(&[Between(0.0, 5.0)])
            .dtypes(dtypes)
            .flat()
            .exact(),
        );
    }
    let prelu = |x: &[Array]| {
        let mut shape = vec![1; x[0].rank()];
        if x[1].numel() > 1 {
            shape[1] = x[1].numel();
        }
        let slope = x[1].reshape(&shape).broadcast_to(&x[0].shape);
        x[0].zip(&slope, |v, w| if v > 0.0 { v } else { w * v })
    };
    rows.push(
        row("prelu", |x| x[0].prelu(&x[1]), prelu)
            .cases(&[&[&[2, 3, 4], &[3]], &[&[2, 3], &[1]], &[&[4], &[1]]])
            .values(&[AwayFromZero(0.2, 2.0), Between(0.1, 0.5)]),
    );
    rows
}

checks!(rows());
