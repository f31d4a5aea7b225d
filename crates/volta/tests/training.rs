//! Training loops: after the first steps nothing is compiled any more, nothing is computed twice, no memory is
//! kept. The counters are those of the whole process, so the tests take turns.

use std::sync::{Mutex, MutexGuard, PoisonError};
use volta::{
    Counters, Device, Tensor, counters, cross_entropy, default_device, last_plan, no_grad, realize_all,
    reset_peak, with_device,
};
use volta_testing::test;

fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the counters count while `f` runs.
fn counted<R>(f: impl FnOnce() -> R) -> (R, Counters) {
    let before = counters();
    let result = f();
    let after = counters();
    let spent = Counters {
        plans_compiled: after.plans_compiled - before.plans_compiled,
        plans_replayed: after.plans_replayed - before.plans_replayed,
        kernels_run: after.kernels_run - before.kernels_run,
        uploads: after.uploads - before.uploads,
        reads: after.reads - before.reads,
        ..after
    };
    (result, spent)
}

/// How many kernels of a kind the plan that ran last on this thread had.
fn kernels(kind: &str) -> usize {
    last_plan().expect("a plan ran").kernels.iter().filter(|k| k.kind == kind).count()
}

struct Mlp {
    weights: Vec<Tensor>,
}

impl Mlp {
    fn new() -> Mlp {
        let matrix = |rows: usize, columns: usize, seed: f64| {
            let ramp = Tensor::arange(0, (rows * columns) as i64).to_dtype(volta::DType::F32);
            (ramp * (1.3 + seed)).sin().mul(0.5).reshape([rows, columns]).requires_grad(true)
        };
        let bias = |n: usize| Tensor::zeros([n]).requires_grad(true);
        Mlp { weights: vec![matrix(8, 16, 0.1), bias(16), matrix(16, 4, 0.7), bias(4)] }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let hidden = (x.matmul(&self.weights[0]) + &self.weights[1]).relu();
        hidden.matmul(&self.weights[2]) + &self.weights[3]
    }

    /// One step of gradient descent, computed at once.
    fn step(&self, rate: f64) {
        no_grad(|| {
            for w in &self.weights {
                let gradient = w.grad().expect("a gradient");
                w.assign(&(w - gradient * rate));
                w.zero_grad();
            }
        });
        realize_all(&self.weights);
    }
}

fn batch(step: usize) -> (Tensor, Tensor) {
    let data: Vec<f32> = (0..32 * 8).map(|k| (((k + step * 7) * 37 % 101) as f32 / 50.0) - 1.0).collect();
    let class = |row: usize| -> i32 {
        let row = &data[row * 8..row * 8 + 8];
        i32::from(row[0] > 0.0) * 2 + i32::from(row[1] > row[2])
    };
    let target: Vec<i32> = (0..32).map(class).collect();
    (Tensor::from_vec(data.clone(), [32, 8]), Tensor::from_vec(target, [32]))
}

#[test]
fn a_thousand_steps_compile_nothing_after_the_first_few_and_keep_no_memory() {
    let _alone = alone();
    let model = Mlp::new();
    let mut losses = vec![];
    let mut train = |steps: std::ops::Range<usize>| {
        for step in steps {
            let (x, target) = batch(step % 10);
            let loss = cross_entropy(&model.forward(&x), &target);
            loss.backward();
            losses.push(loss);
            model.step(0.1);
        }
    };
    train(0..5);
    let ((), first) = counted(|| train(5..100));
    assert_eq!(first.plans_compiled, 0, "steps look alike: {first:?}");
    let ((), rest) = counted(|| train(100..1000));
    assert_eq!(rest.plans_compiled, 0, "{rest:?}");
    assert_eq!(rest.plans_replayed, 900 * plans_of_a_step(), "the unread losses are computed in them");
    // A thousand losses of four bytes are all that may stay; the pool hands out whole blocks.
    let grown = rest.pool_bytes.saturating_sub(first.pool_bytes);
    assert!(
        grown <= 900 * 256,
        "the pool grew by {grown} bytes, from {} to {}",
        first.pool_bytes,
        rest.pool_bytes
    );
    let values: Vec<f32> = losses.iter().map(Tensor::item).collect();
    assert_eq!(values.len(), 1000);
    assert!(values.iter().all(|v| v.is_finite()));
    let (early, late) = (values[..10].iter().sum::<f32>(), values[990..].iter().sum::<f32>());
    assert!(late < 0.3 * early, "it learns: {early} at first, {late} at last");
}

