//! How long a plan takes to make, by how much was recorded: the time a node should be the same for all lengths.
//! `cargo run --release --example planning` has more kinds of graphs.

use divan::Bencher;
use divan::counter::ItemsCount;
use volta::nn::GRUCell;
use volta::{Module, Tensor, plan_only, try_realize_all};

fn main() {
    divan::main();
}

#[divan::bench(args = [10, 100, 1_000, 10_000, 50_000])]
fn elementwise_chain(bencher: Bencher, length: usize) {
    let x = computed(Tensor::rand([64]));
    bencher
        .counter(ItemsCount::new(length))
        .with_inputs(|| (0..length).fold(x.clone(), |y, _| y.tanh()))
        .bench_local_refs(|y| plan(std::slice::from_ref(y)));
}

#[divan::bench(args = [10, 100, 1_000], max_time = 10)]
fn recurrent_cell_with_gradients(bencher: Bencher, length: usize) {
    let cell = GRUCell::new(8, 16, true);
    let parameters = cell.parameters();
    let x = computed(Tensor::rand([4, 8]));
    let record = || {
        cell.zero_grad();
        let state = (0..length).fold(Tensor::zeros([4, 16]), |state, _| cell.run(&x, Some(&state)));
        state.sum().backward();
        parameters.iter().filter_map(Tensor::grad).collect::<Vec<_>>()
    };
    bencher.counter(ItemsCount::new(length)).with_inputs(record).bench_local_refs(|all| plan(all));
}

fn plan(wanted: &[Tensor]) {
    plan_only(|| try_realize_all(wanted)).expect("a plan that can be made");
}

fn computed(x: Tensor) -> Tensor {
    x.realize();
    x
}
