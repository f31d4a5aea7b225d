//! What is done with gradients before a step and with parameters after it.

use crate::support::*;
use volta::optim::*;
use volta::{DType, Stateful, Tensor};
use volta_testing::test;

fn with_gradient(values: &[f64], shape: &[usize]) -> Tensor {
    let p = tensor(&vec![0.0; values.len()], shape).requires_grad(true);
    (&p * &tensor(values, shape)).sum().backward();
    p
}

fn gradient(p: &Tensor) -> Vec<f64> {
    p.grad().expect("a gradient").to_vec()
}

#[test]
fn a_norm_is_clipped_as_pytorch_clips_it() {
    let _together = together();
    // torch.nn.utils.clip_grad_norm_ of (3, −4) and (12) to 2.5: 13, and then (0.5769, −0.7692) and (2.3077).
    let (a, b) = (with_gradient(&[3.0, -4.0], &[2]), with_gradient(&[12.0], &[1, 1]));
    let without = Tensor::zeros([5]).requires_grad(true);
    let all = [a.clone(), without.clone(), b.clone()];
    let norm = clip_grad_norm(&all, 2.5);
    assert_eq!(norm.item::<f64>(), 13.0);
    assert_close(&gradient(&a), &[3.0 * 2.5 / 13.000001, -4.0 * 2.5 / 13.000001], tolerance(), "clipped");
    assert_close(&gradient(&b), &[12.0 * 2.5 / 13.000001], tolerance(), "clipped");
    assert!(without.grad().is_none());
    let before = gradient(&a);
    clip_grad_norm(&all, 100.0);
    assert_eq!(gradient(&a), before, "what is short enough stays");
    assert_eq!(clip_grad_norm(&[without], 1.0).item::<f32>(), 0.0, "nothing to clip");
    assert!(try_clip_grad_norm(&[a], -1.0).is_err());
}

#[test]
fn a_norm_that_is_not_finite_makes_the_gradients_nan() {
    let _together = together();
    let (a, b) = (with_gradient(&[f64::INFINITY], &[1]), with_gradient(&[1.0], &[1]));
    assert_eq!(clip_grad_norm(&[a.clone(), b.clone()], 1.0).item::<f32>(), f32::INFINITY);
    assert!(gradient(&a)[0].is_nan());
    assert_eq!(gradient(&b), [0.0]);
    let c = with_gradient(&[f64::NAN], &[1]);
    assert!(clip_grad_norm(&[c.clone(), b.clone()], 1.0).item::<f32>().is_nan());
    assert!(gradient(&b)[0].is_nan());
}

#[test]
fn the_norm_of_half_precision_gradients_does_not_overflow() {
    let _together = together();
    let p = Tensor::zeros([3]).to_dtype(DType::F16).requires_grad(true);
    (&p * &Tensor::vector(&[300.0, 400.0, 0.0]).to_dtype(DType::F16)).sum().backward();
    assert_eq!(clip_grad_norm(std::slice::from_ref(&p), 1.0).item::<f32>(), 500.0);
    assert_eq!(p.grad().expect("a gradient").dtype(), DType::F16);
    assert_close(&gradient(&p), &[0.6, 0.8, 0.0], 1e-3, "in half precision");

    // The factor is no half, and what it makes of the gradient is.
    let p = Tensor::zeros([1]).to_dtype(DType::F16).requires_grad(true);
    (&p * &Tensor::vector(&[60_000.0]).to_dtype(DType::F16)).sum().backward();
    clip_grad_norm(std::slice::from_ref(&p), 0.001);
    let clipped = p.grad().expect("a gradient").to_vec::<f32>()[0];
    assert!((clipped - 0.001).abs() < 2e-6, "{clipped}");
}

#[test]
fn values_are_clipped_one_by_one() {
    let _together = together();
    let p = with_gradient(&[3.0, -0.25, -7.0, f64::NAN], &[4]);
    clip_grad_value(std::slice::from_ref(&p), 0.5);
    let clipped = gradient(&p);
    assert_eq!(clipped[..3], [0.5, -0.25, -0.5]);
    assert!(clipped[3].is_nan());
    assert!(try_clip_grad_value(&[p], f64::NAN).is_err());
}

#[test]
fn many_gradients_of_all_sizes_have_the_norm_of_all_their_elements() {
    let _together = together();
    let sizes = [1, 3, 100, 5000, 1 << 17, 7, 64, 2, 9, 33, 4096, 1, 1, 1, 8, 70_000, 5, 6];
    let all: Vec<Tensor> = sizes.iter().zip(0..).map(|(&n, k)| with_gradient(&start(n, k), &[n])).collect();
    let squares = |k: usize| start(sizes[k], k).iter().map(|x| x * x).sum::<f64>();
    let expected = (0..sizes.len()).map(squares).sum::<f64>().sqrt();
    assert_close(&[clip_grad_norm(&all, 1.0).item()], &[expected], 10.0 * tolerance(), "the norm");
    let (first, factor) = (gradient(&all[0])[0], 1.0 / (expected + 1e-6));
    assert_close(&[first], &[factor * start(1, 0)[0]], tolerance(), "all are clipped");
}

