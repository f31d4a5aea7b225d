//! Multi-head attention and rotary positions.

use crate::array::{Array, array, real, tensor};
use crate::driver::{Parameters, assert_close, check, check_forward, value_tolerance};
use volta::{AttentionMask, Module, MultiHeadAttention, MultiHeadOptions, Rotary, Tensor};
use volta_testing::test;

/// What is added to the score of (batch, head, query, key).
pub type Bias<'a> = &'a dyn Fn(usize, usize, usize, usize) -> f64;

pub fn causal(_: usize, _: usize, query: usize, key: usize) -> f64 {
    if key <= query { 0.0 } else { f64::NEG_INFINITY }
}

/// Turns the pairs of a vector at a position.
fn turned(v: &[f64], position: f64, rotary: Rotary) -> Vec<f64> {
    let half = v.len() / 2;
    let mut out = v.to_vec();
    for i in 0..half {
        let angle = position * rotary.base.powf(-2.0 * i as f64 / v.len() as f64);
        let (a, b) = if rotary.interleaved { (2 * i, 2 * i + 1) } else { (i, half + i) };
        out[a] = v[a] * angle.cos() - v[b] * angle.sin();
        out[b] = v[a] * angle.sin() + v[b] * angle.cos();
    }
    out
}

/// Attention by its formula. Parameters are found under `prefix`.
pub fn attended(
    p: &Parameters,
    prefix: &str,
    [q, k, v]: [&Array; 3],
    [heads, kv_heads]: [usize; 2],
    rotary: Option<Rotary>,
    bias: Bias<'_>,
) -> Array {
    let name = |n: &str| format!("{prefix}{n}");
    let weight = &p[&name("in_proj_weight")];
    let in_bias = p.get(&name("in_proj_bias"));
    let width = weight.shape[1];
    let d = width / heads;
    let rows = |from: usize, count: usize| {
        let w = Array::from_fn(&[count, width], |i| weight.at(&[from + i[0], i[1]]));
        (w, in_bias.map(|b| Array::from_fn(&[count], |i| b.at(&[from + i[0]]))))
    };
    let projected = |x: &Array, from: usize, count: usize| {
        let (w, b) = rows(from, count);
        x.linear(&w, b.as_ref())
    };
    let (q, k, v) = (
        projected(q, 0, width),
        projected(k, width, kv_heads * d),
        projected(v, width + kv_heads * d, kv_heads * d),
    );
    let head = |x: &Array, b: usize, t: usize, h: usize| -> Vec<f64> {
        (0..d).map(|i| x.at(&[b, t, h * d + i])).collect()
    };
    let placed = |v: Vec<f64>, t: usize| rotary.map_or(v.clone(), |r| turned(&v, t as f64, r));
    let mut joined = Array::zeros(&[q.shape[0], q.shape[1], width]);
    for b in 0..q.shape[0] {
        for h in 0..heads {
            let g = h / (heads / kv_heads);
            for t in 0..q.shape[1] {
                let query = placed(head(&q, b, t, h), t);
                let scores: Vec<f64> = (0..k.shape[1])
                    .map(|s| {
                        let key = placed(head(&k, b, s, g), s);
                        let dot: f64 = query.iter().zip(&key).map(|(a, b)| a * b).sum();
                        dot / (d as f64).sqrt() + bias(b, h, t, s)
                    })
                    .collect();
                let peak = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = scores.iter().map(|s| (s - peak).exp()).collect();
                let sum: f64 = weights.iter().sum();
                for (s, w) in weights.iter().enumerate() {
                    for (i, value) in head(&v, b, s, g).iter().enumerate() {
                        joined.add_at(&[b, t, h * d + i], w / sum * value);
                    }
                }
            }
        }
    }
    joined.linear(&p[&name("out_proj.weight")], p.get(&name("out_proj.bias")))
}

fn nothing_hidden(_: usize, _: usize, _: usize, _: usize) -> f64 {
    0.0
}

#[test]
fn self_attention_agrees_with_its_formula() {
    let x = Array::waves(&[2, 5, 8], 30);
    let with = |options| MultiHeadAttention::with_options(8, 4, options);
    let plain = MultiHeadOptions::default();
    let neighbours = Rotary::new().with_neighbours().with_base(100.0);
    for (what, layer) in [
        ("plain", with(plain)),
        ("no bias", with(MultiHeadOptions { bias: false, ..plain })),
        ("shared keys", with(MultiHeadOptions { kv_heads: Some(2), ..plain })),
        ("one key for all", with(MultiHeadOptions { kv_heads: Some(1), ..plain })),
        ("rotary", with(MultiHeadOptions { rotary: Some(Rotary::new()), ..plain })),
        (
            "rotary neighbours",
            with(MultiHeadOptions { rotary: Some(neighbours), kv_heads: Some(2), ..plain }),
        ),
    ] {
        let heads = [layer.heads, layer.kv_heads];
        check_forward(what, &layer, &x, |p, x| attended(p, "", [x; 3], heads, layer.rotary, &nothing_hidden));
        check(
            &format!("{what}, causal"),
            &layer,
            std::slice::from_ref(&x),
            |x| layer.attend(&x[0], &x[0], &x[0], AttentionMask::causal()),
            |p, x| attended(p, "", [&x[0]; 3], heads, layer.rotary, &causal),
        );
    }
}

