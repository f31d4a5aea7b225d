//! Transformer layers.

use crate::array::{Array, array, real, tensor};
use crate::attention::{attended, causal};
use crate::driver::{Parameters, assert_close, check, fill, value_tolerance};
use volta::{
    AttentionMask, FeedForwardActivation, Module, TransformerDecoderLayer, TransformerEncoderLayer,
    TransformerOptions,
};
use volta_testing::test;

/// Φ by its series, which converges everywhere.
fn normal_cdf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for k in 1..200 {
        term *= x * x / (2 * k + 1) as f64;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

fn norm(p: &Parameters, name: &str, x: &Array) -> Array {
    let width = x.shape[x.shape.len() - 1];
    let mut out = x.clone();
    for row in out.data.chunks_mut(width) {
        let mean = row.iter().sum::<f64>() / width as f64;
        let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / width as f64;
        for (k, v) in row.iter_mut().enumerate() {
            let bias = p.get(&format!("{name}.bias")).map_or(0.0, |b| b.data[k]);
            *v = (*v - mean) / (variance + 1e-5).sqrt() * p[&format!("{name}.weight")].data[k] + bias;
        }
    }
    out
}

fn feed_forward(p: &Parameters, o: &TransformerOptions, x: &Array) -> Array {
    let x = x.linear(&p["linear1.weight"], p.get("linear1.bias"));
    let x = match o.activation {
        FeedForwardActivation::Relu => x.map(|v| v.max(0.0)),
        FeedForwardActivation::Gelu => x.map(|v| v * normal_cdf(v)),
    };
    x.linear(&p["linear2.weight"], p.get("linear2.bias"))
}

fn residual(
    p: &Parameters,
    o: &TransformerOptions,
    name: &str,
    x: &Array,
    f: impl Fn(&Array) -> Array,
) -> Array {
    if o.norm_first { x.plus(&f(&norm(p, name, x))) } else { norm(p, name, &x.plus(&f(x))) }
}

fn every_option() -> Vec<(&'static str, TransformerOptions)> {
    let plain = TransformerOptions { dim_feedforward: 12, ..TransformerOptions::default() };
    let gelu = FeedForwardActivation::Gelu;
    vec![
        ("plain", plain),
        ("gelu, norm first", TransformerOptions { activation: gelu, norm_first: true, ..plain }),
        ("no bias", TransformerOptions { bias: false, ..plain }),
    ]
}

#[test]
fn an_encoder_layer_agrees_with_loops() {
    let x = Array::waves(&[2, 4, 8], 50);
    for (what, options) in every_option() {
        let layer = TransformerEncoderLayer::with_options(8, 2, options);
        layer.eval();
        for (hidden, mask) in [(false, AttentionMask::default()), (true, AttentionMask::causal())] {
            check(
                &format!("{what}, causal: {hidden}"),
                &layer,
                std::slice::from_ref(&x),
                |x| layer.run(&x[0], mask),
                |p, x| {
                    let x = residual(p, &options, "norm1", &x[0], |x| {
                        attended(p, "self_attn.", [x; 3], [2, 2], None, &|b, h, t, s| {
                            if hidden { causal(b, h, t, s) } else { 0.0 }
                        })
                    });
                    residual(p, &options, "norm2", &x, |x| feed_forward(p, &options, x))
                },
            );
        }
    }
}

#[test]
fn a_decoder_layer_agrees_with_loops() {
    let (x, memory) = (Array::waves(&[2, 3, 8], 51), Array::waves(&[2, 5, 8], 52));
    for (what, options) in every_option() {
        let layer = TransformerDecoderLayer::with_options(8, 2, options);
        layer.eval();
        check(
            what,
            &layer,
            &[x.clone(), memory.clone()],
            |x| layer.run(&x[0], &x[1], AttentionMask::causal(), AttentionMask::default()),
            |p, all| {
                let x = residual(p, &options, "norm1", &all[0], |x| {
                    attended(p, "self_attn.", [x; 3], [2, 2], None, &causal)
                });
                let x = residual(p, &options, "norm2", &x, |x| {
                    attended(p, "multihead_attn.", [x, &all[1], &all[1]], [2, 2], None, &|_, _, _, _| 0.0)
                });
                residual(p, &options, "norm3", &x, |x| feed_forward(p, &options, x))
            },
        );
    }
}

#[test]
fn the_batch_may_come_second() {
    let options = TransformerOptions { dim_feedforward: 12, ..TransformerOptions::default() };
    let first = TransformerEncoderLayer::with_options(8, 2, options);
    let second =
        TransformerEncoderLayer::with_options(8, 2, TransformerOptions { batch_first: false, ..options });
    for layer in [&first, &second] {
        layer.eval();
        fill(layer);
    }
    let x = tensor(&Array::waves(&[2, 4, 8], 50));
    let turned = second.forward(&x.transpose(0, 1)).transpose(0, 1);
    assert_close("turned", &array(&turned), &array(&first.forward(&x)), value_tolerance());
}

#[test]
fn dropout_acts_in_training_only() {
    let layer = TransformerEncoderLayer::with_options(
        8,
        2,
        TransformerOptions { dropout: 0.5, ..Default::default() },
    );
    layer.to_dtype(real());
    let x = tensor(&Array::waves(&[2, 4, 8], 50));
    let run = || array(&layer.forward(&x)).data;
    assert_ne!(run(), run());
    layer.eval();
    assert_eq!(run(), run());
}
