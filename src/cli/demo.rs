//! Training a small network to tell two spirals apart: the whole path from data to plan in one page.

use indicatif::{ProgressBar, ProgressStyle};
use std::f64::consts::TAU;
use std::process::ExitCode;
use volta::{Adam, Optimizer, Tensor, counters, cross_entropy, last_plan, manual_seed, no_grad};

#[derive(clap::Args)]
pub struct Options {
    /// Training steps.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Where the random numbers start.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Points on two spirals, and which of the two each is on.
fn spirals(count: usize) -> (Tensor, Tensor) {
    let arm = Tensor::randint(0, 2, [count]);
    let along = Tensor::rand([count]).sqrt();
    let angle = &along * (1.5 * TAU) + &arm * (TAU / 2.0);
    let noise = Tensor::randn([count, 2]) * 0.02;
    let points = Tensor::stack(&[&(&along * angle.cos()), &(&along * angle.sin())], 1) + noise;
    (points, arm)
}

/// Weights as PyTorch's `Linear` starts them: uniform within 1/√inputs.
fn linear(inputs: usize, outputs: usize) -> [Tensor; 2] {
    let bound = 1.0 / (inputs as f64).sqrt();
    let uniform = |shape: &[usize]| ((Tensor::rand(shape) * 2.0 - 1.0) * bound).requires_grad(true);
    [uniform(&[outputs, inputs]), uniform(&[outputs])]
}

fn forward(layers: &[[Tensor; 2]], x: &Tensor) -> Tensor {
    let mut x = x.clone();
    for (k, [weight, bias]) in layers.iter().enumerate() {
        x = x.matmul(&weight.t()) + bias;
        if k + 1 < layers.len() {
            x = x.relu();
        }
    }
    x
}

fn accuracy(layers: &[[Tensor; 2]], points: &Tensor, arms: &Tensor) -> f64 {
    no_grad(|| {
        forward(layers, points).argmax_dim(1, false).eq(arms).to_dtype(volta::DType::F32).mean().item()
    })
}

pub fn run(options: &Options) -> ExitCode {
    manual_seed(options.seed);
    let (points, arms) = spirals(1024);
    let (test_points, test_arms) = spirals(1024);
    let layers = [linear(2, 64), linear(64, 64), linear(64, 2)];
    let mut adam = Adam::new(layers.iter().flatten().cloned().collect(), 0.005, (0.9, 0.999), 1e-8, 0.0);

    println!("Two spirals, 1024 points; a network of 2-64-64-2 with ReLU; Adam; {} steps.", options.steps);
    let bar = ProgressBar::new(options.steps);
    bar.set_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {per_sec} {eta} left")
            .expect("a valid template"),
    );
    let mut last = f64::NAN;
    for step in 0..options.steps {
        adam.zero_grad();
        let loss = cross_entropy(&forward(&layers, &points), &arms);
        loss.backward();
        adam.step();
        if step % 100 == 99 || step + 1 == options.steps {
            last = loss.item();
            bar.set_message(format!("loss {last:.4}"));
            // Without a terminal the bar is silent; a line now and then is not.
            if bar.is_hidden() && (step + 1) % (options.steps / 10).max(1) == 0 {
                println!("step {:>5}  loss {last:.4}", step + 1);
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let report = last_plan();
    println!(
        "Loss {last:.4}; {:.1}% of new points right.",
        100.0 * accuracy(&layers, &test_points, &test_arms)
    );
    if let Some(report) = report {
        println!("\nThe plan of a step:\n{report}");
    }
    let c = counters();
    println!(
        "\n{} plans compiled, {} replayed, {} kernels run, {} host copies, {:.1} MB in the memory pool.",
        c.plans_compiled,
        c.plans_replayed,
        c.kernels_run,
        c.uploads + c.reads,
        c.pool_bytes as f64 / 1e6
    );
    if last.is_finite() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