#[test]
fn losses_left_unread_are_those_that_would_have_been_read() {
    let _alone = alone();
    let run = |read: bool| -> Vec<f32> {
        let model = Mlp::new();
        let mut losses = vec![];
        for step in 0..30 {
            let (x, target) = batch(step);
            let loss = cross_entropy(&model.forward(&x), &target);
            if read {
                loss.item::<f32>();
            }
            loss.backward();
            model.step(0.1);
            losses.push(loss);
        }
        losses.iter().map(Tensor::item).collect()
    };
    let (read, unread) = (run(true), run(false));
    for (k, (a, b)) in read.iter().zip(&unread).enumerate() {
        assert!((a - b).abs() <= 1e-5 * a.abs(), "step {k}: {a} read, {b} unread");
    }
}

#[test]
fn reading_the_loss_first_runs_no_product_twice() {
    let _alone = alone();
    let model = Mlp::new();
    let (x, target) = batch(0);
    let loss = cross_entropy(&model.forward(&x), &target);
    loss.item::<f32>();
    assert_eq!(kernels("matmul"), 2, "two layers forward:\n{}", last_plan().expect("a plan"));
    loss.backward();
    model.step(0.1);
    // The weight's gradient of each layer and the hidden gradient; the input needs none.
    assert_eq!(kernels("matmul"), 3, "backward alone:\n{}", last_plan().expect("a plan"));
}

/// One, but a GPU begins with the forward pass while the backward pass is recorded.
fn plans_of_a_step() -> u64 {
    if default_device().is_gpu() { 2 } else { 1 }
}

#[test]
fn a_whole_step_is_a_plan_or_two_of_few_kernels() {
    let _alone = alone();
    let model = Mlp::new();
    let step = || {
        let (x, target) = batch(0);
        let loss = cross_entropy(&model.forward(&x), &target);
        loss.backward();
        model.step(0.1);
        loss
    };
    // The first step makes the weights as well, the second finds them there.
    let _losses = [step(), step()];
    let (loss, spent) = counted(step);
    let plans = plans_of_a_step();
    assert_eq!((spent.plans_compiled, spent.plans_replayed), (0, plans), "{spent:?}");
    let products = if plans == 1 { 5 } else { 3 };
    assert_eq!(kernels("matmul"), products, "{}", last_plan().expect("a plan"));
    assert!(loss.is_realized(), "a held loss is computed along with the step");
    let (value, spent) = counted(|| loss.item::<f32>());
    assert!(value.is_finite());
    assert_eq!(spent.kernels_run, 0, "and needs no kernel when it is read");
}

#[test]
fn reading_a_value_twice_computes_it_once() {
    let _alone = alone();
    let x = Tensor::arange(0, 10).to_dtype(volta::DType::F32);
    let y = x.sin().sum();
    let (first, spent) = counted(|| y.item::<f32>());
    assert!(spent.kernels_run >= 1);
    let (second, spent) = counted(|| y.item::<f32>());
    assert_eq!(first, second);
    assert_eq!(spent.kernels_run, 0);
    let (_, spent) = counted(|| (&y + 1.0).item::<f32>());
    assert_eq!(spent.kernels_run, 1, "only what is new");
}

#[test]
fn recording_ops_runs_nothing() {
    let _alone = alone();
    let x = Tensor::vector(&[1.0, 2.0]).requires_grad(true);
    let (loss, spent) = counted(|| {
        let loss = (&x * 2.0).exp().sum();
        loss.backward_with(None, volta::BackwardOptions { retain_graph: true, create_graph: false });
        loss
    });
    assert_eq!((spent.kernels_run, spent.plans_compiled, spent.plans_replayed), (0, 0, 0));
    assert!(!loss.is_realized() && !x.grad().expect("a gradient").is_realized());
}

