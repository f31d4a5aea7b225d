//! What layers cost in plans: one for a training step, none anew for the next token, and no matrix of all logits. One test
//! at a time, since the counters are those of the whole program.

use std::sync::{Mutex, MutexGuard, PoisonError};
use volta::*;
use volta_testing::test;

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A small language model of two blocks.
struct Model {
    tokens: Embedding,
    blocks: Vec<TransformerEncoderLayer>,
    head: Linear,
}

impl Model {
    fn new() -> Model {
        let options = TransformerOptions {
            dim_feedforward: 32,
            norm_first: true,
            kv_heads: Some(2),
            rotary: Some(Rotary::new()),
            ..TransformerOptions::default()
        };
        let blocks =
            (0..2).map(|_| TransformerEncoderLayer::with_options(16, 4, options)).collect::<Vec<_>>();
        blocks.iter().for_each(Module::eval);
        Model { tokens: Embedding::new(11, 16), blocks, head: Linear::new(16, 11, true) }
    }

    fn whole(&self, tokens: &Tensor) -> Tensor {
        let x = self.tokens.forward(tokens);
        self.head.forward(&self.blocks.iter().fold(x, |x, b| b.run(&x, AttentionMask::causal())))
    }

    fn next(&self, token: &Tensor, caches: &mut [KvCache]) -> Tensor {
        let x = self.tokens.forward(token);
        let x = self.blocks.iter().zip(caches).fold(x, |x, (b, cache)| b.run_cached(&x, cache));
        no_grad(|| self.head.forward(&x))
    }
}

#[test]
fn a_thousand_tokens_compile_nothing_after_the_first() {
    let _alone = alone();
    manual_seed(2);
    let model = Model::new();
    // A software GPU takes longer over each of them.
    let count = if default_device().is_gpu() { 100 } else { 1000 };
    let mut caches: Vec<KvCache> = model.blocks.iter().map(|b| b.self_attn.cache(1, count + 1)).collect();
    let mut token = Tensor::from_slice(&[3i32], [1, 1]);
    let mut text = vec![3i32];
    let mut first = None;
    for step in 0..count {
        let logits = model.next(&token, &mut caches);
        token = logits.argmax_dim(-1, false);
        text.push(token.item());
        if step == 2 {
            first = Some(counters());
        }
    }
    let (before, after) = (first.expect("three steps"), counters());
    assert_eq!(after.plans_compiled, before.plans_compiled);
    assert_eq!(after.plans_replayed - before.plans_replayed, count as u64 - 3, "one plan a token");
    assert_eq!(after.pool_bytes, before.pool_bytes, "no memory grows");

    // The whole text at once says the same.
    let part = 40;
    let logits = model.whole(&Tensor::from_slice(&text[..part], [1, part]));
    let again = logits.argmax_dim(-1, false).to_vec::<i32>();
    assert_eq!(again, text[1..=part]);
}

#[test]
fn a_model_of_llamas_family_replays_one_plan_for_every_token() {
    use volta::models::{CausalLm, CausalLmOptions, Generation};
    use volta::text::{Sampler, SamplerOptions};
    let _alone = alone();
    let options =
        CausalLmOptions { window: Some(4), windowed: vec![true, false], ..CausalLmOptions::default() };
    let model = CausalLm::new(options);
    let mut text = Generation::new(&model, Sampler::new(SamplerOptions::default()).expect("a sampler"));
    text.read(&[4, 5, 6]).expect("it fits");
    text.write().expect("a token");
    let before = counters().plans_compiled;
    for _ in 0..8 {
        text.write().expect("a token");
    }
    assert_eq!(counters().plans_compiled, before);
}

#[test]
fn a_training_step_updates_the_averages_of_batch_norm_in_its_own_plans() {
    let _alone = alone();
    let layer = BatchNorm2d::new(3);
    let mut adam = Adam::new(layer.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let x = Tensor::randn([2, 3, 4, 5]);
    let y = x.ones_like();
    x.realize();
    let mut last = counters();
    for step in 0..6 {
        adam.zero_grad();
        mse_loss(&layer.forward(&x), &y).backward();
        adam.step();
        let running = layer.running.as_ref().expect("averages");
        assert!([&running.mean, &running.variance, &running.batches].iter().all(|t| t.is_realized()));
        let now = counters();
        if step > 1 {
            assert_eq!(now.plans_compiled, last.plans_compiled);
            // A GPU begins with the forward pass while the backward pass is recorded.
            let plans = if default_device().is_gpu() { 2 } else { 1 };
            assert_eq!(now.plans_replayed, last.plans_replayed + plans);
            assert_eq!(now.reads, last.reads, "nothing is read back");
        }
        last = now;
    }
    assert_eq!(layer.running.as_ref().expect("averages").batches.item::<i32>(), 6);
}

#[test]
fn all_logits_are_never_in_memory_at_once() {
    let _alone = alone();
    let (rows, width, classes) = (256, 8, 2048);
    let whole = rows * classes * 4;
    let target = Tensor::randint(0, classes as i64, [rows]);
    target.realize();
    let needed = |loss: &dyn Fn(&Tensor, &Tensor) -> Tensor| {
        let x = Tensor::randn([rows, width]).requires_grad(true);
        let w = Tensor::randn([classes, width]).requires_grad(true);
        realize_all(&[x.clone(), w.clone()]);
        let loss = loss(&x, &w);
        loss.backward();
        realize_all(&[loss, x.grad().expect("a gradient"), w.grad().expect("a gradient")]);
        last_plan().expect("a plan").arena_bytes
    };
    let plain = needed(&|x, w| cross_entropy(&x.linear(w, None), &target));
    let options = LinearCrossEntropyOptions { classes_at_once: Some(64), ..Default::default() };
    let chunks = needed(&|x, w| linear_cross_entropy_with(x, w, &target, options));
    assert!(plain >= whole, "{plain} bytes hold {whole}");
    assert!(chunks * 3 < whole, "{chunks} bytes in chunks, {plain} without");
}

#[test]
fn a_bias_does_not_make_plans_store_what_it_is_added_to_once_more() {
    let _alone = alone();
    let (rows, width) = (512, 256);
    let (layer, x) = (Linear::new(64, width, true), Tensor::rand([rows, 64]));
    realize_all(&[layer.parameters(), vec![x.clone()]].concat());
    let y = autocast(DType::F16, || layer.forward(&x).gelu_tanh());
    y.realize();
    // Halves of the product, which a backward pass asks for, of the result, and of what was cast; nothing as f32.
    let written: u64 = last_plan().expect("a plan").kernels.iter().map(|k| k.bytes_written).sum();
    let halves = 2 * (2 * rows * width + 64 * (rows + width)) as u64;
    assert!(written <= halves, "{written} bytes are written, not {halves}");
}

volta_testing::main!();
