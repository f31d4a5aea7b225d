//! Scaled dot-product attention: causal, masked by numbers or truth, both, of every rank.

use crate::driver::{on_software, only_webgpu};
use crate::reference::Array;
use crate::table::*;
use volta::{AttentionOptions, BackwardOptions, DType, Device, Tensor, default_device, with_device};
use volta_testing::test;

/// softmax(q·kᵀ·scale + mask)·v; a query that sees nothing gives zeros.
fn attention(x: &[Array], mask: Option<&Array>, causal: bool, scale: Option<f64>) -> Array {
    let width = x[0].shape[x[0].rank() - 1];
    let scale = scale.unwrap_or(1.0 / (width as f64).sqrt());
    let mut scores = x[0].matmul(&x[1].t()).map(|s| s * scale);
    if let Some(mask) = mask {
        scores = scores.add(mask);
    }
    let rank = scores.rank();
    if causal {
        let plain = scores.clone();
        scores = Array::from_fn(&plain.shape, |at| {
            if at[rank - 1] <= at[rank - 2] { plain.at(at) } else { f64::NEG_INFINITY }
        });
    }
    scores.softmax(rank - 1).map(|w| if w.is_nan() { 0.0 } else { w }).matmul(&x[2])
}

fn hidden(mask: &Array) -> Array {
    mask.map(|m| if m != 0.0 { 0.0 } else { f64::NEG_INFINITY })
}

fn call(x: &[Tensor], mask: Option<&Tensor>, causal: bool, scale: Option<f64>) -> Tensor {
    x[0].scaled_dot_product_attention(&x[1], &x[2], AttentionOptions { causal, mask, dropout: 0.0, scale })
}

const SHAPES: &[&[&[usize]]] = &[
    &[&[2, 2, 4, 3], &[2, 2, 5, 3], &[2, 2, 5, 2]],
    &[&[4, 3], &[4, 3], &[4, 3]],
    &[&[2, 4, 3], &[2, 3, 3], &[2, 3, 4]],
    &[&[2, 1, 2, 3, 4], &[2, 1, 2, 5, 4], &[2, 1, 2, 5, 4]],
    &[&[1, 2, 1, 4], &[1, 2, 6, 4], &[1, 2, 6, 4]],
    &[&[1, 1, 70, 16], &[1, 1, 130, 16], &[1, 1, 130, 24]],
];

/// The same with a mask in front of every case.
fn masked(r: Row, masks: &[&[usize]]) -> Row {
    masks.iter().zip(SHAPES).fold(r, |r, (mask, shapes)| r.case(&[shapes[0], shapes[1], shapes[2], mask]))
}

fn rows() -> Vec<Row> {
    // Broadcast over batch, over heads, over queries.
    let masks: &[&[usize]] = &[&[2, 2, 4, 5], &[4, 4], &[4, 3], &[3, 5], &[1, 2, 1, 6], &[1, 1, 70, 130]];
    let mut rows = vec![];
    for causal in [false, true] {
        let name = |what: &str| format!("attention{}{what}", if causal { ", causal" } else { "" });
        rows.push(
            row(name(""), move |x| call(x, None, causal, None), move |x| attention(x, None, causal, None))
                .cases(SHAPES),
        );
        rows.push(
            row(
                name(", scaled"),
                move |x| call(x, None, causal, Some(0.3)),
                move |x| attention(x, None, causal, Some(0.3)),
            )
            .cases(&SHAPES[..2]),
        );
        rows.push(masked(
            row(
                name(", with a mask of numbers"),
                move |x| call(x, Some(&x[3]), causal, None),
                move |x| attention(x, Some(&x[3]), causal, None),
            ),
            masks,
        ));
        rows.push(
            masked(
                row(
                    name(", with a mask of truth"),
                    move |x| call(x, Some(&x[3]), causal, None),
                    move |x| attention(x, Some(&hidden(&x[3])), causal, None),
                ),
                masks,
            )
            .values(&[Between(-2.0, 2.0), Between(-2.0, 2.0), Between(-2.0, 2.0), Truth]),
        );
    }
    rows.push(
        row(
            "attention of one tensor with itself",
            |x| {
                let options = AttentionOptions { causal: true, ..Default::default() };
                x[0].scaled_dot_product_attention(&x[0], &x[0], options)
            },
            |x| attention(&[x[0].clone(), x[0].clone(), x[0].clone()], None, true, None),
        )
        .cases(&[&[&[2, 2, 4, 3]]]),
    );
    rows.into_iter().map(|r| r.slack(20.0).shader_cost(3)).collect()
}

