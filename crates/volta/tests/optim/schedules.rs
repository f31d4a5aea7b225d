//! Schedules against PyTorch's tables (`torch.optim.lr_scheduler` 2.15, base rate 0.4, the rate of each step) and
//! against closed forms.

use crate::support::*;
use volta::optim::*;
use volta::{Optimizer, Stateful, Tensor};
use volta_testing::test;

fn sgd(rate: f64) -> SGD {
    SGD::new(vec![Tensor::zeros([1]).requires_grad(true)], rate, 0.0, 0.0)
}

/// The rates of the first steps.
fn rates(schedule: impl Schedule + 'static, count: usize) -> Vec<f64> {
    let mut optimizer = sgd(0.4);
    let mut scheduler = Scheduler::new(schedule, &mut optimizer);
    (0..count)
        .map(|_| {
            let rate = optimizer.learning_rates()[0];
            assert_eq!(rate, scheduler.rate());
            scheduler.step(&mut optimizer);
            rate
        })
        .collect()
}

fn check(name: &str, schedule: impl Schedule + 'static, table: [f64; 14]) {
    assert_close(&rates(schedule, 14), &table, 1e-10, name);
}

#[test]
fn decays_are_pytorchs() {
    let _together = together();
    let table = [0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025];
    check("StepLR", StepLR::new(3, 0.5), table);
    let table =
        [0.4, 0.4, 0.12, 0.12, 0.12, 0.036, 0.036, 0.036, 0.036, 0.0108, 0.0108, 0.0108, 0.0108, 0.0108];
    check("MultiStepLR", MultiStepLR::new(&[2, 5, 9], 0.3), table);
    let table = [
        0.4,
        0.36,
        0.324,
        0.2916,
        0.26244,
        0.236196,
        0.2125764,
        0.19131876,
        0.172186884,
        0.1549681956,
        0.139471376,
        0.1255242384,
        0.1129718146,
        0.1016746331,
    ];
    check("ExponentialLR", ExponentialLR::new(0.9), table);
    let table = [0.1, 0.16, 0.22, 0.28, 0.34, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4];
    check("LinearLR", LinearLR::new(0.25, 1.0, 5), table);
}

#[test]
fn cosines_are_pytorchs() {
    let _together = together();
    let table = [
        0.4,
        0.394914818,
        0.3799548045,
        0.3559893809,
        0.3244113307,
        0.2870558552,
        0.246093919,
        0.203906081,
        0.1629441448,
        0.1255886693,
        0.09401061907,
        0.07004519551,
        0.05508518195,
        0.05,
    ];
    check("CosineAnnealingLR", CosineAnnealingLR::new(13, 0.05), table);
    assert_eq!(CosineAnnealingLR::new(13, 0.05).rate(0.4, 20), 0.05, "it stays at the minimum");
    let table = [
        0.4,
        0.3125,
        0.1375,
        0.4,
        0.3765544457,
        0.3125,
        0.225,
        0.1375,
        0.07344555434,
        0.4,
        0.3940370196,
        0.3765544457,
        0.3487436867,
        0.3125,
    ];
    check("restarts", CosineAnnealingLR::new(3, 0.05).with_restarts(2), table);
    let even = CosineAnnealingLR::new(3, 0.05).with_restarts(1);
    assert!((0..9).all(|k| even.rate(0.4, k) == even.rate(0.4, k + 3_000_000_000)));
}

#[test]
fn restarts_end_whatever_the_field_says() {
    let restarting =
        |restarts| CosineAnnealingLR { restarts: Some(restarts), ..CosineAnnealingLR::new(3, 0.05) };
    // None longer than the one before is as long: the setter takes 0 for 1, too.
    assert!((0..9).all(|k| restarting(0).rate(0.4, k) == restarting(1).rate(0.4, k)));
    for longer in [2, 1 << 40, u64::MAX] {
        assert!(restarting(longer).rate(0.4, u64::MAX).is_finite(), "{longer}");
    }
}