#[test]
fn elementwise_chains_and_what_follows_a_product_are_one_kernel() {
    let _alone = alone();
    let x = Tensor::arange(0, 64).to_dtype(volta::DType::F32).reshape([8, 8]);
    x.realize();
    let (_, spent) = counted(|| (x.sin() * 2.0 + 1.0).tanh().to_vec::<f32>());
    assert_eq!(spent.kernels_run, 1);
    let (_, spent) = counted(|| (x.matmul(&x) + 1.0).relu().to_vec::<f32>());
    assert_eq!(spent.kernels_run, 1, "{}", last_plan().expect("a plan"));
    let (_, spent) = counted(|| x.softmax(1).to_vec::<f32>());
    assert_eq!(spent.kernels_run, 1, "{}", last_plan().expect("a plan"));
}

#[test]
fn memory_comes_back_when_tensors_are_dropped() {
    let _alone = alone();
    let work = || {
        let x = Tensor::ones([64, 64]) * 2.0;
        let y = x.matmul(&x).sin();
        y.realize();
        (&y + &x).sum().item::<f32>()
    };
    work();
    let before = counters().pool_bytes;
    for _ in 0..200 {
        work();
    }
    let after = counters().pool_bytes;
    assert!(after <= before + (1 << 16), "the pool grew from {before} to {after}");
}

#[test]
fn a_backward_pass_lets_activations_go() {
    let _alone = alone();
    let w = Tensor::ones([128, 128]).mul(0.01).requires_grad(true);
    let run = |layers: usize| {
        let mut h = Tensor::ones([128, 128]);
        for _ in 0..layers {
            h = h.matmul(&w).tanh();
        }
        let loss = h.sum();
        loss.backward();
        realize_all(&[w.grad().expect("a gradient")]);
        w.zero_grad();
        loss
    };
    // The losses stay; what they were computed from must not.
    let mut losses = vec![run(8)];
    let before = counters().pool_bytes;
    for _ in 0..20 {
        losses.push(run(8));
    }
    let after = counters().pool_bytes;
    assert!(after <= before + (1 << 20), "the pool grew from {before} to {after}");
    assert!(losses.iter().all(|l| l.item::<f32>() == losses[0].item::<f32>()));
}

/// Gradients are equal but for a ten thousandth of the largest of a tensor.
fn assert_near(found: &[Vec<f32>], wanted: &[Vec<f32>]) {
    for (k, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let largest = wanted.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
        for (a, b) in found.iter().zip(wanted) {
            assert!((a - b).abs() < 1e-4 * largest, "weights {k}: {a} {b}, of {largest}");
        }
    }
}

/// The weights of a model with a large vocabulary, and its loss; without the bias of its logits if that is not wanted.
fn with_a_large_vocabulary(bias: bool) -> (Vec<Tensor>, Tensor) {
    let ramp = |count: usize, rate: f64| {
        (Tensor::arange(0, count as i64).to_dtype(volta::DType::F32) * rate).sin().mul(0.2)
    };
    let (rows, width, words) = (512, 16, 8200);
    let mut weights = vec![
        ramp(width * width, 1.3).reshape([width, width]).requires_grad(true),
        ramp(width * words, 0.7).reshape([width, words]).requires_grad(true),
    ];
    if bias {
        weights.push(ramp(words, 0.9).requires_grad(true));
    }
    let (x, target) = (ramp(rows * width, 2.1).reshape([rows, width]), Tensor::arange(0, rows as i64) * 11);
    realize_all(&weights);
    realize_all(&[x.clone(), target.clone()]);
    let mut hidden = x;
    // Enough of them for a device to begin early.
    for _ in 0..8 {
        hidden = hidden.matmul(&weights[0]).tanh() + &hidden;
    }
    let logits = hidden.matmul(&weights[1]);
    let logits = if bias { logits + &weights[2] } else { logits };
    (weights, cross_entropy(&logits, &target))
}

