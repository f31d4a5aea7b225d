//! Loss scaling with optimizers that count, with clipping, and what is saved of it.

use crate::support::*;
use volta::optim::*;
use volta::{
    DType, ErrorKind, GradScaler, Linear, Module, Optimizer, Stateful, Tensor, autocast, last_plan,
    realize_all,
};
use volta_testing::test;

/// One step with a loss of `slope · w`; a slope of infinity overflows.
fn scaled_step(w: &Tensor, optimizer: &mut dyn Optimizer, scaler: &mut GradScaler, slope: f64) {
    optimizer.zero_grad();
    scaler.scale(&(w * slope).sum()).backward();
    scaler.step(optimizer);
}

#[test]
fn steps_that_were_skipped_do_not_count() {
    let _alone = alone();
    let slopes = [f64::INFINITY, 0.5, -0.25, f64::INFINITY, f64::NAN, 2.0, 0.125, f64::INFINITY, 1.5, -1.0];
    type Make = fn(Vec<Tensor>) -> Box<dyn Optimizer>;
    let rows: [(&str, Make); 8] = [
        ("Adam", |p| Box::new(Adam::new(p, 0.1, (0.9, 0.999), 1e-8, 0.1))),
        ("AMSGrad", |p| Box::new(Adam::with(p, AdamOptions { amsgrad: true, ..Default::default() }))),
        ("AdamW", |p| Box::new(AdamW::new(p, 0.1, (0.5, 0.9), 1e-8, 0.1))),
        ("SGD", |p| {
            let options =
                SGDOptions { learning_rate: 0.1, momentum: 0.9, dampening: 0.5, ..Default::default() };
            Box::new(SGD::with(p, options))
        }),
        ("RMSprop", |p| Box::new(RMSprop::new(p, 0.1, 0.9, 0.9))),
        ("Adagrad", |p| Box::new(Adagrad::with(p, AdagradOptions { rate_decay: 0.5, ..Default::default() }))),
        ("Lion", |p| Box::new(Lion::new(p, 0.1, (0.9, 0.99), 0.1))),
        ("Muon", |p| Box::new(Muon::new(p, 0.1, 0.9, 0.1))),
    ];
    for (name, make) in rows {
        let new = || Tensor::from_vec(vec![1.0f32, -2.0, 0.5, 3.0], [2, 2]).requires_grad(true);
        let (scaled, plain) = (new(), new());
        let (mut with_scaler, mut without) = (make(vec![scaled.clone()]), make(vec![plain.clone()]));
        let mut scaler = GradScaler::with(16.0, 2.0, 0.5, 3);
        let ((), spent) = counted(|| {
            for slope in slopes {
                scaled_step(&scaled, &mut *with_scaler, &mut scaler, slope);
            }
        });
        assert_eq!(copies(&spent), 0, "{name}: nothing is read back");
        for slope in slopes.into_iter().filter(|s| s.is_finite()) {
            without.zero_grad();
            (&plain * slope).sum().backward();
            without.step();
        }
        assert_close(&scaled.to_vec::<f64>(), &plain.to_vec::<f64>(), 2e-6, name);
    }
}

#[test]
fn a_scaled_step_compiles_nothing_new_and_is_one_plan() {
    let _alone = alone();
    let w = Tensor::ones([4]).requires_grad(true);
    let mut adam = AdamW::new(vec![w.clone()], 0.1, (0.9, 0.999), 1e-8, 0.1);
    let mut scaler = GradScaler::new();
    let mut steps = |count: usize| {
        for k in 0..count {
            adam.set_learning_rate(0.1 / (k + 1) as f64);
            scaled_step(&w, &mut adam, &mut scaler, if k % 3 == 0 { f64::INFINITY } else { 0.5 });
        }
    };
    steps(3);
    let ((), spent) = counted(|| steps(12));
    assert_eq!((spent.plans_compiled, spent.plans_replayed, copies(&spent)), (0, 12, 0));
}

