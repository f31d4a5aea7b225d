//! How long plans take to make, by how much was recorded: the time of an op should not depend on how many there are.
//!
//! `cargo run --release --example planning` prints a table of each kind of graph; `-- gru 2000` is one kind and length;
//! `-- reports` prints what the plans of some networks consist of, to compare them before and after a change.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};
use volta::models::{Gpt, GptOptions};
use volta::nn::{GRUCell, LSTMCell};
use volta::{
    Adam, AdamW, BatchNorm2d, Conv2d, DType, Linear, Module, PlanReport, ReLU, Result, Sequential, Tensor,
    autocast, plan_only, try_cross_entropy, try_realize_all,
};

/// Records a graph, and gives what to compute of it.
type Recording = Box<dyn FnOnce() -> Result<Vec<Tensor>>>;
/// A graph of some length; what it is made of is there already.
type Graph = fn(usize) -> Result<Recording>;

const KINDS: [(&str, Graph); 6] = [
    ("elementwise", elementwise),
    ("sums", sums),
    ("gru", gru),
    ("lstm", lstm),
    ("deep", deep),
    ("updates", updates),
];

fn given(t: Tensor) -> Result<Tensor> {
    t.try_realize()?;
    Ok(t)
}

/// One value after the other.
fn elementwise(length: usize) -> Result<Recording> {
    let x = given(Tensor::try_rand([64])?)?;
    let w = given(Tensor::try_rand([64])?)?;
    Ok(Box::new(move || {
        let mut x = x;
        for _ in 0..length {
            x = x.try_mul(&w)?.try_tanh()?;
        }
        Ok(vec![x])
    }))
}

/// A total of many sums.
fn sums(length: usize) -> Result<Recording> {
    let x = given(Tensor::try_rand([64, 8])?)?;
    Ok(Box::new(move || {
        let mut total = x.try_sum()?;
        for k in 0..length {
            total = total.try_add(&x.try_mul(k as f64)?.try_exp()?.try_sum()?)?;
        }
        Ok(vec![total])
    }))
}

fn gradients(model: &impl Module, loss: &Tensor) -> Result<Vec<Tensor>> {
    loss.try_backward()?;
    Ok(model.parameters().iter().filter_map(Tensor::grad).collect())
}

/// A cell in a loop, with its backward pass.
fn gru(length: usize) -> Result<Recording> {
    let cell = GRUCell::new(4, 8, true);
    let x = given(Tensor::try_rand([2, 4])?)?;
    try_realize_all(&cell.parameters())?;
    Ok(Box::new(move || {
        let mut h = cell.try_run(&x, None)?;
        for _ in 1..length {
            h = cell.try_run(&x, Some(&h))?;
        }
        gradients(&cell, &h.try_sum()?)
    }))
}

/// The same with two states, of which every step gives an output.
fn lstm(length: usize) -> Result<Recording> {
    let cell = LSTMCell::new(4, 8, true);
    let x = given(Tensor::try_rand([length, 2, 4])?)?;
    try_realize_all(&cell.parameters())?;
    Ok(Box::new(move || {
        let (mut state, mut outputs) = (None, Vec::new());
        for k in 0..length {
            let (h, c) = cell.try_run(&x.try_select(0, k as isize)?, state.as_ref().map(|(h, c)| (h, c)))?;
            outputs.push(h.clone());
            state = Some((h, c));
        }
        let outputs: Vec<&Tensor> = outputs.iter().collect();
        gradients(&cell, &Tensor::try_stack(&outputs, 0)?.try_square()?.try_mean()?)
    }))
}

/// A training step of a deep network.
fn deep(length: usize) -> Result<Recording> {
    let mut layers: Vec<Box<dyn Module>> = Vec::new();
    for _ in 0..length {
        layers.push(Box::new(Linear::new(8, 8, true)));
        layers.push(Box::new(ReLU));
    }
    let model = Sequential::new(layers);
    let x = given(Tensor::try_rand([4, 8])?)?;
    try_realize_all(&model.parameters())?;
    let mut adam = Adam::new(model.parameters(), 1e-3, (0.9, 0.999), 1e-8, 0.0);
    Ok(Box::new(move || {
        model.try_forward(&x)?.try_square()?.try_mean()?.try_backward()?;
        adam.try_step()?;
        Ok(Vec::new())
    }))
}