/// The loss of such a model, and the gradients of its weights.
fn with_many_words() -> (Vec<f32>, Vec<Vec<f32>>) {
    let (weights, loss) = with_a_large_vocabulary(true);
    let gradients = || -> Vec<Tensor> { weights.iter().map(|w| w.grad().expect("a gradient")).collect() };
    let (_, spent) = counted(|| {
        loss.backward();
        realize_all(&gradients());
    });
    // The forward pass, the gradient of the logits, and the rest.
    let plans = if default_device().is_gpu() { 3 } else { 1 };
    assert_eq!(spent.plans_compiled + spent.plans_replayed, plans, "{spent:?}");
    (loss.to_vec(), gradients().iter().map(Tensor::to_vec).collect())
}

#[test]
fn a_device_goes_on_behind_large_logits_and_computes_what_a_cpu_does() {
    let _alone = alone();
    let (loss, gradients) = with_many_words();
    let (wanted, slopes) = with_device(Device::Cpu, with_many_words);
    assert!((loss[0] - wanted[0]).abs() < 1e-5, "{loss:?} {wanted:?}");
    assert_near(&gradients, &slopes);
}

#[test]
fn a_device_lets_large_logits_go_before_it_has_all_gradients() {
    let _alone = alone();
    // Elsewhere nothing is computed yet when `backward` comes back.
    if default_device().is_gpu() {
        let (_weights, loss) = with_a_large_vocabulary(false);
        loss.backward();
        reset_peak();
        Tensor::zeros([4]).realize();
        let used = counters().peak_bytes;
        assert!(used < 512 * 8200 * 4, "{used} bytes");
    }
}

/// The loss of forty layers and the gradients of their weights, and how many plans ran while the loss was recorded.
fn with_many_layers() -> (f32, Vec<Vec<f32>>, u64) {
    let weight = |k: usize| {
        let values = (0..64).map(|i| ((7 * i + 3 * k) % 11) as f32 / 11.0 - 0.5).collect();
        Tensor::from_vec(values, [8, 8]).requires_grad(true)
    };
    let weights: Vec<Tensor> = (0..40).map(weight).collect();
    let x = Tensor::from_vec((0..32).map(|i| i as f32 / 32.0).collect(), [4, 8]);
    let forward = || weights.iter().fold(x.clone(), |x, w| x.matmul(w).tanh() + &x).square().mean();
    let (loss, spent) = counted(forward);
    loss.backward();
    let gradients = weights.iter().map(|w| w.grad().expect("a gradient").to_vec()).collect();
    let (_, unasked) = counted(|| no_grad(forward));
    assert_eq!(unasked.plans_compiled + unasked.plans_replayed, 0, "nobody waits for what has no gradient");
    (loss.item(), gradients, spent.plans_compiled + spent.plans_replayed)
}

#[test]
fn a_device_begins_with_a_long_forward_pass_and_computes_what_a_cpu_does() {
    let _alone = alone();
    let (loss, gradients, plans) = with_many_layers();
    let (wanted, slopes, none) = with_device(Device::Cpu, with_many_layers);
    assert_eq!((plans > 0, none), (default_device().is_gpu(), 0), "{plans} plans");
    assert!((loss - wanted).abs() < 1e-4 * wanted.abs(), "{loss} {wanted}");
    assert_near(&gradients, &slopes);
}

#[test]
fn the_peak_is_that_of_tensors_and_of_what_is_in_between() {
    let _alone = alone();
    let unit = 1 << 22;
    let x = Tensor::rand([1024, 1024]);
    x.realize();
    reset_peak();
    x.matmul(&x).square().sum().realize();
    let peak = counters().peak_bytes;
    // Tensor cores multiply pairs of halves, which take as much memory as the numbers.
    assert!((2 * unit..=6 * unit).contains(&peak), "{peak}");
    let more = Tensor::zeros([4, 1024, 1024]) + 1.0;
    more.realize();
    reset_peak();
    (&x + 1.0).realize();
    let peak = counters().peak_bytes;
    assert!((6 * unit..=7 * unit).contains(&peak), "{peak}");
}

volta_testing::main!();
