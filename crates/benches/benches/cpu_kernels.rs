//! Kernels of the CPU, each by itself, with all threads.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use volta::{BlockFormat, ConvOptions, QuantizedMatrix, Tensor, no_grad};

fn main() {
    divan::main();
}

#[divan::bench(args = [128, 512, 1024])]
fn matmul(bencher: Bencher, size: usize) {
    let (a, b) = (computed(Tensor::rand([size, size])), computed(Tensor::rand([size, size])));
    bencher.counter(ItemsCount::new(2 * size * size * size)).bench_local(once(|| a.matmul(&b)));
}

/// Rows of x, as a token and a prompt have them, by a matrix of 4096 × 4096 in f32.
#[divan::bench(args = [1, 128])]
fn linear(bencher: Bencher, rows: usize) {
    let (x, w) = (computed(Tensor::rand([rows, 4096])), computed(Tensor::rand([4096, 4096])));
    bencher.counter(ItemsCount::new(2 * rows * 4096 * 4096)).bench_local(once(|| x.linear(&w, None)));
}

/// The same with 4 bits a weight.
#[divan::bench(args = [1, 128])]
fn linear_int4(bencher: Bencher, rows: usize) {
    quantized(bencher, rows, BlockFormat::Int4);
}

/// The same with 8 bits a weight.
#[divan::bench(args = [1, 128])]
fn linear_int8(bencher: Bencher, rows: usize) {
    quantized(bencher, rows, BlockFormat::Int8);
}

fn quantized(bencher: Bencher, rows: usize, format: BlockFormat) {
    let x = computed(Tensor::rand([rows, 4096]));
    let w = QuantizedMatrix::quantize(&Tensor::rand([4096, 4096]), format).expect("a matrix of whole blocks");
    bencher
        .counter(ItemsCount::new(2 * rows * 4096 * 4096))
        .bench_local(once(|| x.quantized_linear(&w, None)));
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