#[test]
fn clipping_every_step_is_part_of_its_plan() {
    let _alone = alone();
    let problem = Problem::new();
    let mut adam = Adam::new(problem.parameters.clone(), 0.05, (0.9, 0.999), 1e-8, 0.0);
    let mut norms = Vec::new();
    let mut train = |steps: usize| {
        for step in 0..steps {
            adam.zero_grad();
            problem.loss(step).backward();
            norms.push(clip_grad_norm(&problem.parameters, 0.5));
            clip_grad_value(&problem.parameters, 0.3);
            adam.step();
        }
    };
    train(3);
    let ((), spent) = counted(|| train(10));
    assert_eq!((spent.plans_compiled, spent.plans_replayed, copies(&spent)), (0, 10, 0));
    let ((), spent) = counted(|| assert!(norms[12].item::<f64>() < norms[0].item::<f64>()));
    assert_eq!(spent.kernels_run, 0, "norms were computed along with the steps");
}

#[test]
fn an_average_follows_its_formula_and_is_exchanged_without_a_copy() {
    let _alone = alone();
    let problem = Problem::new();
    let mut sgd = SGD::new(problem.parameters.clone(), 0.05, 0.9, 0.0);
    let mut ema = Ema::new(problem.parameters.clone(), 0.8);
    let mut expected = problem.values();
    for step in 0..10 {
        problem.train(&mut sgd, step..step + 1);
        ema.update();
        for (average, p) in expected.iter_mut().flatten().zip(problem.values().iter().flatten()) {
            *average = 0.8 * *average + 0.2 * p;
        }
    }
    let trained = problem.values();
    let ((), spent) = counted(|| ema.swap());
    assert_eq!((spent.kernels_run, copies(&spent)), (0, 0));
    for (ours, theirs) in problem.values().iter().zip(&expected) {
        assert_close(ours, theirs, tolerance(), "the averages stand in");
    }
    assert!(ema.try_update().is_err(), "averages are not averaged");
    ema.swap();
    assert_eq!(problem.values(), trained, "and go back");
    let other = Problem::new();
    ema.copy_to(&other.parameters);
    for (ours, theirs) in other.values().iter().zip(&expected) {
        assert_close(ours, theirs, tolerance(), "copies");
    }
    assert!(ema.try_copy_to(&other.parameters[..1]).is_err());
    problem.train(&mut sgd, 10..13);
    let mut steps = || {
        for step in 13..20 {
            problem.train(&mut sgd, step..step + 1);
            ema.update();
        }
    };
    steps();
    let ((), spent) = counted(steps);
    assert_eq!((spent.plans_compiled, spent.plans_replayed, copies(&spent)), (0, 14, 0));
}

#[test]
fn averages_go_on_where_they_stopped() {
    let _together = together();
    let problem = Problem::new();
    let mut ema = Ema::new(problem.parameters.clone(), 0.5);
    problem.train(&mut SGD::new(problem.parameters.clone(), 0.1, 0.0, 0.0), 0..3);
    ema.update();
    let mut resumed = Ema::new(problem.parameters.clone(), 0.9);
    resumed.load_state(&ema.state()).expect("it fits");
    assert_eq!(bits(resumed.averages()), bits(ema.averages()));
    ema.update();
    assert_ne!(bits(resumed.averages()), bits(ema.averages()), "each has its own");
    resumed.update();
    assert_eq!(bits(resumed.averages()), bits(ema.averages()));
    let mut fewer = Ema::new(problem.parameters[..1].to_vec(), 0.9);
    assert!(fewer.load_state(&ema.state()).is_err());
    assert!(Ema::try_new(Vec::new(), 1.5).is_err());
}

/// A condition is one truth value, whatever its type and axes.
#[test]
fn a_step_takes_one_condition() {
    let _together = together();
    let w = Tensor::ones([5000]).requires_grad(true);
    let mut sgd = SGD::new(vec![w.clone()], 0.5, 0.0, 0.0);
    w.sum().backward();
    for (condition, expected) in [
        (Tensor::full([1], true), 0.5),
        (Tensor::scalar(1.0), 0.0),
        (Tensor::full([1, 1], 0), 0.0),
        (Tensor::scalar(0.25), -0.5),
    ] {
        sgd.try_step_if(Some(&condition)).expect("one truth value");
        assert_eq!(w.to_vec::<f32>(), vec![expected; 5000], "{condition:?}");
    }
    let error = sgd.try_step_if(Some(&Tensor::full([2], true))).expect_err("two conditions");
    assert!(error.to_string().contains("shape [2]"), "{error}");
}

/// Rates that have nearly vanished move nothing, and so do not what has had no gradient.
#[test]
fn the_smallest_rates_move_nothing() {
    let _together = together();
    for rate in [1e-30, 1e-37, 1e-39, 1e-45, 0.0] {
        let w = tensor(&[1.0, -2.0], &[2]).requires_grad(true);
        let mut adam = Adam::new(vec![w.clone()], rate, (0.9, 0.999), 1e-8, 0.0);
        for _ in 0..3 {
            adam.zero_grad();
            (&w * &tensor(&[1.0, 0.0], &[2])).sum().backward();
            adam.step();
        }
        assert_eq!(w.to_vec::<f32>(), [1.0, -2.0], "rate {rate}");
    }
}
