//! A long training run compiles nothing after its first steps and needs no more memory. The counters are those of
//! the whole process, so this test is alone in its program.

use volta::{AdamW, Tensor, counters, cross_entropy, default_device, manual_seed};
use volta_testing::test;

#[test]
fn a_thousand_steps_compile_nothing_and_leave_the_pool_as_it_was() {
    manual_seed(3);
    let w1 = (Tensor::randn([32, 20]) * 0.2).requires_grad(true);
    let b1 = Tensor::zeros([32]).requires_grad(true);
    let w2 = (Tensor::randn([5, 32]) * 0.2).requires_grad(true);
    let x = Tensor::randn([64, 20]);
    let y = Tensor::randint(0, 5, [64]);
    let mut optimizer = AdamW::new(vec![w1.clone(), b1.clone(), w2.clone()], 0.01, (0.9, 0.999), 1e-8, 0.01);
    // Losses are kept and not read: none of them may hold on to a step's memory.
    let mut losses = Vec::new();
    let mut step = |rate: f64| {
        optimizer.set_learning_rate(rate);
        optimizer.zero_grad();
        let h = (x.matmul(&w1.t()) + &b1).relu().dropout(0.1, true);
        let loss = cross_entropy(&h.matmul(&w2.t()), &y);
        loss.backward();
        optimizer.step();
        losses.push(loss);
    };
    for k in 0..10 {
        step(0.01 - 1e-4 * k as f64);
    }
    let before = counters();
    for k in 0..1000 {
        step(0.01 / (1.0 + k as f64 / 100.0));
    }
    let after = counters();
    assert_eq!(after.plans_compiled, before.plans_compiled, "a replayed step compiles nothing");
    // A GPU begins with the forward pass while the backward pass is recorded.
    let plans = if default_device().is_gpu() { 2 } else { 1 };
    assert_eq!(after.plans_replayed, before.plans_replayed + 1000 * plans, "{plans} plans a step");
    assert_eq!(after.reads, before.reads, "nothing is read back");
    assert_eq!(after.uploads, before.uploads, "nothing is uploaded");
    // A loss is one number in the smallest piece of memory.
    let kept = 1000 * if default_device().is_gpu() { 256 } else { 64 };
    assert!(after.pool_bytes <= before.pool_bytes + kept + 4096, "{before:?} {after:?}");
    let first = losses[0].item::<f32>();
    let last = losses[losses.len() - 1].item::<f32>();
    assert!(last < 0.5 * first, "it learns: {first} became {last}");
}

volta_testing::main!();