checks!(rows());

/// Only one of the three is a leaf; the others are data.
#[test]
fn a_single_tracked_operand_gets_the_same_gradient_as_all_three_together() {
    let data: Vec<Tensor> = (0..3)
        .map(|k| Tensor::arange(0, 24).mul(0.37 + 0.1 * f64::from(k)).sin().reshape([2, 4, 3]))
        .collect();
    let run = |tracked: &[usize]| -> Vec<Vec<f32>> {
        let x: Vec<Tensor> =
            data.iter().enumerate().map(|(k, t)| t.requires_grad(tracked.contains(&k))).collect();
        call(&x, None, true, None).square().sum().backward();
        tracked.iter().map(|&k| x[k].grad().expect("a gradient").to_vec::<f32>()).collect()
    };
    let all = run(&[0, 1, 2]);
    for (k, together) in all.iter().enumerate() {
        assert_eq!(run(&[k])[0], *together, "operand {k} alone");
    }
}

/// The gradients of queries, keys and values on a device, for heads of a width, with operands in some type.
fn gradients(
    device: Device,
    [heads, queries, keys, width]: [usize; 4],
    causal: bool,
    dtype: DType,
) -> Vec<Vec<f32>> {
    with_device(device, || {
        let wave = |rows: usize, pace: f32| {
            // Halves, in every type.
            let value = |k: usize| half::f16::from_f32((k as f32 * pace).sin()).to_f32();
            let values = (0..heads * rows * width).map(value).collect();
            Tensor::from_vec(values, [1, heads, rows, width]).to_dtype(dtype)
        };
        let x = [(queries, 0.37), (keys, 0.73), (keys, 1.1)];
        let x = x.map(|(rows, pace)| wave(rows, pace).requires_grad(true));
        let loss = (call(&x, None, causal, None) * wave(queries, 0.011)).to_dtype(DType::F32).sum();
        loss.backward();
        x.iter().map(|t| t.grad().expect("a gradient").to_vec()).collect()
    })
}

/// Compares the gradients on the device under test with those of the CPU in f32; `off` is how far they may be apart.
fn are_those_of_the_cpu(shape: [usize; 4], dtype: DType, off: impl Fn(f32) -> f32) {
    for causal in [false, true] {
        let here = gradients(default_device(), shape, causal, dtype);
        let there = gradients(Device::Cpu, shape, causal, DType::F32);
        for (name, (a, b)) in ["queries", "keys", "values"].iter().zip(here.iter().zip(&there)) {
            let most = off(b.iter().fold(0.0, |most, x| x.abs().max(most)));
            for (k, (x, y)) in a.iter().zip(b).enumerate() {
                assert!((x - y).abs() <= most, "{name} {k} of {shape:?}, causal {causal}: {x}, not {y}");
            }
        }
    }
}

/// A GPU finds those of queries and keys at once or, where there are many, one after the other.
#[test]
fn gradients_of_few_and_of_many_are_those_of_the_cpu() {
    for [heads, queries, keys] in [[3, 64, 64], [2, 100, 70], [140, 33, 40], [1, 300, 280]] {
        are_those_of_the_cpu([heads, queries, keys, 16], DType::F32, |_| 2e-5);
    }
}

/// Where a GPU has cooperative matrices, it keeps the gradients of scores: blocks of them within and beyond the edges, more
/// queries than keys and fewer, widths that two subgroups can share and others.
#[test]
fn gradients_in_half_precision_are_those_of_the_cpu() {
    let shapes = [
        [3, 64, 64, 32],
        [2, 100, 70, 64],
        [1, 70, 170, 64],
        [2, 130, 200, 48],
        [1, 96, 100, 128],
        [1, 33, 600, 16],
        [1, 600, 520, 32],
    ];
    // Without these matrices, half precision is like any other: each job of a software adapter tries one of the first two.
    let job = usize::from(only_webgpu());
    let tried = if on_software() { job..job + 1 } else { 0..shapes.len() };
    for &shape in &shapes[tried] {
        // Gradients of scores are small differences, of which these matrices compute one side from results in half precision.
        let part = if on_software() { 0.01 } else { 0.03 };
        are_those_of_the_cpu(shape, DType::F16, |largest| part * largest);
    }
}