#[test]
fn one_cycle_is_pytorchs() {
    let _together = together();
    let table = [
        0.016,
        0.1013305153,
        0.281475219,
        0.3963107738,
        0.3934589988,
        0.3676177505,
        0.3246982616,
        0.2690735346,
        0.2064110899,
        0.1430955103,
        0.08557792567,
        0.03971871676,
        0.01019040984,
        1.6e-06,
    ];
    check("OneCycleLR", OneCycleLR::new(14), table);
    let table = [
        0.04,
        0.1,
        0.16,
        0.22,
        0.28,
        0.34,
        0.4,
        0.3429142857,
        0.2858285714,
        0.2287428571,
        0.1716571429,
        0.1145714286,
        0.05748571429,
        0.0004,
    ];
    let lines = OneCycleLR {
        up: 0.5,
        start_divisor: 10.0,
        final_divisor: 100.0,
        linear: true,
        ..OneCycleLR::new(14)
    };
    assert_eq!(lines.rate(0.4, 100), lines.rate(0.4, 13), "it stays at the end");
    check("OneCycleLR of lines", lines, table);
}

#[test]
fn schedules_of_schedules_are_pytorchs() {
    let _together = together();
    let warm = || LinearLR::new(0.1, 1.0, 4);
    let table = [
        0.04,
        0.13,
        0.22,
        0.31,
        0.4,
        0.32,
        0.256,
        0.2048,
        0.16384,
        0.131072,
        0.1048576,
        0.08388608,
        0.067108864,
        0.0536870912,
    ];
    check("SequentialLR", SequentialLR::new(warm()).then(4, ExponentialLR::new(0.8)), table);
    let table = [
        0.04,
        0.104,
        0.1408,
        0.15872,
        0.16384,
        0.131072,
        0.1048576,
        0.08388608,
        0.067108864,
        0.0536870912,
        0.04294967296,
        0.03435973837,
        0.02748779069,
        0.02199023256,
    ];
    check("ChainedLR", ChainedLR::new(warm()).and(ExponentialLR::new(0.8)), table);
}

#[test]
fn a_warmup_climbs_evenly_to_the_first_rate_of_what_follows() {
    let _together = together();
    let expected = [0.08, 0.16, 0.24, 0.32, 0.4, 0.2, 0.1];
    assert_close(&rates(WarmupLR::new(4, ExponentialLR::new(0.5)), 7), &expected, 1e-12, "warmup");
    assert_eq!(rates(WarmupLR::new(0, ExponentialLR::new(0.5)), 2), [0.4, 0.2]);
}

const METRICS: [f64; 14] = [1.0, 0.9, 0.95, 0.91, 0.92, 0.89, 0.895, 0.8895, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0];

fn on_plateaus(options: PlateauOptions) -> Vec<f64> {
    let mut optimizer = sgd(0.4);
    let mut scheduler = Scheduler::new(ReduceLROnPlateau::new(options), &mut optimizer);
    let mut rate = |metric: f64| {
        scheduler.step_with(metric, &mut optimizer);
        optimizer.learning_rates()[0]
    };
    METRICS.iter().map(|&m| rate(m)).collect()
}

#[test]
fn a_rate_falls_on_plateaus_as_pytorchs_does() {
    let _together = together();
    let options = PlateauOptions { factor: 0.5, patience: 1, ..Default::default() };
    let table = [0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05, 0.025];
    assert_close(&on_plateaus(options.clone()), &table, 1e-12, "patience");
    let table = [0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.15, 0.15, 0.15, 0.15, 0.15];
    let cooling = PlateauOptions { cooldown: 2, minimum: 0.15, ..options };
    assert_close(&on_plateaus(cooling), &table, 1e-12, "cooldown and a minimum");
    let growing = PlateauOptions { factor: 0.5, patience: 0, larger_is_better: true, ..Default::default() };
    let table: Vec<f64> = (0..14).map(|k| 0.4 * 0.5f64.powi(k)).collect();
    assert_close(&on_plateaus(growing), &table, 1e-12, "larger is better");
}

#[test]
fn every_group_is_scheduled_from_its_own_rate() {
    let _together = together();
    let mut optimizer = sgd(0.4);
    let group = || vec![Tensor::zeros([2]).requires_grad(true)];
    optimizer.add_group(group(), SGDOptions { learning_rate: 0.04, ..Default::default() });
    let mut scheduler = Scheduler::new(StepLR::new(1, 0.5), &mut optimizer);
    scheduler.step(&mut optimizer);
    assert_eq!(optimizer.learning_rates(), [0.2, 0.02]);
    optimizer.add_group(group(), SGDOptions { learning_rate: 1.0, ..Default::default() });
    scheduler.step(&mut optimizer);
    assert_eq!(optimizer.learning_rates(), [0.1, 0.01, 0.25], "one that came later too");
}

