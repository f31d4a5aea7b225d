//! Losses of distances, and cross entropy without all logits at once.

use crate::array::{Array, array, real, tensor};
use crate::driver::{assert_close, gradient_tolerance, value_tolerance};
use volta::*;
use volta_testing::test;

/// The value and the gradients of a loss of these inputs.
fn evaluated(inputs: &[Array], loss: impl Fn(&[Tensor]) -> Tensor) -> (Array, Vec<Array>) {
    let leaves: Vec<Tensor> = inputs.iter().map(|x| tensor(x).requires_grad(true)).collect();
    let seen: Vec<Tensor> = leaves.iter().map(|x| x * 2.0).collect();
    let value = loss(&seen);
    (&value * 3.0).sum().backward();
    (array(&value), leaves.iter().map(|x| array(&x.grad().expect("a gradient"))).collect())
}

fn same(what: &str, inputs: &[Array], a: impl Fn(&[Tensor]) -> Tensor, b: impl Fn(&[Tensor]) -> Tensor) {
    let ((x, dx), (y, dy)) = (evaluated(inputs, a), evaluated(inputs, b));
    assert_close(what, &x, &y, value_tolerance());
    for (k, (a, b)) in dx.iter().zip(&dy).enumerate() {
        assert_close(&format!("{what}: gradient {k}"), a, b, value_tolerance());
    }
}

#[test]
fn cross_entropy_in_chunks_is_that_of_the_whole() {
    let inputs = [Array::waves(&[2, 5, 4], 1), Array::waves(&[7, 4], 2), Array::waves(&[7], 3)];
    let target = Tensor::from_slice(&[0i32, 6, 3, -100, 2, 1, 1, -100, 5, 4], [2, 5]);
    let classes = tensor(&Array::from_fn(&[7], |i| 0.5 + i[0] as f64 / 4.0));
    let plain = CrossEntropyOptions::default();
    let options = [
        ("mean", plain),
        ("sum", CrossEntropyOptions { reduction: Reduction::Sum, ..plain }),
        ("over the batch", CrossEntropyOptions { reduction: Reduction::BatchMean, ..plain }),
        ("apart", CrossEntropyOptions { reduction: Reduction::None, ..plain }),
        ("smoothed", CrossEntropyOptions { label_smoothing: 0.2, ..plain }),
        ("weighted", CrossEntropyOptions { weight: Some(&classes), label_smoothing: 0.1, ..plain }),
        ("another index", CrossEntropyOptions { ignore_index: Some(1), ..plain }),
    ];
    for (what, loss) in options {
        // −100 is no class: where it counts, nothing is expected of it.
        let target =
            if loss.ignore_index == Some(1) { target.clamp(Some(0.0), None) } else { target.clone() };
        for classes_at_once in [Some(1), Some(3), Some(4), None] {
            let chunks = |x: &[Tensor], bias: bool| {
                let bias = bias.then(|| &x[2]);
                let options = LinearCrossEntropyOptions { bias, loss, classes_at_once };
                linear_cross_entropy_with(&x[0], &x[1], &target, options)
            };
            let whole = |x: &[Tensor], bias: bool| {
                let logits = x[0].linear(&x[1], bias.then(|| &x[2])).reshape([10, 7]);
                let losses = cross_entropy_with(&logits, &target.reshape([10]), loss);
                match loss.reduction {
                    Reduction::None => losses.reshape([2, 5]),
                    // Two samples, and not ten.
                    Reduction::BatchMean => losses * 5.0,
                    _ => losses,
                }
            };
            let name = format!("{what}, {classes_at_once:?} classes");
            same(&name, &inputs, |x| chunks(x, true), |x| whole(x, true));
            same(&format!("{name}, no bias"), &inputs[..2], |x| chunks(x, false), |x| whole(x, false));
        }
    }
}

