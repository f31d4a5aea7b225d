//! What optimizers save: training goes on to the same bits.

use crate::support::*;
use volta::optim::*;
use volta::{GradScaler, Optimizer, State, StateDict, Stateful, Tensor, Value};
use volta_testing::test;

/// What comes back from a file: the same values in tensors of their own.
fn through_a_file(state: &State) -> State {
    let copy = |t: &Tensor| {
        let shape = t.shape();
        let here = match t.dtype() {
            volta::DType::I32 => Tensor::from_vec(t.to_vec::<i32>(), &shape[..]),
            volta::DType::F64 => Tensor::from_vec(t.to_vec::<f64>(), &shape[..]),
            _ => Tensor::from_vec(t.to_vec::<f32>(), &shape[..]),
        };
        here.to_dtype(t.dtype())
    };
    let tensors: StateDict = state.tensors.iter().map(|(name, t)| (name.to_string(), copy(t))).collect();
    State { values: state.values.clone(), tensors }
}

type Make = fn(Vec<Tensor>) -> Box<dyn Optimizer>;

const OPTIMIZERS: [(&str, Make); 9] = [
    ("SGD", |p| {
        let (learning_rate, momentum, dampening) = (0.05, 0.9, 0.3);
        Box::new(SGD::with(p, SGDOptions { learning_rate, momentum, dampening, ..Default::default() }))
    }),
    ("SGD without momentum", |p| Box::new(SGD::new(p, 0.05, 0.0, 0.1))),
    ("Adam", |p| Box::new(Adam::new(p, 0.05, (0.9, 0.999), 1e-8, 0.1))),
    ("AMSGrad", |p| Box::new(Adam::with(p, AdamOptions { amsgrad: true, ..Default::default() }))),
    ("AdamW in groups", |p| {
        let mut adam = AdamW::new(vec![p[0].clone()], 0.05, (0.9, 0.999), 1e-8, 0.1);
        adam.add_group(vec![p[1].clone()], AdamWOptions { betas: (0.5, 0.9), ..Default::default() });
        Box::new(adam)
    }),
    ("RMSprop", |p| {
        let (momentum, centered) = (0.9, true);
        Box::new(RMSprop::with(p, RMSpropOptions { momentum, centered, ..Default::default() }))
    }),
    ("Adagrad", |p| {
        let (rate_decay, initial_sum) = (0.1, 0.5);
        Box::new(Adagrad::with(p, AdagradOptions { rate_decay, initial_sum, ..Default::default() }))
    }),
    ("Lion", |p| Box::new(Lion::new(p, 0.01, (0.9, 0.99), 0.1))),
    ("Muon", |p| Box::new(Muon::new(vec![p[0].clone()], 0.02, 0.9, 0.1))),
];

/// Steps of training; every third one overflows if there is a scaler.
fn train(
    problem: &Problem,
    optimizer: &mut dyn Optimizer,
    scaler: Option<&mut GradScaler>,
    steps: std::ops::Range<usize>,
) {
    let Some(scaler) = scaler else { return problem.train(optimizer, steps) };
    for step in steps {
        problem.parameters.iter().for_each(Tensor::zero_grad);
        let loss = problem.loss(step) * if step % 3 == 1 { f64::INFINITY } else { 1.0 };
        scaler.scale(&loss).backward();
        scaler.step(optimizer);
    }
}

#[test]
fn training_goes_on_to_the_same_bits() {
    let _together = together();
    for (name, make) in OPTIMIZERS {
        for scaled in [false, true] {
            let problem = Problem::new();
            let mut optimizer = make(problem.parameters.clone());
            let mut scaler = scaled.then(|| GradScaler::with(8.0, 2.0, 0.5, 2));
            train(&problem, &mut *optimizer, scaler.as_mut(), 0..5);
            optimizer.set_learning_rate(0.03);

            let resumed = Problem::new();
            for (new, old) in resumed.parameters.iter().zip(&problem.parameters) {
                new.assign(&tensor(&old.to_vec::<f64>(), &old.shape()));
            }
            let mut other = make(resumed.parameters.clone());
            other.load_state(&through_a_file(&optimizer.state())).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(other.learning_rates(), optimizer.learning_rates());
            let mut other_scaler = scaler.as_ref().map(|s| {
                let mut new = GradScaler::new();
                new.load_state(&through_a_file(&s.state())).expect("it fits");
                new
            });
            train(&problem, &mut *optimizer, scaler.as_mut(), 5..12);
            train(&resumed, &mut *other, other_scaler.as_mut(), 5..12);
            let (ours, theirs) = (bits(&resumed.parameters), bits(&problem.parameters));
            assert_eq!(ours, theirs, "{name}, scaled: {scaled}");
        }
    }
}