#[test]
fn what_begins_later_looks_at_metrics_only_then() {
    let _together = together();
    let plateau =
        || ReduceLROnPlateau::new(PlateauOptions { factor: 0.5, patience: 1, ..Default::default() });
    let later: [Box<dyn Schedule>; 2] = [
        Box::new(SequentialLR::new(ExponentialLR::new(1.0)).then(5, plateau())),
        Box::new(WarmupLR::new(5, plateau())),
    ];
    for schedule in later {
        let mut optimizer = sgd(1.0);
        let mut scheduler = Scheduler::new(schedule, &mut optimizer);
        (0..5).for_each(|_| scheduler.step_with(3.0, &mut optimizer));
        assert_eq!(scheduler.rate(), 1.0, "nothing was lowered before its turn");
        (0..3).for_each(|_| scheduler.step_with(3.0, &mut optimizer));
        assert_eq!(scheduler.rate(), 0.5);
    }
}

#[test]
fn a_scheduler_goes_on_where_it_stopped() {
    let _together = together();
    let new = || {
        let plateau = PlateauOptions { factor: 0.5, patience: 1, ..Default::default() };
        let chain = ChainedLR::new(ExponentialLR::new(0.9)).and(ReduceLROnPlateau::new(plateau));
        SequentialLR::new(LinearLR::new(0.1, 1.0, 3)).then(3, WarmupLR::new(2, chain))
    };
    let mut first = sgd(0.4);
    let mut scheduler = Scheduler::new(new(), &mut first);
    METRICS[..7].iter().for_each(|&m| scheduler.step_with(m, &mut first));
    let (mut second, saved) = (sgd(0.7), scheduler.state());
    let mut resumed = Scheduler::new(new(), &mut second);
    resumed.load_state(&saved).expect("it fits");
    assert_eq!((resumed.rate(), resumed.steps()), (scheduler.rate(), 7));
    for &m in &METRICS[7..] {
        scheduler.step_with(m, &mut first);
        resumed.step_with(m, &mut second);
        assert_eq!(first.learning_rates(), second.learning_rates());
    }
    assert!(resumed.load_state(&volta::State::new()).is_err());
    assert_eq!(resumed.steps(), 14, "an error changes nothing");
}

#[test]
fn another_rate_every_step_compiles_nothing_and_copies_nothing() {
    let _alone = alone();
    let problem = Problem::new();
    let mut optimizers: Vec<Box<dyn Optimizer>> = vec![
        Box::new(SGD::new(problem.parameters.clone(), 0.1, 0.9, 0.1)),
        Box::new(Adam::new(problem.parameters.clone(), 0.1, (0.9, 0.999), 1e-8, 0.0)),
        Box::new(AdamW::new(problem.parameters.clone(), 0.1, (0.9, 0.999), 1e-8, 0.1)),
        Box::new(RMSprop::new(problem.parameters.clone(), 0.1, 0.9, 0.9)),
        Box::new(Adagrad::new(problem.parameters.clone(), 0.1, 0.1)),
        Box::new(Lion::new(problem.parameters.clone(), 0.1, (0.9, 0.99), 0.1)),
        Box::new(Muon::new(vec![problem.parameters[0].clone()], 0.1, 0.9, 0.1)),
    ];
    for optimizer in &mut optimizers {
        let optimizer = &mut **optimizer;
        let schedule = WarmupLR::new(5, CosineAnnealingLR::new(10, 0.0));
        let mut scheduler = Scheduler::new(schedule, optimizer);
        let mut train = |steps: std::ops::Range<usize>| {
            for step in steps {
                problem.train(optimizer, step..step + 1);
                scheduler.step(optimizer);
            }
        };
        train(0..3);
        let ((), spent) = counted(|| train(3..20));
        let seen = (spent.plans_compiled, spent.plans_replayed, copies(&spent));
        assert_eq!(seen, (0, 17, 0), "one plan a step, to a rate of 0 and beyond");
    }
}