#[test]
fn cross_entropy_in_chunks_has_second_gradients() {
    if real() == DType::F32 {
        return; // Differences need f64.
    }
    let (x, w) = (Array::waves(&[4, 3], 1), Array::waves(&[5, 3], 2));
    let target = Tensor::from_slice(&[0i32, 4, 2, 2], [4]);
    let options = LinearCrossEntropyOptions { classes_at_once: Some(3), ..Default::default() };
    let first = |x: &Array, create_graph: bool| {
        let (x, w) = (tensor(x).requires_grad(true), tensor(&w).requires_grad(true));
        let loss = linear_cross_entropy_with(&x, &w, &target, options);
        let options = BackwardOptions { retain_graph: false, create_graph };
        let g = grad(&[&loss], &[&w], options).remove(0).expect("a gradient");
        let sum = (g * tensor(&Array::waves(&[5, 3], 9))).sum();
        (sum, x)
    };
    let (sum, leaf) = first(&x, true);
    sum.backward();
    let found = array(&leaf.grad().expect("a gradient"));
    for place in [0, 4, 11] {
        let along = |by: f64| {
            let mut x = x.clone();
            x.data[place] += by;
            first(&x, false).0.item::<f64>()
        };
        let slope = (along(1e-5) - along(-1e-5)) / 2e-5;
        assert!((found.data[place] - slope).abs() < 1e-7, "{} {slope}", found.data[place]);
    }
}

#[test]
fn half_precision_products_stay_in_half_precision() {
    let (x, w) = (Tensor::randn([8, 16]).requires_grad(true), Tensor::randn([12, 16]).requires_grad(true));
    let target = Tensor::randint(0, 12, [8]);
    let options = LinearCrossEntropyOptions { classes_at_once: Some(3), ..Default::default() };
    let loss = autocast(DType::F16, || linear_cross_entropy_with(&x, &w, &target, options));
    assert_eq!(loss.dtype(), DType::F32);
    loss.backward();
    let (chunked, of_chunks) = (loss.item::<f32>(), w.grad().unwrap());
    w.zero_grad();
    let whole = autocast(DType::F16, || cross_entropy(&x.linear(&w, None), &target));
    whole.backward();
    assert!((chunked - whole.item::<f32>()).abs() < 1e-3 * chunked.abs());
    assert_eq!(of_chunks.dtype(), DType::F32);
    assert_close("weight", &array(&of_chunks), &array(&w.grad().unwrap()), 5e-3);
}

/// The cosine of rows, and the distance by a norm.
fn rows(x: &Array) -> Vec<&[f64]> {
    x.data.chunks(x.shape[1]).collect()
}

fn check_slopes(inputs: &[Array], loss: impl Fn(&[Tensor]) -> Tensor, reference: impl Fn(&[Array]) -> Array) {
    // The loss sees twice its inputs.
    let doubled = |x: &[Array]| -> Array {
        let x: Vec<Array> = x.iter().map(|x| x.map(|v| 2.0 * v)).collect();
        reference(&x)
    };
    let (value, gradients) = evaluated(inputs, loss);
    assert_close("value", &value, &doubled(inputs), value_tolerance());
    for (k, gradient) in gradients.iter().enumerate() {
        for place in 0..gradient.data.len() {
            let along = |by: f64| {
                let mut all = inputs.to_vec();
                all[k].data[place] += by;
                3.0 * doubled(&all).data.iter().sum::<f64>()
            };
            let slope = (along(1e-5) - along(-1e-5)) / 2e-5;
            let close = (gradient.data[place] - slope).abs() <= gradient_tolerance() * slope.abs().max(1.0);
            assert!(close, "gradient {k} at {place}: {} {slope}", gradient.data[place]);
        }
    }
}

fn reduced(losses: Vec<f64>, reduction: Reduction) -> Array {
    let sum: f64 = losses.iter().sum();
    match reduction {
        Reduction::None => Array { shape: vec![losses.len()], data: losses },
        Reduction::Sum => Array { shape: vec![], data: vec![sum] },
        // A row is a sample.
        Reduction::Mean | Reduction::BatchMean => {
            Array { shape: vec![], data: vec![sum / losses.len() as f64] }
        }
    }
}

