//! PyTorch's numbers: 25 steps of `torch.optim` 2.15 in float64 on the problem of `support`, of which W[0, 0], W[1, 2] and
//! b[1] are written down. Its Muon orthogonalises in bfloat16; here that one line was changed to float64.

use crate::support::*;
use volta::Optimizer;
use volta::optim::*;
use volta_testing::test;

fn check(name: &str, optimizer: impl FnOnce(&Problem) -> Box<dyn Optimizer>, expected: &[f64]) {
    let _together = together();
    let problem = Problem::new();
    problem.train(&mut *optimizer(&problem), 0..25);
    let values = problem.values();
    let ours = [values[0][0], values[0][5], values[1][1]];
    let tolerance = if name.starts_with("Muon") { 100.0 * tolerance() } else { 2.0 * tolerance() };
    assert_close(&ours[..expected.len()], expected, tolerance, name);
}

fn with<R: Rule + 'static>(options: R) -> impl FnOnce(&Problem) -> Box<dyn Optimizer> {
    let count = if R::NAME == "Muon" { 1 } else { 2 };
    move |problem| Box::new(RuleOptimizer::with(problem.parameters[..count].to_vec(), options))
}

#[test]
fn twenty_five_steps_of_sgd() {
    let sgd = |momentum, dampening, weight_decay, nesterov| {
        with(SGDOptions { learning_rate: 0.05, momentum, dampening, weight_decay, nesterov })
    };
    let plain = [0.2756490749173195, -0.5199814465777344, -0.16255641313474295];
    check("plain", sgd(0.0, 0.0, 0.0, false), &plain);
    let dampened = [0.05226104410625922, -0.4517663525649764, 0.055621290540533955];
    check("momentum, dampening and weight decay", sgd(0.9, 0.3, 0.1, false), &dampened);
    let nesterov = [0.12531224657915144, -0.46324965157939685, -0.018375230785052876];
    check("Nesterov", sgd(0.9, 0.0, 0.1, true), &nesterov);
}

#[test]
fn twenty_five_steps_of_adam_and_adamw() {
    let learning_rate = 0.05;
    let adam = [0.023329117251332646, -0.4585123473222767, 0.07987747292875923];
    check("Adam", with(AdamOptions { learning_rate, ..Default::default() }), &adam);
    let amsgrad = [0.10252783995181673, -0.4386484293392519, -0.002253882472650657];
    let (betas, weight_decay) = ((0.8, 0.95), 0.1);
    let options = AdamOptions { learning_rate, betas, weight_decay, amsgrad: true, ..Default::default() };
    check("AMSGrad", with(options), &amsgrad);
    let adamw = [-0.00930272168816494, -0.45826402041506104, 0.10538548184975856];
    check("AdamW", with(AdamWOptions { learning_rate, weight_decay, ..Default::default() }), &adamw);
    let groups = [-0.03503503168281816, -0.45808517601602733, -0.6733913935257932];
    let two_groups = |problem: &Problem| -> Box<dyn Optimizer> {
        let options =
            |learning_rate, weight_decay| AdamWOptions { learning_rate, weight_decay, ..Default::default() };
        let mut adam = AdamW::with(vec![problem.parameters[0].clone()], options(0.05, 0.2));
        adam.add_group(vec![problem.parameters[1].clone()], options(0.01, 0.0));
        Box::new(adam)
    };
    check("AdamW in two groups", two_groups, &groups);
}

#[test]
fn twenty_five_steps_of_rmsprop_and_adagrad() {
    let rmsprop = [0.3426016730663626, -0.4887650588325485, -0.24245611421289295];
    check("RMSprop", with(RMSpropOptions::default()), &rmsprop);
    let centered = [0.25237804518124757, -0.4374486791577461, -0.1543677040283709];
    let (alpha, momentum, weight_decay) = (0.9, 0.5, 0.1);
    let options = RMSpropOptions { alpha, momentum, weight_decay, centered: true, ..Default::default() };
    check("RMSprop, centered", with(options), &centered);
    let adagrad = [0.3550862617824221, -0.4887650588325485, -0.25512887449643334];
    check("Adagrad", with(AdagradOptions { learning_rate: 0.1, ..Default::default() }), &adagrad);
    let all = [0.5055453840527867, -0.4565489834222379, -0.4084508554290347];
    let (learning_rate, rate_decay, initial_sum) = (0.1, 0.05, 0.5);
    let options =
        AdagradOptions { learning_rate, rate_decay, weight_decay, initial_sum, ..Default::default() };
    check("Adagrad with every option", with(options), &all);
}

#[test]
fn twenty_five_steps_of_muon() {
    let weight_decay = 0.1;
    check(
        "Muon",
        with(MuonOptions { weight_decay, ..Default::default() }),
        &[0.7170607883820356, -0.5148953932796699],
    );
    let plain = MuonOptions { momentum: 0.9, nesterov: false, ..Default::default() };
    check("Muon without Nesterov", with(plain), &[0.7573390449344958, -0.5437110450633151]);
}
