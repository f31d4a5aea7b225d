//! Norms of examples by themselves.

use crate::array::Array;
use crate::driver::{Parameters, check_forward};
use volta::{GroupNorm, LayerNorm, RMSNorm};
use volta_testing::test;

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Every block of `size` neighbours, less its mean if `centred`, over its deviation; scaled and shifted by position, as
/// `parameter` finds it for an element.
fn normalized(x: &Array, size: usize, eps: f64, centred: bool, scale: impl Fn(usize, f64) -> f64) -> Array {
    let mut out = x.clone();
    for (b, block) in x.data.chunks(size).enumerate() {
        let middle = if centred { mean(block) } else { 0.0 };
        let squares: Vec<f64> = block.iter().map(|v| (v - middle) * (v - middle)).collect();
        let deviation = (mean(&squares) + eps).sqrt();
        for (k, v) in block.iter().enumerate() {
            let place = b * size + k;
            out.data[place] = scale(place, (v - middle) / deviation);
        }
    }
    out
}

fn affine(p: &Parameters, place: usize, y: f64) -> f64 {
    y * p.get("weight").map_or(1.0, |w| w.data[place]) + p.get("bias").map_or(0.0, |b| b.data[place])
}

#[test]
fn layer_norm_agrees_with_loops() {
    let x = Array::waves(&[2, 3, 4], 9);
    for (what, layer, size) in [
        ("last axis", LayerNorm::new(4), 4),
        ("two axes", LayerNorm::new([3, 4]).with_eps(1e-3), 12),
        ("no bias", LayerNorm::new(4).without_bias(), 4),
        ("plain", LayerNorm::new([4]).without_affine(), 4),
    ] {
        check_forward(what, &layer, &x, |p, x| {
            normalized(x, size, layer.eps, true, |place, y| affine(p, place % size, y))
        });
    }
}

#[test]
fn rms_norm_agrees_with_loops() {
    let x = Array::waves(&[2, 3, 4], 9);
    for (what, layer) in [
        ("default", RMSNorm::new(4)),
        ("eps", RMSNorm::new([4]).with_eps(1e-2)),
        ("plain", RMSNorm::new(4).with_eps(1e-3).without_affine()),
    ] {
        let eps = layer.eps.unwrap_or(0.0);
        check_forward(what, &layer, &x, |p, x| {
            normalized(x, 4, eps, false, |place, y| affine(p, place % 4, y))
        });
    }
}

#[test]
fn group_norm_agrees_with_loops() {
    for (what, layer, shape) in [
        ("two groups", GroupNorm::new(2, 4), vec![2, 4, 3, 2]),
        ("one group", GroupNorm::new(1, 4).with_eps(1e-3), vec![2, 4, 5]),
        ("a channel each", GroupNorm::new(4, 4).without_affine(), vec![2, 4, 6]),
    ] {
        let inner: usize = shape[2..].iter().product();
        check_forward(what, &layer, &Array::waves(&shape, 9), |p, x| {
            normalized(x, 4 / layer.groups * inner, layer.eps, true, |place, y| {
                affine(p, place / inner % 4, y)
            })
        });
    }
}
