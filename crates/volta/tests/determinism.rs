//! The same program gives the same bits, on every device: no sum is made in an order that chance decides. And a step
//! of training copies nothing between the host and the device. The counters are those of the whole process, so the
//! tests take turns.

use std::sync::{Mutex, MutexGuard, PoisonError};
use volta::{
    AdamW, AttentionOptions, ConvOptions, DType, Device, SGD, Tensor, counters, cross_entropy,
    default_device, manual_seed, with_device,
};
use volta_testing::test;

fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

const WORDS: i64 = 50;
const WIDTH: usize = 32;

/// A small language model: a table, one block with attention, and a head.
struct Model {
    parameters: Vec<Tensor>,
    optimizer: AdamW,
    text: Tensor,
    next: Tensor,
}

impl Model {
    fn new() -> Model {
        manual_seed(11);
        let matrix = |rows: usize, columns: usize| {
            (Tensor::randn([rows, columns]) * 0.1).realize().requires_grad(true)
        };
        let ones = |n: usize| (Tensor::zeros([n]) + 1.0).realize().requires_grad(true);
        let parameters = vec![
            matrix(WORDS as usize, WIDTH),
            matrix(3 * WIDTH, WIDTH),
            ones(WIDTH),
            matrix(WIDTH, WIDTH),
            matrix(WORDS as usize, WIDTH),
        ];
        let optimizer = AdamW::new(parameters.clone(), 0.01, (0.9, 0.999), 1e-8, 0.01);
        let (text, next) = (Tensor::randint(0, WORDS, [4, 24]), Tensor::randint(0, WORDS, [4 * 24]));
        Model { parameters, optimizer, text: text.realize().clone(), next: next.realize().clone() }
    }

    fn step(&mut self) -> Tensor {
        self.optimizer.zero_grad();
        let [table, qkv, scale, mix, head] = &self.parameters[..] else { unreachable!("five of them") };
        let x = table.embedding(&self.text);
        let heads = |t: Tensor| t.reshape([4, 24, 2, WIDTH / 2]).transpose(1, 2);
        let parts = x.layer_norm([WIDTH], Some(scale), None, 1e-5).linear(qkv, None).chunk(3, -1);
        let [q, k, v] = <[Tensor; 3]>::try_from(parts).expect("three").map(heads);
        let options = AttentionOptions { causal: true, ..AttentionOptions::default() };
        let seen = q.scaled_dot_product_attention(&k, &v, options).transpose(1, 2).reshape([4, 24, WIDTH]);
        let x = (x + seen.linear(mix, None)).dropout(0.1, true).gelu();
        let loss = cross_entropy(&x.linear(head, None).reshape([4 * 24, WORDS as usize]), &self.next);
        loss.backward();
        self.optimizer.step();
        loss
    }
}

/// The bits of f32 values.
fn bits(t: &Tensor) -> Vec<u32> {
    t.to_vec::<f32>().into_iter().map(f32::to_bits).collect()
}

#[test]
fn a_training_run_gives_the_same_bits_again() {
    let _turn = alone();
    let run = || {
        let mut model = Model::new();
        let losses: Vec<Tensor> = (0..8).map(|_| model.step()).collect();
        let mut all: Vec<Vec<u32>> = losses.iter().map(bits).collect();
        all.extend(model.parameters.iter().map(bits));
        all
    };
    let (first, second) = (run(), run());
    assert!(f32::from_bits(first[7][0]) < f32::from_bits(first[0][0]), "it learns");
    assert_eq!(first, second);
}

#[test]
fn a_step_copies_nothing_between_the_host_and_the_device() {
    let _turn = alone();
    let mut model = Model::new();
    for _ in 0..3 {
        model.step();
    }
    let before = counters();
    let losses: Vec<Tensor> = (0..10).map(|_| model.step()).collect();
    let after = counters();
    assert_eq!((after.uploads, after.reads), (before.uploads, before.reads));
    // A GPU begins with the forward pass while it is recorded, and has the rest of it when the backward pass is.
    let plans = if default_device().is_gpu() { 3 } else { 1 };
    assert_eq!(after.plans_replayed, before.plans_replayed + 10 * plans, "{plans} plans a step");
    assert_eq!(after.plans_compiled, before.plans_compiled);
    // Each of these plans is one submission.
    let submissions = if default_device().is_gpu() { 10 * plans } else { 0 };
    assert_eq!(after.submissions, before.submissions + submissions);
    losses[9].item::<f32>();
    assert_eq!(counters().reads, after.reads + 1, "a read is counted");
    Tensor::vector(&[1.0]);
    assert_eq!(counters().uploads, after.uploads + 1, "an upload is counted");
}

