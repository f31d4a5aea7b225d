//! Activations as layers.

use crate::array::Array;
use crate::driver::check_forward;
use volta::{ELU, GELU, LeakyReLU, Module, SiLU, Sigmoid, Softmax, Tanh};
use volta_testing::test;

type Formula = Box<dyn Fn(f64) -> f64>;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Φ by the series of the error function, which converges fast for the small numbers here.
fn normal_distribution(x: f64) -> f64 {
    let z = x / 2f64.sqrt();
    let mut term = z;
    let mut sum = z;
    for n in 1..60 {
        term *= -z * z / n as f64;
        sum += term / (2 * n + 1) as f64;
    }
    0.5 + sum / std::f64::consts::PI.sqrt()
}

/// `e^x` over its sum along the axis whose neighbours are `stride` apart.
fn softmax(x: &Array, extent: usize, stride: usize) -> Array {
    let mut out = x.clone();
    for (k, y) in out.data.iter_mut().enumerate() {
        let first = k - k / stride % extent * stride;
        let sum: f64 = (0..extent).map(|i| x.data[first + i * stride].exp()).sum();
        *y = x.data[k].exp() / sum;
    }
    out
}

#[test]
fn activations_agree_with_their_formulas() {
    let x = Array::waves(&[3, 4, 5], 9).map(|v| 4.0 * v);
    let leaky = |slope: f64| move |v: f64| if v > 0.0 { v } else { slope * v };
    let elu = |alpha: f64| move |v: f64| if v > 0.0 { v } else { alpha * (v.exp() - 1.0) };
    let cases: Vec<(&str, Box<dyn Module>, Formula)> = vec![
        ("GELU", Box::new(GELU), Box::new(|v| v * normal_distribution(v))),
        ("SiLU", Box::new(SiLU), Box::new(|v| v * sigmoid(v))),
        ("Sigmoid", Box::new(Sigmoid), Box::new(sigmoid)),
        ("Tanh", Box::new(Tanh), Box::new(|v| 2.0 * sigmoid(2.0 * v) - 1.0)),
        ("LeakyReLU", Box::new(LeakyReLU::default()), Box::new(leaky(0.01))),
        ("LeakyReLU(0.3)", Box::new(LeakyReLU(0.3)), Box::new(leaky(0.3))),
        ("ELU", Box::new(ELU::default()), Box::new(elu(1.0))),
        ("ELU(0.7)", Box::new(ELU(0.7)), Box::new(elu(0.7))),
    ];
    for (what, layer, formula) in cases {
        assert!(layer.parameters().is_empty(), "{what}");
        check_forward(what, &layer, &x, |_, x| x.map(&formula));
    }
}

#[test]
fn softmax_agrees_with_its_formula_over_every_axis() {
    let x = Array::waves(&[3, 4, 5], 9).map(|v| 4.0 * v);
    for (what, layer, extent, stride) in [
        ("the last axis", Softmax::default(), 5, 1),
        ("axis 1", Softmax(1), 4, 5),
        ("axis 0", Softmax(0), 3, 20),
        ("axis -2", Softmax(-2), 4, 5),
    ] {
        check_forward(what, &layer, &x, |_, x| softmax(x, extent, stride));
    }
}