#[test]
fn gradients_are_unscaled_once_then_clipped_then_used() {
    let _alone = alone();
    let w = Tensor::vector(&[0.0, 0.0]).requires_grad(true);
    let mut sgd = SGD::new(vec![w.clone()], 1.0, 0.0, 0.0);
    let mut scaler = GradScaler::with(1024.0, 2.0, 0.5, 100);
    let direction = Tensor::vector(&[3.0, 4.0]);
    let mut step = |factor: f64| {
        sgd.zero_grad();
        scaler.scale(&(&w * &direction * factor).sum()).backward();
        scaler.unscale(&sgd);
        let norm = clip_grad_norm(sgd.parameters(), 1.0);
        let twice = scaler.try_unscale(&sgd).expect_err("once a step");
        assert_eq!(twice.kind(), ErrorKind::Argument);
        scaler.step(&mut sgd);
        norm
    };
    let (norms, spent) = counted(|| [step(1.0), step(f64::INFINITY), step(0.1)]);
    assert_eq!(copies(&spent), 0);
    assert_eq!(norms[0].item::<f32>(), 5.0, "the norm of what was unscaled");
    assert_eq!(norms[1].item::<f32>(), f32::INFINITY);
    let expected = [-0.6 - 0.3, -0.8 - 0.4];
    assert_close(&w.to_vec::<f64>(), &expected, 1e-5, "clipped, skipped, short enough");
    assert_eq!(scaler.current(), 512.0);
}

#[test]
fn two_optimizers_share_a_scaler_when_both_are_unscaled_first() {
    let _together = together();
    let (a, b) = (Tensor::zeros([1]).requires_grad(true), Tensor::zeros([1]).requires_grad(true));
    let (mut first, mut second) =
        (SGD::new(vec![a.clone()], 1.0, 0.0, 0.0), SGD::new(vec![b.clone()], 1.0, 0.0, 0.0));
    // The scale doubles with every good step.
    let mut scaler = GradScaler::with(4.0, 2.0, 0.5, 1);
    for _ in 0..3 {
        first.zero_grad();
        second.zero_grad();
        scaler.scale(&(&a + &b).sum()).backward();
        scaler.unscale(&first);
        scaler.unscale(&second);
        scaler.step(&mut first);
        scaler.step(&mut second);
    }
    assert_eq!((a.item::<f32>(), b.item::<f32>()), (-3.0, -3.0));
}

/// What both steps of a round begin with is the scale that their gradients were made with.
#[test]
fn two_optimizers_share_a_scaler_whoever_unscales_when() {
    let _together = together();
    let (a, b) = (Tensor::zeros([1]).requires_grad(true), Tensor::zeros([1]).requires_grad(true));
    let (mut first, mut second) =
        (SGD::new(vec![a.clone()], 1.0, 0.0, 0.0), SGD::new(vec![b.clone()], 1.0, 0.0, 0.0));
    let mut scaler = GradScaler::with(4.0, 2.0, 0.5, 1);
    let infinity = f64::INFINITY;
    let mut at = (0.0, 0.0);
    for (round, (slopes, scale)) in [
        ((1.0, 1.0), 8.0),
        ((1.0, 2.0), 16.0),
        ((1.0, infinity), 8.0),
        ((infinity, 1.0), 4.0),
        ((infinity, infinity), 2.0),
        ((1.0, 1.0), 4.0),
    ]
    .into_iter()
    .enumerate()
    {
        first.zero_grad();
        second.zero_grad();
        scaler.scale(&(&a * slopes.0 + &b * slopes.1).sum()).backward();
        if round % 2 == 1 {
            scaler.unscale(&first);
        }
        scaler.step(&mut first);
        scaler.step(&mut second);
        let moved = |slope: f64| if slope.is_finite() { slope as f32 } else { 0.0 };
        at = (at.0 - moved(slopes.0), at.1 - moved(slopes.1));
        assert_eq!((a.item::<f32>(), b.item::<f32>()), at, "round {round}");
        assert_eq!(scaler.current(), scale, "round {round}: one good or bad step for both");
    }
    // A loss of each, one behind the other: two rounds.
    for (w, optimizer) in [(&a, &mut first), (&b, &mut second)] {
        scaled_step(w, optimizer, &mut scaler, 1.0);
    }
    assert_eq!((a.item::<f32>(), b.item::<f32>()), (at.0 - 1.0, at.1 - 1.0));
    assert_eq!(scaler.current(), 16.0);
}

#[test]
fn a_scale_does_not_grow_beyond_the_numbers() {
    let _together = together();
    let w = Tensor::zeros([1]).requires_grad(true);
    let mut sgd = SGD::new(vec![w.clone()], 1.0, 0.0, 0.0);
    let mut scaler = GradScaler::with(2f64.powi(100), 2f64.powi(30), 0.5, 1);
    for _ in 0..3 {
        scaled_step(&w, &mut sgd, &mut scaler, 0.5);
    }
    assert_eq!((scaler.current(), w.item::<f32>()), (2f32.powi(100), -1.5));
}