#[test]
fn attention_to_another_sequence_agrees_with_its_formula() {
    let (q, k, v) =
        (Array::waves(&[2, 3, 8], 30), Array::waves(&[2, 5, 8], 31), Array::waves(&[2, 5, 8], 32));
    let layer = MultiHeadAttention::new(8, 2);
    check(
        "keys and values",
        &layer,
        &[q.clone(), k.clone(), v],
        |x| layer.attend(&x[0], &x[1], &x[2], AttentionMask::default()),
        |p, x| attended(p, "", [&x[0], &x[1], &x[2]], [2, 2], None, &nothing_hidden),
    );
    check(
        "memory",
        &layer,
        &[q, k],
        |x| layer.attend(&x[0], &x[1], &x[1], AttentionMask::default()),
        |p, x| attended(p, "", [&x[0], &x[1], &x[1]], [2, 2], None, &nothing_hidden),
    );
}

#[test]
fn masks_hide_keys_or_add_to_scores() {
    let x = Array::waves(&[2, 4, 8], 33);
    let layer =
        MultiHeadAttention::with_options(8, 2, MultiHeadOptions { kv_heads: Some(1), ..Default::default() });
    let seen = |t: usize, s: usize| (t + s) % 3 != 1 || t == s;
    let bools: Vec<bool> = (0..16).map(|k| seen(k / 4, k % 4)).collect();
    let bools = Tensor::from_slice(&bools, [4, 4]);
    let added = Array::waves(&[2, 1, 4, 4], 34);
    let added_mask = tensor(&added);
    let keys = Tensor::from_slice(&[true, true, true, false, true, true, false, false], [2, 4]);
    let is_key = |b: usize, s: usize| s < [3, 2][b];
    let hide = |yes: bool| if yes { 0.0 } else { f64::NEG_INFINITY };
    let cases: [(&str, AttentionMask<'_>, Bias<'_>); 5] = [
        ("bools", AttentionMask::of(&bools), &|_, _, t, s| hide(seen(t, s))),
        ("numbers", AttentionMask::of(&added_mask), &|b, _, t, s| added.at(&[b, 0, t, s])),
        ("padding", AttentionMask::default().with_keys(&keys), &|b, _, _, s| hide(is_key(b, s))),
        ("causal and padding", AttentionMask::causal().with_keys(&keys), &|b, h, t, s| {
            hide(is_key(b, s)) + causal(b, h, t, s)
        }),
        ("numbers and padding", AttentionMask::of(&added_mask).with_keys(&keys), &|b, _, t, s| {
            added.at(&[b, 0, t, s]) + hide(is_key(b, s))
        }),
    ];
    for (what, mask, bias) in cases {
        check(
            what,
            &layer,
            std::slice::from_ref(&x),
            |x| layer.attend(&x[0], &x[0], &x[0], mask),
            |p, x| attended(p, "", [&x[0]; 3], [2, 1], None, bias),
        );
    }
    let both = AttentionMask::of(&bools).with_keys(&keys);
    check(
        "bools and padding",
        &layer,
        std::slice::from_ref(&x),
        |x| layer.attend(&x[0], &x[0], &x[0], both),
        |p, x| attended(p, "", [&x[0]; 3], [2, 1], None, &|b, _, t, s| hide(seen(t, s) && is_key(b, s))),
    );
}

#[test]
fn a_sequence_without_a_batch_is_a_batch_of_one() {
    let layer = MultiHeadAttention::new(8, 2);
    check_forward("alone", &layer, &Array::waves(&[5, 8], 30), |p, x| {
        attended(p, "", [&x.reshaped(&[1, 5, 8]); 3], [2, 2], None, &nothing_hidden).reshaped(&[5, 8])
    });
}

#[test]
fn dropout_of_weights_happens_in_training_only() {
    let layer =
        MultiHeadAttention::with_options(8, 2, MultiHeadOptions { dropout: 0.5, ..Default::default() });
    layer.to_dtype(real());
    let x = tensor(&Array::waves(&[2, 6, 8], 30));
    let run = || array(&layer.forward(&x));
    assert_ne!(run().data, run().data);
    layer.eval();
    assert_eq!(run().data, run().data);
}

#[test]
fn rotary_positions_turn_vectors_and_keep_their_length() {
    let x = Array::waves(&[2, 3, 6], 35);
    for rotary in [Rotary::new(), Rotary::new().with_neighbours(), Rotary::new().with_base(50.0)] {
        for start in [0, 1, 7] {
            let found = array(&rotary.apply(&tensor(&x), start));
            let mut expected = x.clone();
            for (row, (to, from)) in expected.data.chunks_mut(6).zip(x.data.chunks(6)).enumerate() {
                to.copy_from_slice(&turned(from, (start + row % 3) as f64, rotary));
                let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
                assert!((length(to) - length(from)).abs() < 1e-12);
            }
            assert_close("rotary", &found, &expected, value_tolerance());
        }
    }
}