/// The gradient of a gradient when only some operands are tracked.
#[test(needs(f64))]
fn second_gradients_exist_for_each_operand_alone() {
    let plain = |q: &Tensor, k: &Tensor, v: &Tensor| {
        let scores = q.matmul(&k.t()).mul(1.0 / 3f64.sqrt());
        let weights = scores.exp();
        weights.div(weights.sum_dim(-1, true)).matmul(v)
    };
    let data: Vec<Tensor> = (0..3)
        .map(|k| {
            Tensor::arange(0, 24).to_dtype(DType::F64).mul(0.37 + 0.1 * f64::from(k)).sin().reshape([2, 4, 3])
        })
        .collect();
    for tracked in 0..3usize {
        let twice = |fused: bool| -> Vec<f64> {
            let x: Vec<Tensor> =
                data.iter().enumerate().map(|(k, t)| t.requires_grad(k == tracked)).collect();
            let y = if fused { call(&x, None, false, None) } else { plain(&x[0], &x[1], &x[2]) };
            let options = volta::BackwardOptions { create_graph: true, ..Default::default() };
            let first = volta::grad(&[&y.square().sum()], &[&x[tracked]], options);
            let first = first[0].as_ref().expect("a gradient");
            let second = volta::grad(&[&first.square().sum()], &[&x[tracked]], Default::default());
            second[0].as_ref().expect("a second gradient").to_vec()
        };
        let (a, b) = (twice(true), twice(false));
        let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-9, "operand {tracked}: {a:?} against {b:?}");
    }
}

fn half_numbers(shape: [usize; 4], seed: usize) -> Tensor {
    let count = shape.iter().product::<usize>();
    let data: Vec<f32> = (0..count).map(|k| ((k * 7919 + seed * 37) % 101) as f32 * 0.01 - 0.5).collect();
    Tensor::from_vec(data, shape)
}

/// Whatever the default device is by then.
#[test]
fn masks_are_made_where_queries_are() {
    let t = |rows, seed| half_numbers([1, 2, rows, 16], seed).realize().clone();
    let (one, many, k, v) = (t(1, 1), t(4, 2), t(4, 3), t(4, 4));
    let x = Tensor::vector(&[2.0, 3.0, 4.0]).requires_grad(true);
    with_device(Device::Cpu, || {
        let causal = AttentionOptions { causal: true, ..Default::default() };
        let first = one.scaled_dot_product_attention(&k, &v, causal);
        let expected = v.narrow(2, 0, 1);
        assert!((first - expected).abs().max().item::<f32>() < 1e-6);
        let dropped = many.scaled_dot_product_attention(&k, &v, AttentionOptions { dropout: 0.5, ..causal });
        assert_eq!(dropped.shape(), many.shape());
        assert!(dropped.abs().max().item::<f32>().is_finite());
        let twice = BackwardOptions { retain_graph: true, create_graph: true };
        let gradient = volta::grad(&[&x.prod()], &[&x], twice).remove(0).expect("one");
        assert_eq!(gradient.to_vec::<f32>(), [12.0, 8.0, 6.0]);
    });
}

#[test]
fn without_keys_or_widths_there_is_nothing_to_weigh() {
    let t = |rows, width| half_numbers([1, 2, rows, width], 5);
    for (queries, dropout) in [(1, 0.0), (3, 0.0), (3, 0.5)] {
        let options = AttentionOptions { dropout, ..Default::default() };
        let y = t(queries, 8).scaled_dot_product_attention(&t(0, 8), &t(0, 8), options);
        assert_eq!(y.to_vec::<f32>(), vec![0.0; 2 * queries * 8]);
    }
    for queries in [1, 3] {
        let v = t(4, 8);
        let y = t(queries, 0).scaled_dot_product_attention(&t(4, 0), &v, AttentionOptions::default());
        let mean = v.mean_dim([2], true).expand([1, 2, queries, 8]);
        assert!((y - mean).abs().max().item::<f32>() < 1e-6);
    }
    let q = t(3, 8);
    let scaled = |scale| {
        q.try_scaled_dot_product_attention(
            &q,
            &q,
            AttentionOptions { scale: Some(scale), ..Default::default() },
        )
    };
    assert!(scaled(f64::INFINITY).is_err() && scaled(1e39).is_err() && scaled(f64::NAN).is_err());
    assert!(scaled(1e-39).expect("almost no scale").sum().item::<f32>().is_finite());
}