/// An optimizer's step for many tensors.
fn updates(length: usize) -> Result<Recording> {
    let all: Vec<Tensor> = (0..length).map(|k| Tensor::zeros([k % 7 + 1, 4]).requires_grad(true)).collect();
    let gradients: Vec<Tensor> = all.iter().map(|x| Tensor::ones(x.shape())).collect();
    try_realize_all(&all)?;
    for (x, gradient) in all.iter().zip(gradients) {
        x.set_grad(Some(gradient));
    }
    let mut adam = Adam::new(all, 1e-3, (0.9, 0.999), 1e-8, 0.0);
    Ok(Box::new(move || {
        adam.try_step()?;
        Ok(Vec::new())
    }))
}

/// The plan of a graph, and how long it took to record it and to plan it.
fn plan(graph: Graph, length: usize) -> Result<(PlanReport, Duration, Duration)> {
    let recording = graph(length)?;
    let (start, mut recorded) = (Instant::now(), None);
    let report = plan_only(|| {
        let asked = recording()?;
        recorded = Some(start.elapsed());
        try_realize_all(&asked)
    })?;
    let all = start.elapsed();
    // An optimizer's step asks for the plan itself.
    Ok((report.expect("there is something to compute"), recorded.unwrap_or_default(), all))
}

fn print(name: &str, graph: Graph, length: usize) -> Result<()> {
    let (report, recorded, all) = plan(graph, length)?;
    let ops: usize = report.kernels.iter().map(|k| k.ops.len()).sum();
    println!(
        "{name:<12} {length:>7} {ops:>8} {:>8} {:>10.1} {:>10.1} {:>8.1}",
        report.kernels.len(),
        recorded.as_secs_f64() * 1e3,
        all.as_secs_f64() * 1e3,
        all.as_secs_f64() * 1e6 / ops as f64
    );
    Ok(())
}

/// What a training step of a model is planned to be.
fn training(model: &impl Module, half: bool, loss: impl Fn() -> Result<Tensor>) -> Result<PlanReport> {
    try_realize_all(&model.parameters())?;
    let mut adam = AdamW::new(model.parameters(), 1e-3, (0.9, 0.999), 1e-8, 0.01);
    let report = plan_only(|| {
        let loss = if half { autocast(DType::F16, &loss)? } else { loss()? };
        loss.try_backward()?;
        adam.try_step()
    })?;
    Ok(report.expect("a step"))
}

fn reports() -> Result<Vec<(String, PlanReport)>> {
    let mut all = Vec::new();
    for (name, kind) in KINDS {
        for length in [1, 3, 40, 200] {
            all.push((format!("{name} {length}"), plan(kind, length)?.0));
        }
    }
    let classes = given(Tensor::try_randint(0, 10, [16])?)?;
    let x = given(Tensor::try_rand([16, 3, 16, 16])?)?;
    let convolutions = Sequential::new(vec![
        Box::new(Conv2d::new(3, 8, 3, 1, 1, true)),
        Box::new(BatchNorm2d::new(8)),
        Box::new(ReLU),
        Box::new(Conv2d::new(8, 10, 16, 1, 0, true)),
    ]);
    let loss = || try_cross_entropy(&convolutions.try_forward(&x)?.try_flatten(1, -1)?, &classes);
    all.push(("convolutions".into(), training(&convolutions, false, loss)?));
    for layers in [1, 4, 24] {
        for half in [false, true] {
            let options = GptOptions {
                vocabulary: 65,
                context: 32,
                layers,
                heads: 2,
                width: 32,
                ..GptOptions::default()
            };
            let gpt = Gpt::try_new(options)?;
            let ids = || given(Tensor::try_randint(0, 65, [4, 32])?);
            let (tokens, next) = (ids()?, ids()?);
            let report = training(&gpt, half, || gpt.try_loss(&tokens, &next))?;
            all.push((format!("gpt of {layers} layers{}", if half { ", f16" } else { "" }), report));
        }
    }
    Ok(all)
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "reports") {
        for (name, report) in reports()? {
            let mut hash = DefaultHasher::new();
            format!("{report:?}").hash(&mut hash);
            let (kernels, bytes) = (report.kernels.len(), report.peak_bytes);
            println!("{name:<24} {kernels:>6} kernels {bytes:>10} bytes  {:016x}", hash.finish());
        }
        return Ok(());
    }
    println!(
        "{:<12} {:>7} {:>8} {:>8} {:>10} {:>10} {:>8}",
        "graph", "length", "ops", "kernels", "record ms", "all ms", "µs an op"
    );
    let lengths: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let lengths = if lengths.is_empty() { vec![10, 100, 1000, 10_000] } else { lengths };
    for (name, kind) in KINDS {
        if words.iter().any(|word| word.parse::<usize>().is_err()) && !words.iter().any(|word| word == name) {
            continue;
        }
        for &length in &lengths {
            print(name, kind, length)?;
        }
    }
    Ok(())
}
