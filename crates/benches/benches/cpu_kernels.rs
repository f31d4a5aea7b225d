//! Kernels of the CPU, each by itself, with all threads.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use volta::{ConvOptions, Tensor, no_grad};

fn main() {
    divan::main();
}

#[divan::bench(args = [128, 512, 1024])]
fn matmul(bencher: Bencher, size: usize) {
    let (a, b) = (computed(Tensor::rand([size, size])), computed(Tensor::rand([size, size])));
    bencher.counter(ItemsCount::new(2 * size * size * size)).bench_local(once(|| a.matmul(&b)));
}

#[divan::bench(args = [1 << 12, 1 << 20])]
fn gelu(bencher: Bencher, count: usize) {
    let x = computed(Tensor::rand([count]));
    bencher.counter(BytesCount::new(8 * count)).bench_local(once(|| x.gelu()));
}

#[divan::bench(args = [64, 1024])]
fn softmax(bencher: Bencher, width: usize) {
    let x = computed(Tensor::rand([1024, width]));
    bencher.counter(BytesCount::new(8 * 1024 * width)).bench_local(once(|| x.softmax(-1)));
}

#[divan::bench(args = [64, 1024])]
fn layer_norm(bencher: Bencher, width: usize) {
    let x = computed(Tensor::rand([1024, width]));
    let (weight, bias) = (computed(Tensor::ones([width])), computed(Tensor::zeros([width])));
    bencher
        .counter(BytesCount::new(8 * 1024 * width))
        .bench_local(once(|| x.layer_norm([width], Some(&weight), Some(&bias), 1e-5)));
}

#[divan::bench(args = [16, 64])]
fn conv2d(bencher: Bencher, channels: usize) {
    let x = computed(Tensor::rand([4, channels, 32, 32]));
    let weight = computed(Tensor::rand([channels, channels, 3, 3]));
    bencher.bench_local(once(|| x.conv2d(&weight, None, ConvOptions::default())));
}

#[divan::bench(args = [1 << 10, 1 << 16])]
fn sort(bencher: Bencher, count: usize) {
    let x = computed(Tensor::rand([count]));
    bencher.counter(ItemsCount::new(count)).bench_local(once(|| x.argsort(0, false)));
}

/// One computation: the plan is there after the first.
fn once(make: impl Fn() -> Tensor) -> impl Fn() {
    move || no_grad(|| drop(computed(make())))
}

fn computed(x: Tensor) -> Tensor {
    x.realize();
    x
}
