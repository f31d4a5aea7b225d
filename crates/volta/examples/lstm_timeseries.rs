//! The next value of a series, from an LSTM.
//!
//! `cargo run --release --example lstm_timeseries`

use clap::Parser;
use volta::nn::LSTM;
use volta::{Adam, Linear, Module, Tensor, manual_seed, mse_loss, no_grad};

#[derive(Parser)]
struct Options {
    /// Training steps.
    #[arg(long, default_value_t = 200)]
    steps: usize,
}

#[derive(Module)]
struct Forecaster {
    memory: LSTM,
    head: Linear,
}

impl Forecaster {
    fn new() -> Forecaster {
        Forecaster { memory: LSTM::new(1, 32), head: Linear::new(32, 1, true) }
    }

    /// What follows every value of (length, batch, 1).
    fn forward(&self, x: &Tensor) -> Tensor {
        self.head.forward(&self.memory.forward(x))
    }
}

/// Two waves of different lengths, from some places on: (length, batch, 1), and the same one value later.
fn series(length: usize, starts: &[f32]) -> (Tensor, Tensor) {
    let value = |t: f32| (0.2 * t).sin() + 0.5 * (0.31 * t).sin();
    let from = |offset: usize| {
        let values: Vec<f32> =
            (0..length).flat_map(|k| starts.iter().map(move |s| value(s + (k + offset) as f32))).collect();
        Tensor::from_vec(values, [length, starts.len(), 1])
    };
    (from(0), from(1))
}

fn main() {
    let options = Options::parse();
    manual_seed(0);
    let model = Forecaster::new();
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let (x, y) = series(40, &(0..16).map(|k| 7.3 * k as f32).collect::<Vec<_>>());
    for step in 0..options.steps {
        adam.zero_grad();
        let loss = mse_loss(&model.forward(&x), &y);
        loss.backward();
        adam.step();
        if step % 50 == 0 {
            println!("step {step:>4}  loss {:.5}", loss.item::<f32>());
        }
    }
    // Elsewhere on the same waves.
    let (x, y) = series(40, &[500.0, 731.0]);
    let error = no_grad(|| mse_loss(&model.forward(&x), &y)).item::<f32>();
    let naive = mse_loss(&x, &y).item::<f32>();
    println!("unseen series: error {error:.5}; saying the last value again: {naive:.5}");
    assert!(options.steps < 200 || error < naive, "the network is worse than saying the last value again");
}
