//! What a call of an op costs: checks of shapes and types, and a node.

use divan::Bencher;
use volta::{Linear, Module, Tensor, cross_entropy};

fn main() {
    divan::main();
}

/// Nodes that are recorded and dropped again in one measurement.
const NODES: usize = 100;

#[divan::bench]
fn hundred_elementwise_ops(bencher: Bencher) {
    let x = computed(Tensor::rand([64]));
    bencher.bench_local(|| (0..NODES).fold(x.clone(), |y, _| y.tanh()));
}

#[divan::bench]
fn hundred_ops_that_broadcast(bencher: Bencher) {
    let (x, row) = (computed(Tensor::rand([64, 32])), computed(Tensor::rand([32])));
    bencher.bench_local(|| (0..NODES).fold(x.clone(), |y, _| &y + &row));
}

#[divan::bench]
fn backward_of_a_classifier(bencher: Bencher) {
    let model = Linear::new(64, 10, true);
    model.parameters().into_iter().for_each(|p| drop(computed(p)));
    let (x, targets) = (computed(Tensor::rand([32, 64])), computed(Tensor::from_vec(vec![3i32; 32], [32])));
    bencher.bench_local(|| {
        model.zero_grad();
        cross_entropy(&model.forward(&x), &targets).backward();
    });
}

fn computed(x: Tensor) -> Tensor {
    x.realize();
    x
}