#[test]
fn second_gradients_of_halves_with_a_mask_are_those_of_the_cpu() {
    let run = || {
        let leaf = |seed| half_numbers([1, 2, 8, 16], seed).to_dtype(DType::F16).requires_grad(true);
        let (q, k, v) = (leaf(1), leaf(2), leaf(3));
        let mask = half_numbers([1, 1, 8, 8], 4);
        let options = AttentionOptions { mask: Some(&mask), ..Default::default() };
        let y = q.scaled_dot_product_attention(&k, &v, options).to_dtype(DType::F32).square().sum();
        let twice = BackwardOptions { retain_graph: true, create_graph: true };
        let d = volta::grad(&[&y], &[&q], twice).remove(0).expect("one");
        (d.to_dtype(DType::F32) * 100.0).square().sum().backward();
        q.grad().expect("one").to_dtype(DType::F32).to_vec::<f32>()
    };
    let (here, there) = (run(), with_device(Device::Cpu, run));
    let largest = there.iter().fold(0f32, |m, x| m.max(x.abs()));
    assert!(largest > 0.0 && largest.is_finite(), "{largest}");
    for (a, b) in here.iter().zip(&there) {
        assert!((a - b).abs() <= 0.03 * largest, "{a} is not {b} of {largest}");
    }
}

/// Their products would overflow f16, which they were widened for.
#[test]
fn scores_with_dropout_are_not_lowered_again_in_mixed_precision() {
    let q = Tensor::full([1, 1, 2, 64], 40.0);
    let options = AttentionOptions { dropout: 0.1, ..Default::default() };
    let y = volta::autocast(DType::F16, || q.scaled_dot_product_attention(&q, &q, options));
    assert_eq!(y.dtype(), DType::F16);
    let y = y.to_vec::<f32>();
    assert!(y.iter().all(|x| x.is_finite()), "{y:?}");
}

/// The log-sum-exp of scores of -1e9 has no digits left for the number of keys that share a row.
#[test]
fn rows_hidden_whole_by_a_finite_mask_have_the_gradients_of_their_softmax() {
    let leaf = |rows, seed| half_numbers([1, 2, rows, 8], seed).requires_grad(true);
    for least in [-1e4, -1e9, f64::from(f32::MIN)] {
        for causal in [false, true] {
            let hide = |at: usize, key: usize| at == 2 || key == 3 || (at == 4 && key != 5);
            let mask: Vec<f32> =
                (0..42).map(|k| if hide(k / 7, k % 7) { least as f32 } else { 0.0 }).collect();
            let mask = Tensor::from_vec(mask, [1, 1, 6, 7]).requires_grad(true);
            let (q, k, v) = (leaf(6, 1), leaf(7, 2), leaf(7, 3));
            let all = [&q, &k, &v, &mask];
            let gradients = |y: Tensor| {
                let weights = half_numbers([1, 2, 6, 8], 4);
                let found = volta::grad(&[&(&y * weights).sum()], &all, BackwardOptions::default());
                let found = found.into_iter().map(|g| g.expect("a gradient").to_vec::<f32>());
                std::iter::once(y.to_vec::<f32>()).chain(found).collect::<Vec<_>>()
            };
            let options = AttentionOptions { mask: Some(&mask), causal, ..Default::default() };
            let fused = gradients(q.scaled_dot_product_attention(&k, &v, options));
            let mut scores = q.matmul(&k.transpose(-2, -1)) / 8f64.sqrt() + &mask;
            if causal {
                let seen = with_device(q.device(), || Tensor::tril_mask(6, 7, 0));
                scores = seen.where_(&scores, f64::NEG_INFINITY);
            }
            let plain = gradients(scores.softmax(-1).matmul(&v));
            for (name, (a, b)) in ["result", "q", "k", "v", "mask"].iter().zip(fused.iter().zip(&plain)) {
                let largest = b.iter().fold(0f32, |m, x| m.max(x.abs()));
                for (a, b) in a.iter().zip(b) {
                    let off = (a - b).abs();
                    assert!(off <= 2e-3 * largest, "{name}, {least}, {causal}: {a} is not {b}");
                }
            }
        }
    }
}
