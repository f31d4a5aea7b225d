//! Groups of parameters, what optimizers refuse, parameters that come and go, modules that move.

use crate::support::*;
use volta::optim::*;
use volta::{DType, Linear, Module, Optimizer, Tensor, last_plan};
use volta_testing::test;

fn leaf(values: &[f64]) -> Tensor {
    tensor(values, &[values.len()]).requires_grad(true)
}

#[test]
fn every_group_moves_by_its_own_options() {
    let _together = together();
    let (a, b) = (leaf(&[1.0]), leaf(&[1.0]));
    let mut sgd = SGD::with(vec![a.clone()], SGDOptions { learning_rate: 0.5, ..Default::default() });
    sgd.add_group(vec![b.clone()], SGDOptions { learning_rate: 0.25, momentum: 0.5, ..Default::default() });
    let step = |sgd: &mut SGD| {
        sgd.zero_grad();
        (&a + &b).sum().backward();
        sgd.step();
        (a.item::<f64>(), b.item::<f64>())
    };
    assert_eq!(step(&mut sgd), (0.5, 0.75));
    assert_eq!(step(&mut sgd), (0.0, 0.375), "only the second group has momentum");
    sgd.groups_mut()[1].options.momentum = 0.0;
    sgd.set_learning_rate(1.0);
    assert_eq!(step(&mut sgd), (-1.0, -0.625));
    assert_eq!(sgd.groups()[1].parameters().len(), 1);
    assert_eq!(sgd.parameters().len(), 2);
    sgd.set_learning_rates(&[0.0, 2.0]);
    assert_eq!(sgd.learning_rates(), [0.0, 2.0]);
}

#[test]
fn what_cannot_be_moved_is_refused_at_construction() {
    let _together = together();
    let (matrix, bias) = (Tensor::ones([2, 2]).requires_grad(true), Tensor::zeros([2]).requires_grad(true));
    let refused = |result: volta::Result<()>, words: &[&str]| {
        let error = result.expect_err("it is refused");
        assert!(words.iter().all(|w| error.to_string().contains(w)), "{error}");
        assert!(error.location().file().ends_with("groups.rs"), "{error}");
    };
    let muon = Muon::try_with(vec![matrix.clone(), bias.clone()], MuonOptions::default());
    refused(muon.map(drop), &["Muon", "[2]", "AdamW"]);
    let twice = SGD::try_with(vec![bias.clone(), bias.clone()], SGDOptions::default());
    refused(twice.map(drop), &["twice"]);
    let mut sgd = SGD::new(vec![bias.clone()], 0.1, 0.0, 0.0);
    refused(sgd.try_add_group(vec![bias.clone()], SGDOptions::default()), &["add_group", "twice"]);
    let result_of_op = Adam::try_with(vec![&matrix * 2.0], AdamOptions::default());
    refused(result_of_op.map(drop), &["Adam", "requires_grad(true)"]);
    for options in [
        SGDOptions { learning_rate: -1.0, ..Default::default() },
        SGDOptions { learning_rate: f64::NAN, ..Default::default() },
        SGDOptions { nesterov: true, ..Default::default() },
    ] {
        assert!(SGD::try_with(vec![bias.clone()], options).is_err());
    }
    let betas = AdamOptions { betas: (1.0, 0.9), ..Default::default() };
    refused(Adam::try_with(vec![bias], betas).map(drop), &["first beta is 1", "below 1"]);
}

#[test]
fn muon_panics_with_the_reason() {
    let _together = together();
    let bias = Tensor::zeros([3]).requires_grad(true);
    let make = std::panic::AssertUnwindSafe(|| drop(Muon::new(vec![bias], 0.02, 0.95, 0.0)));
    let panic = std::panic::catch_unwind(make);
    let message = panic.expect_err("a bias is no matrix").downcast::<String>().expect("words");
    assert!(message.contains("Muon moves matrices"), "{message}");
}

#[test]
fn a_parameter_that_joins_later_counts_its_own_steps() {
    let _together = together();
    let (a, b) = (leaf(&[1.0]), leaf(&[1.0]));
    let mut adam = Adam::new(vec![a.clone(), b.clone()], 0.1, (0.9, 0.999), 1e-8, 0.0);
    for step in 0..6 {
        adam.zero_grad();
        if step < 4 { a.sum() } else { &a.sum() + &b.sum() }.backward();
        adam.step();
    }
    // With a constant gradient every step of Adam is as long as the rate, if the corrections are those of its own steps.
    assert_close(&[a.item(), b.item()], &[0.4, 0.8], 1e-5, "six steps and two");
    let c = leaf(&[1.0]);
    adam.add_group(vec![c.clone()], AdamOptions { learning_rate: 0.1, ..Default::default() });
    adam.zero_grad();
    (a.sum() + c.sum()).backward();
    adam.step();
    assert_close(&[a.item(), b.item(), c.item()], &[0.3, 0.8, 0.9], 1e-5, "a group that came later");
}

#[test]
fn gradients_of_several_backward_passes_add_up() {
    let _together = together();
    let (problem, other) = (Problem::new(), Problem::new());
    let mut one = AdamW::new(problem.parameters.clone(), 0.05, (0.9, 0.999), 1e-8, 0.1);
    let mut two = AdamW::new(other.parameters.clone(), 0.05, (0.9, 0.999), 1e-8, 0.1);
    for step in 0..10 {
        one.zero_grad();
        (problem.loss(step) + problem.loss(step + 1)).backward();
        one.step();
        two.zero_grad();
        other.loss(step).backward();
        other.loss(step + 1).backward();
        two.step();
    }
    for (a, b) in problem.values().iter().zip(&other.values()) {
        assert_close(a, b, tolerance(), "one loss or two");
    }
}

#[test]
fn state_follows_a_module_that_is_converted() {
    let _together = together();
    let model = Linear::new(3, 2, true);
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let x = Tensor::ones([4, 3]);
    let mut step = |dtype: DType| {
        model.zero_grad();
        model.forward(&x.to_dtype(dtype)).square().sum().backward();
        adam.step();
    };
    step(DType::F32);
    model.to_dtype(DType::BF16);
    step(DType::BF16);
    model.to_dtype(DType::F32);
    step(DType::F32);
    assert!(model.parameters().iter().all(|p| p.dtype() == DType::F32));
}

#[test]
fn all_parameters_of_a_group_move_together() {
    let _together = together();
    let parameters: Vec<Tensor> = (1..=20).map(|n| Tensor::ones([n, 3]).requires_grad(true)).collect();
    let kernels = |optimizer: &mut dyn Optimizer| {
        for _ in 0..3 {
            let loss = parameters.iter().map(|p| p.square().sum()).reduce(|a, b| a + b).expect("a sum");
            loss.backward();
            volta::realize_all(&parameters.iter().filter_map(Tensor::grad).collect::<Vec<_>>());
            optimizer.step();
            optimizer.zero_grad();
        }
        last_plan().expect("a plan").kernels.len()
    };
    let all = || parameters.clone();
    assert_eq!(kernels(&mut SGD::new(all(), 0.1, 0.9, 0.1)), 1);
    assert_eq!(kernels(&mut AdamW::new(all(), 0.1, (0.9, 0.999), 1e-8, 0.1)), 1);
    assert_eq!(kernels(&mut RMSprop::new(all(), 0.1, 0.9, 0.9)), 1);
    assert_eq!(kernels(&mut Adagrad::new(all(), 0.1, 0.0)), 1);
    // Its moment and its step do not depend on each other.
    assert!(kernels(&mut Lion::new(all(), 0.1, (0.9, 0.99), 0.1)) <= 2);
}