#[test]
fn sums_that_meet_in_one_place_are_made_in_one_order() {
    let _turn = alone();
    manual_seed(5);
    let values = Tensor::randn([4096, 8]).realize().clone();
    let index = Tensor::randint(0, 7, [4096, 1]).expand([4096, 8]).realize().clone();
    let ops: [(&str, &dyn Fn() -> Tensor); 7] = [
        ("scatter_add", &|| Tensor::zeros([7, 8]).scatter_add(0, &index, &values)),
        ("sum", &|| values.sum()),
        ("column sums", &|| values.sum_dim(0, false)),
        ("variance", &|| values.var(true)),
        ("long product", &|| values.t().matmul(&values)),
        ("cumsum", &|| values.cumsum(0)),
        ("conv", &|| {
            let image = values.reshape([2, 16, 32, 32]);
            image.conv2d(&values.reshape([32, 16, 8, 8]), None, ConvOptions::default())
        }),
    ];
    for (name, op) in ops {
        let first = bits(&op());
        assert!((0..3).all(|_| bits(&op()) == first), "{name}");
    }
}

#[test]
fn dropout_depends_on_the_seed_alone() {
    let _turn = alone();
    let draw = |seed: u64| {
        manual_seed(seed);
        bits(&Tensor::ones([1000]).to_dtype(DType::F32).dropout(0.3, true))
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

#[test]
fn random_numbers_have_the_same_bits_on_every_device() {
    let _turn = alone();
    let bits = |device: Device| {
        with_device(device, || {
            manual_seed(5);
            // An odd number of them, and more than a row of workgroups has.
            let uniform: Vec<f32> = Tensor::rand([3, 100_003]).to_vec();
            let whole: Vec<i64> = Tensor::randint(-7, 1_000_000, [4097]).to_vec();
            let kept: Vec<f32> = Tensor::ones([33, 31]).dropout(0.3, true).to_vec();
            let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
            (bits(uniform), whole, bits(kept))
        })
    };
    assert_eq!(bits(default_device()), bits(Device::Cpu));
}

/// A plan that runs again with the same memory is submitted as it is, and once.
#[test]
fn what_runs_again_is_bound_and_submitted_as_before() {
    let _turn = alone();
    let (x, w) = (Tensor::randn([8, 16]).realize().clone(), Tensor::randn([16, 4]).realize().clone());
    let state = Tensor::zeros([8, 4]).realize().assignable();
    let step = || {
        state.assign(&(&state * 0.5 + x.matmul(&w)));
        state.realize();
    };
    (0..8).for_each(|_| step());
    let before = counters();
    (0..20).for_each(|_| step());
    let after = counters();
    let submissions = if default_device().is_gpu() { 20 } else { 0 };
    assert_eq!(after.plans_replayed - before.plans_replayed, 20);
    assert_eq!(after.submissions - before.submissions, submissions);
    assert_eq!(after.bind_groups, before.bind_groups);
    assert_eq!(after.shaders_compiled, before.shaders_compiled);
}

/// Normal numbers are made of the same bits, by each device's own logarithm and cosine.
#[test]
fn normal_numbers_agree_on_every_device() {
    let _turn = alone();
    let normal = |device: Device| {
        with_device(device, || {
            manual_seed(7);
            // A single one too: its counter is no index of anything.
            [&[3, 10_001][..], &[]].map(|shape| Tensor::randn(shape).to_vec::<f32>()).concat()
        })
    };
    let (here, there) = (normal(default_device()), normal(Device::Cpu));
    let farthest = here.iter().zip(&there).map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f32::max);
    assert!(farthest < 2e-6, "{farthest}");
}

/// Of a table of which few rows are picked, a gradient is made of the sums of these when somebody asks for it.
#[test]
fn gradients_that_are_held_do_not_make_later_plans_new() {
    let _turn = alone();
    const WIDTH: usize = 128;
    let table = Tensor::ones([33_000, WIDTH]).requires_grad(true);
    let mut optimizer = SGD::new(vec![table.clone()], 0.5, 0.0, 0.0);
    let (mut held, mut compiled) = (Vec::new(), Vec::new());
    for step in 0..6i32 {
        optimizer.zero_grad();
        table.embedding(&Tensor::from_vec(vec![step, 20, step], [3])).sum().backward();
        held.push(table.grad().expect("a gradient"));
        optimizer.step();
        table.realize();
        compiled.push(counters().plans_compiled);
    }
    assert_eq!(compiled[5], compiled[3], "{compiled:?}");
    for (step, gradient) in held.iter().enumerate() {
        let found = gradient.to_vec::<f32>();
        assert_eq!((found[step * WIDTH], found[20 * WIDTH], found[21 * WIDTH]), (2.0, 1.0, 0.0), "{step}");
    }
}

volta_testing::main!();