#[test]
fn cosine_embedding_loss_agrees_with_loops() {
    let inputs = [Array::waves(&[5, 3], 4), Array::waves(&[5, 3], 5)];
    let signs = [1, -1, -1, 1, -1];
    let target = Tensor::from_slice(&signs.map(|s| s as f32), [5]);
    for reduction in [Reduction::Mean, Reduction::Sum, Reduction::BatchMean, Reduction::None] {
        for margin in [0.0, 0.3] {
            let options = CosineEmbeddingOptions { margin, reduction };
            check_slopes(
                &inputs,
                |x| cosine_embedding_loss_with(&x[0], &x[1], &target, options),
                |x| {
                    let cosine = |a: &[f64], b: &[f64]| {
                        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                        dot(a, b) / ((dot(a, a) + 1e-12) * (dot(b, b) + 1e-12)).sqrt()
                    };
                    let pairs = rows(&x[0]).into_iter().zip(rows(&x[1])).zip(signs);
                    let loss = |((a, b), sign)| {
                        if sign == 1 { 1.0 - cosine(a, b) } else { (cosine(a, b) - margin).max(0.0) }
                    };
                    reduced(pairs.map(loss).collect(), reduction)
                },
            );
        }
    }
}

#[test]
fn triplet_margin_loss_agrees_with_loops() {
    let inputs = [Array::waves(&[5, 3], 4), Array::waves(&[5, 3], 5), Array::waves(&[5, 3], 7)];
    for (p, swap, margin) in [(2.0, false, 1.0), (1.0, false, 0.5), (3.0, true, 1.5)] {
        let options = TripletMarginOptions { margin, p, swap, ..TripletMarginOptions::default() };
        check_slopes(
            &inputs,
            |x| triplet_margin_loss_with(&x[0], &x[1], &x[2], options),
            |x| {
                let distance = |a: &[f64], b: &[f64]| {
                    a.iter().zip(b).map(|(a, b)| (a - b + 1e-6).abs().powf(p)).sum::<f64>().powf(1.0 / p)
                };
                let (a, b, c) = (rows(&x[0]), rows(&x[1]), rows(&x[2]));
                let loss = |k: usize| {
                    let far = distance(a[k], c[k]);
                    let far = if swap { far.min(distance(b[k], c[k])) } else { far };
                    (distance(a[k], b[k]) - far + margin).max(0.0)
                };
                reduced((0..5).map(loss).collect(), Reduction::Mean)
            },
        );
    }
}

#[test]
fn losses_in_mixed_precision_are_in_f32() {
    type Loss = fn(&Tensor, &Tensor) -> Tensor;
    let table: &[(&str, Loss)] = &[
        ("mse_loss", mse_loss),
        ("l1_loss", l1_loss),
        ("smooth_l1_loss", |a, b| smooth_l1_loss(a, b, 1.0)),
        ("huber_loss", |a, b| huber_loss(a, b, 1.0)),
        ("bce_loss", bce_loss),
        ("bce_with_logits", bce_with_logits),
        ("kl_div", kl_div),
        ("cosine_embedding_loss", |a, b| cosine_embedding_loss(a, b, &Tensor::full([2], 1))),
        ("triplet_margin_loss", |a, b| triplet_margin_loss(a, b, a)),
        ("nll_loss", |a, _| nll_loss(a, &Tensor::full([2], 1))),
        ("cross_entropy", |a, _| cross_entropy(a, &Tensor::full([2], 1))),
    ];
    for dtype in [DType::F16, DType::BF16] {
        let a = Tensor::from_vec(vec![0.25f32, 0.5, 0.75, 0.625], [2, 2]).to_dtype(dtype);
        let b = Tensor::from_vec(vec![0.5f32, 0.125, 0.375, 0.75], [2, 2]).to_dtype(dtype);
        for (name, loss) in table {
            let mixed = autocast(dtype, || loss(&a, &b));
            assert_eq!(mixed.dtype(), DType::F32, "{name}");
            let wide = loss(&a.to_dtype(DType::F32), &b.to_dtype(DType::F32));
            assert_eq!(mixed.item::<f32>(), wide.item::<f32>(), "{name}");
            assert_eq!(loss(&a, &b).dtype(), dtype, "{name}, elsewhere");
        }
    }
    // Squares beyond the largest f16.
    let far = Tensor::full([2], 600.0).to_dtype(DType::F16);
    let loss = autocast(DType::F16, || mse_loss(&far, &Tensor::zeros([2]).to_dtype(DType::F16)));
    assert_eq!(loss.item::<f32>(), 360_000.0);
}
