//! Handwritten digits: a perceptron or a convolutional network, on MNIST's files or on digits that it draws itself.
//!
//! `cargo run --release --example mnist -- --model cnn --data FOLDER`; without `--data` the folder `mnist` of
//! `VOLTA_DATA` is looked for.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::sync::Arc;
use volta::data::{DataLoader, Dataset, Mnist, Normalize, Subset, SyntheticDigits, ToFloat};
use volta::nn::{Flatten, summary};
use volta::train::{Trainer, TrainerOptions, classified};
use volta::{
    Adam, Conv2d, Device, Linear, MaxPool2d, Module, ReLU, Result, Sequential, manual_seed,
    set_default_device,
};

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Mlp,
    Cnn,
}

#[derive(Parser)]
struct Options {
    /// The network.
    #[arg(long, value_enum, default_value = "cnn")]
    model: Kind,
    /// The folder of MNIST's four files, zipped or not.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Walks through the training data.
    #[arg(long, default_value_t = 1)]
    epochs: u64,
    /// Train on the first so many samples only.
    #[arg(long)]
    samples: Option<usize>,
    /// Where to train: cpu, gpu or gpu:N; without it, a GPU if there is one.
    #[arg(long)]
    device: Option<Device>,
    /// Fail below this accuracy.
    #[arg(long, default_value_t = 0.0)]
    at_least: f64,
}

fn network(kind: Kind) -> Sequential {
    match kind {
        Kind::Mlp => Sequential::new(vec![
            Box::new(Flatten::default()),
            Box::new(Linear::new(784, 256, true)),
            Box::new(ReLU),
            Box::new(Linear::new(256, 10, true)),
        ]),
        Kind::Cnn => Sequential::new(vec![
            Box::new(Conv2d::new(1, 32, 3, 1, 0, true)),
            Box::new(ReLU),
            Box::new(Conv2d::new(32, 64, 3, 1, 0, true)),
            Box::new(ReLU),
            Box::new(MaxPool2d::new(2, 2, 0)),
            Box::new(Flatten::default()),
            Box::new(Linear::new(9216, 128, true)),
            Box::new(ReLU),
            Box::new(Linear::new(128, 10, true)),
        ]),
    }
}

type Images = Arc<dyn Dataset>;

/// Training and test images, and where they are from.
fn digits(folder: Option<PathBuf>) -> Result<(Images, Images, String)> {
    let given = folder.or_else(|| {
        let found = PathBuf::from(std::env::var_os("VOLTA_DATA")?).join("mnist");
        found.is_dir().then_some(found)
    });
    Ok(match given {
        Some(folder) => {
            let from = folder.display().to_string();
            (Arc::new(Mnist::train(&folder)?), Arc::new(Mnist::test(&folder)?), from)
        }
        None => (
            Arc::new(SyntheticDigits::new(12_000, 0)),
            Arc::new(SyntheticDigits::new(2_000, 1)),
            "digits drawn here (give MNIST's folder by --data)".to_string(),
        ),
    })
}

fn main() -> Result<()> {
    let options = Options::parse();
    set_default_device(options.device.unwrap_or_else(Device::auto));
    manual_seed(0);
    let (train, test, from) = digits(options.data)?;
    let count = options.samples.unwrap_or(usize::MAX).min(train.len());
    println!("Learning {count} images from {from} on {}.", volta::default_device());
    let change = || (ToFloat, Normalize::new(&[0.1307], &[0.3081]));
    let train = Subset::new(Arc::new(train), (0..count).collect()).map(change());
    let mut train = DataLoader::over(train, 64).with_shuffle(true).with_workers(1);
    let mut test = DataLoader::over(test.map(change()), 500).with_workers(1);

    let model = network(options.model);
    if let Some((x, _)) = train.peek()? {
        println!("{}\n", summary(&model, Some(&x))?);
    }
    let mut adam = Adam::new(model.parameters(), 1e-3, (0.9, 0.999), 1e-8, 0.0);
    let settings = TrainerOptions { epochs: options.epochs, log_every: 100, ..TrainerOptions::default() };
    let mut trainer = Trainer::new(&model, &mut adam, settings);
    let history =
        trainer.fit(&mut train, Some(&mut test), |x, y| Ok(classified(&model.try_forward(x)?, y)))?;

    let (steps, time) = trainer.speed();
    let accuracy = history.last("validation/accuracy").unwrap_or(f64::NAN);
    println!(
        "{:.2}% of the test images are right; {steps} steps of {:.2} ms, of which {:.1}% waiting for data.",
        100.0 * accuracy,
        time.as_secs_f64() * 1e3 / steps.max(1) as f64,
        100.0 * train.waited().as_secs_f64() / time.as_secs_f64()
    );
    assert!(accuracy >= options.at_least, "{accuracy} is below {}", options.at_least);
    Ok(())
}
