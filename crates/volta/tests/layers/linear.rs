//! Fully connected layers.

use crate::array::Array;
use crate::driver::check_forward;
use volta::{Linear, Module, Tensor};
use volta_testing::test;

#[test]
fn linear_agrees_with_loops() {
    for (what, shape, bias) in [
        ("rows", &[5, 3][..], true),
        ("no bias", &[5, 3], false),
        ("one row", &[3], true),
        ("more axes", &[2, 4, 3], true),
    ] {
        let layer = Linear::new(3, 4, bias);
        assert_eq!(layer.parameters().len(), if bias { 2 } else { 1 });
        let x = Array::waves(shape, 9);
        check_forward(what, &layer, &x, |p, x| x.linear(&p["weight"], p.get("bias")));
    }
}

/// PyTorch's: uniform within ±1/√inputs, weights (outputs × inputs) and biases alike.
#[test]
fn first_values_of_linear_fill_the_range_of_its_inputs() {
    let (inputs, outputs) = (64, 512);
    let layer = Linear::new(inputs, outputs, true);
    assert_eq!(layer.weight.shape()[..], [outputs, inputs]);
    let bias = layer.bias.as_ref().expect("a bias");
    assert_eq!(bias.shape()[..], [outputs]);
    let bound = 1.0 / 8.0;
    for (what, t) in [("weight", &layer.weight as &Tensor), ("bias", bias)] {
        let values = t.to_vec::<f64>();
        let count = values.len() as f64;
        let largest = values.iter().fold(0f64, |m, v| m.max(v.abs()));
        assert!((0.95 * bound..=bound).contains(&largest), "{what}: {largest}");
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / count;
        // Five deviations of the mean of uniform numbers, and a wide range for their variance of a third of bound².
        assert!(mean.abs() < 5.0 * bound / (3.0 * count).sqrt(), "{what}: {mean}");
        assert!((variance * 3.0 / (bound * bound) - 1.0).abs() < 0.25, "{what}: {variance}");
    }
}
