//! Batch norm: by the batch, by running averages, and how these are kept.

use crate::array::{Array, array, tensor};
use crate::driver::{Parameters, assert_close, check_forward, fill, value_tolerance};
use volta::nn::BatchNorm;
use volta::{BatchNorm1d, BatchNorm2d, DType, Module, Tensor};
use volta_testing::test;

/// The mean and the sum of squared differences of every channel, and how many values it has.
fn moments(x: &Array) -> (Vec<f64>, Vec<f64>, f64) {
    let (channels, inner) = (x.shape[1], x.shape[2..].iter().product::<usize>());
    let count = (x.shape[0] * inner) as f64;
    let of = |c: usize, f: &dyn Fn(f64) -> f64| -> f64 {
        x.data.iter().enumerate().filter(|(k, _)| k / inner % channels == c).map(|(_, &v)| f(v)).sum()
    };
    let means: Vec<f64> = (0..channels).map(|c| of(c, &|v| v) / count).collect();
    let squares = (0..channels).map(|c| of(c, &|v| (v - means[c]) * (v - means[c]))).collect();
    (means, squares, count)
}

fn normalized(p: &Parameters, x: &Array, mean: &[f64], variance: &[f64], eps: f64) -> Array {
    let (channels, inner) = (x.shape[1], x.shape[2..].iter().product::<usize>());
    let mut out = x.clone();
    for (k, v) in out.data.iter_mut().enumerate() {
        let c = k / inner % channels;
        let y = (*v - mean[c]) / (variance[c] + eps).sqrt();
        *v = y * p.get("weight").map_or(1.0, |w| w.data[c]) + p.get("bias").map_or(0.0, |b| b.data[c]);
    }
    out
}

fn by_batch(p: &Parameters, x: &Array, eps: f64) -> Array {
    let (mean, squares, count) = moments(x);
    let variance: Vec<f64> = squares.iter().map(|s| s / count).collect();
    normalized(p, x, &mean, &variance, eps)
}

fn check_all<const SPACE: usize>(x: &Array) {
    for (what, layer) in [
        ("default", BatchNorm::<SPACE>::new(3)),
        ("eps", BatchNorm::<SPACE>::new(3).with_eps(1e-2)),
        ("plain", BatchNorm::<SPACE>::new(3).without_affine()),
        ("no averages", BatchNorm::<SPACE>::new(3).without_running_stats()),
    ] {
        check_forward(what, &layer, x, |p, x| by_batch(p, x, layer.eps));
        layer.eval();
        let running = layer.running.as_ref().map(|r| (array(&r.mean).data, array(&r.variance).data));
        check_forward(&format!("{what}, in evaluation"), &layer, x, |p, x| match &running {
            Some((mean, variance)) => normalized(p, x, mean, variance, layer.eps),
            None => by_batch(p, x, layer.eps),
        });
    }
}

#[test]
fn batch_norm_agrees_with_loops_in_training_and_evaluation() {
    check_all::<1>(&Array::waves(&[5, 3], 4));
    check_all::<1>(&Array::waves(&[3, 3, 4], 4));
    check_all::<2>(&Array::waves(&[2, 3, 4, 5], 4));
}

#[test]
fn running_averages_follow_the_batches() {
    for momentum in [Some(0.1), Some(0.5), None] {
        let layer = BatchNorm2d::new(3).with_momentum(momentum);
        fill(&layer);
        let (mut mean, mut variance) = (vec![0.0; 3], vec![1.0; 3]);
        for step in 0..4 {
            let x = Array::waves(&[2, 3, 4, 5], step);
            layer.forward(&tensor(&x));
            let (seen, squares, count) = moments(&x);
            let part = momentum.unwrap_or(1.0 / (step + 1) as f64);
            for c in 0..3 {
                mean[c] += part * (seen[c] - mean[c]);
                variance[c] += part * (squares[c] / (count - 1.0) - variance[c]);
            }
        }
        let running = layer.running.as_ref().unwrap();
        let expected = |data: Vec<f64>| Array { shape: vec![3], data };
        assert_close("mean", &array(&running.mean), &expected(mean), value_tolerance());
        assert_close("variance", &array(&running.variance), &expected(variance), value_tolerance());
        assert_eq!(running.batches.item::<i32>(), 4);
    }
}

#[test]
fn evaluation_leaves_the_averages_alone() {
    let layer = BatchNorm1d::new(2);
    layer.eval();
    layer.to_dtype(DType::F32);
    layer.forward(&Tensor::rand([4, 2]));
    let running = layer.running.as_ref().unwrap();
    assert_eq!((running.mean.to_vec::<f32>(), running.batches.item::<i32>()), (vec![0.0; 2], 0));
}

#[test]
fn averages_do_not_pile_up_where_nobody_takes_a_step() {
    let layer = BatchNorm1d::new(2);
    fill(&layer);
    for step in 0..200 {
        layer.forward(&tensor(&Array::waves(&[4, 2], step)));
    }
    assert_eq!(layer.running.as_ref().unwrap().batches.item::<i32>(), 200);
}

#[test]
fn an_empty_batch_counts_and_leaves_the_averages_alone() {
    fn check<const SPACE: usize>(empty: &[usize], full: &[usize]) {
        for momentum in [Some(0.1), None] {
            let layer = BatchNorm::<SPACE>::new(3).with_momentum(momentum);
            layer.forward(&Tensor::rand(full));
            let read = || {
                let running = layer.running.as_ref().expect("averages");
                (running.mean.to_vec::<f32>(), running.variance.to_vec::<f32>())
            };
            let before = read();
            let y = layer.forward(&Tensor::zeros(empty));
            assert_eq!((&y.shape()[..], y.dtype()), (empty, DType::F32));
            assert_eq!(y.sum().item::<f32>(), 0.0);
            assert_eq!(read(), before);
            assert_eq!(layer.running.as_ref().map(|r| r.batches.item::<i32>()), Some(2));
        }
    }
    check::<1>(&[0, 3], &[4, 3]);
    check::<1>(&[2, 3, 0], &[4, 3, 2]);
    check::<2>(&[0, 3, 4, 5], &[1, 3, 2, 2]);
}

#[test]
fn no_channels_are_normalized_to_none() {
    let layer = BatchNorm1d::new(0);
    for batch in [0, 1, 4] {
        assert_eq!(layer.try_forward(&Tensor::zeros([batch, 0])).is_ok(), batch != 1, "{batch}");
    }
    let error = BatchNorm1d::new(2).try_forward(&Tensor::zeros([1, 2])).expect_err("one value has no spread");
    assert!(error.to_string().contains("more than one value"), "{error}");
}