#[test]
fn a_scaler_goes_on_where_it_stopped() {
    let _together = together();
    let w = Tensor::ones([1]).requires_grad(true);
    let mut sgd = SGD::new(vec![w.clone()], 0.1, 0.0, 0.0);
    let mut scaler = GradScaler::with(8.0, 3.0, 0.5, 2);
    scaled_step(&w, &mut sgd, &mut scaler, 1.0);
    let mut resumed = GradScaler::new();
    resumed.load_state(&scaler.state()).expect("it fits");
    assert_eq!(resumed.current(), 8.0);
    scaled_step(&w, &mut sgd, &mut resumed, 1.0);
    assert_eq!(resumed.current(), 24.0, "the second good step of two");
    assert_eq!(scaler.current(), 8.0, "each has its own");
    assert!(resumed.load_state(&volta::State::new()).is_err());
}

/// A network of 20 parameters.
fn network() -> (Vec<Tensor>, impl Fn() -> Tensor) {
    let layers: Vec<(Tensor, Tensor)> = (0..10)
        .map(|_| {
            (Tensor::randn([16, 16]).mul(0.2).requires_grad(true), Tensor::zeros([16]).requires_grad(true))
        })
        .collect();
    let parameters = layers.iter().flat_map(|(w, b)| [w.clone(), b.clone()]).collect();
    let x = Tensor::randn([8, 16]);
    let loss = move || layers.iter().fold(x.clone(), |h, (w, b)| h.linear(w, Some(b)).tanh()).square().mean();
    (parameters, loss)
}

#[test(needs(more_than_webgpu))]
fn looking_at_all_gradients_takes_few_kernels() {
    let _together = together();
    let (parameters, loss) = network();
    let mut adam = Adam::new(parameters.clone(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let mut kernels = |clip: bool, scale: bool| {
        let mut scaler = GradScaler::new();
        for _ in 0..3 {
            adam.zero_grad();
            let loss = if scale { scaler.scale(&loss()) } else { loss() };
            loss.backward();
            if scale {
                scaler.unscale(&adam);
            }
            if clip {
                clip_grad_norm(&parameters, 1.0);
            }
            if scale { scaler.step(&mut adam) } else { adam.step() }
        }
        let plan = last_plan().expect("a plan");
        if std::env::var("SHOW").is_ok() {
            println!("clip {clip} scale {scale}: {}\n{plan}", plan.kernels.len());
        }
        plan.kernels.len()
    };
    let plain = kernels(false, false);
    let (clipped, scaled, both) = (kernels(true, false), kernels(false, true), kernels(true, true));
    assert!(clipped <= plain + 4, "{plain} kernels, {clipped} with clipping");
    assert!(scaled <= plain + 6, "{plain} kernels, {scaled} with scaling");
    assert!(both <= plain + 10, "{plain} kernels, {both} with both");
}

#[test]
fn unscaled_gradients_of_products_are_computed_when_they_are_looked_at() {
    let _alone = alone();
    let n = 64usize;
    let (layer, x) = (Linear::new(n, n, false), Tensor::rand([n, n]));
    realize_all(&[layer.parameters(), vec![x.clone()]].concat());
    let loss = || autocast(DType::F16, || layer.forward(&x)).to_dtype(DType::F32).square().sum();
    let mut sgd = SGD::new(layer.parameters(), 0.0, 0.0, 0.0);
    loss().backward();
    let plain = layer.weight.grad().expect("a gradient").to_vec::<f32>();
    let mut scaler = GradScaler::with(8.0, 2.0, 0.5, 1);
    for _ in 0..2 {
        sgd.zero_grad();
        scaler.scale(&loss()).backward();
        scaler.step(&mut sgd);
        // The weight in f32, and some numbers; its gradient is kept as the product that it is.
        let plan = last_plan().expect("a plan");
        let large = |bytes: u64| bytes / (4 * n * n) as u64;
        let written: u64 =
            plan.kernels.iter().filter(|k| k.label.contains("step")).map(|k| large(k.bytes_written)).sum();
        assert_eq!(written, 1, "{plan}");
    }
    // The scale has changed by now, and the weight was written.
    let unscaled = layer.weight.grad().expect("a gradient").to_vec::<f32>();
    for (a, b) in unscaled.iter().zip(&plain) {
        assert!((a - b).abs() <= 2e-3 * b.abs() + 1e-7, "{a}, not {b}");
    }
}