#[test]
fn state_is_named_by_the_number_of_the_parameter() {
    let _together = together();
    let problem = Problem::new();
    let mut adam = Adam::new(problem.parameters.clone(), 0.05, (0.9, 0.999), 1e-8, 0.0);
    problem.train(&mut adam, 0..2);
    let state = adam.state();
    let names: Vec<&str> = state.tensors.names().collect();
    assert_eq!(names, ["0.exp_avg", "0.exp_avg_sq", "1.exp_avg", "1.exp_avg_sq"]);
    assert_eq!(state.int("1.step").unwrap(), 2);
    assert_eq!(state.float("groups.0.learning_rate").unwrap(), 0.05);
    assert_eq!(state.int("groups.0.parameters").unwrap(), 2);
    assert_eq!(state.float("groups.0.beta2").unwrap(), 0.999);
}

#[test]
fn a_state_that_does_not_fit_is_refused_and_changes_nothing() {
    let _together = together();
    let problem = Problem::new();
    let mut adam = Adam::new(problem.parameters.clone(), 0.05, (0.9, 0.999), 1e-8, 0.0);
    problem.train(&mut adam, 0..2);
    let good = adam.state();
    let mut fewer = Adam::new(problem.parameters[..1].to_vec(), 0.5, (0.9, 0.999), 1e-8, 0.0);
    let mut swapped: Vec<Tensor> = problem.parameters.clone();
    swapped.reverse();
    let mut swapped = Adam::new(swapped, 0.5, (0.9, 0.999), 1e-8, 0.0);
    let mut grouped = Adam::new(problem.parameters[..1].to_vec(), 0.5, (0.9, 0.999), 1e-8, 0.0);
    grouped.add_group(problem.parameters[1..].to_vec(), AdamOptions::default());
    let mut sgd = SGD::new(problem.parameters.clone(), 0.5, 0.9, 0.0);
    let refused = |optimizer: &mut dyn Optimizer, state: &State, words: &str| {
        let before = optimizer.learning_rates();
        let error = optimizer.load_state(state).expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!((error.kind(), error.op()), (volta::ErrorKind::Data, "load_state"));
        assert_eq!(optimizer.learning_rates(), before);
    };
    refused(&mut fewer, &good, "2 parameters, and there are 1");
    refused(&mut swapped, &good, "exp_avg of parameter 0 was saved with shape [2, 3]");
    refused(&mut grouped, &good, "1 groups");
    refused(&mut sgd, &good, "momentum");
    let mut odd = good.clone();
    odd.tensors.insert("0.velocity", Tensor::zeros([1]));
    refused(&mut swapped, &odd, "");
    refused(&mut adam, &odd, "\"0.velocity\", which Adam does not know");
    let mut odd = good.clone();
    odd.values.insert("groups.0.amsgrad".into(), Value::Text("yes".into()));
    refused(&mut adam, &odd, "amsgrad");
    adam.load_state(&good).expect("its own state fits");
}

#[test]
fn a_loaded_state_is_a_copy() {
    let _together = together();
    let problem = Problem::new();
    let mut first = SGD::new(problem.parameters.clone(), 0.05, 0.9, 0.0);
    problem.train(&mut first, 0..2);
    let mut second = SGD::new(problem.parameters.clone(), 0.05, 0.9, 0.0);
    second.load_state(&first.state()).expect("it fits");
    let before = bits(&[first.state().tensor("0.momentum_buffer").unwrap().clone()]);
    problem.train(&mut second, 2..4);
    assert_eq!(bits(&[first.state().tensor("0.momentum_buffer").unwrap().clone()]), before);
}
