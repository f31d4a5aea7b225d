//! A residual network on small colour pictures: CIFAR-10's files, or coloured digits that it draws itself.
//!
//! `cargo run --release --example resnet_cifar -- --data FOLDER`

use clap::Parser;
use std::path::PathBuf;
use std::sync::Arc;
use volta::data::{
    Array, Cifar10, DataLoader, Dataset, Elements, Normalize, Pad, RandomCrop, RandomHorizontalFlip, Subset,
    SyntheticDigits, ToFloat, from_fn,
};
use volta::optim::{OneCycleLR, SGDOptions};
use volta::train::{Trainer, TrainerOptions, classified};
use volta::{
    BatchNorm2d, Conv2d, Device, Linear, Module, Result, SGD, Tensor, manual_seed, set_default_device,
};

#[derive(Parser)]
struct Options {
    /// The folder of CIFAR-10's binary files.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Walks through the training data.
    #[arg(long, default_value_t = 3)]
    epochs: u64,
    /// Train on the first so many pictures only.
    #[arg(long, default_value_t = 50_000)]
    samples: usize,
    /// Channels of the first stage.
    #[arg(long, default_value_t = 16)]
    width: usize,
}

/// Two convolutions around which the input flows on.
#[derive(Module)]
struct Residual {
    conv1: Conv2d,
    norm1: BatchNorm2d,
    conv2: Conv2d,
    norm2: BatchNorm2d,
    short: Option<Conv2d>,
}

impl Residual {
    fn new(inputs: usize, outputs: usize, stride: usize) -> Residual {
        Residual {
            conv1: Conv2d::new(inputs, outputs, 3, stride, 1, false),
            norm1: BatchNorm2d::new(outputs),
            conv2: Conv2d::new(outputs, outputs, 3, 1, 1, false),
            norm2: BatchNorm2d::new(outputs),
            short: (inputs != outputs).then(|| Conv2d::new(inputs, outputs, 1, stride, 0, false)),
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let y = self.norm1.forward(&self.conv1.forward(x)).relu();
        let y = self.norm2.forward(&self.conv2.forward(&y));
        (y + self.short.as_ref().map_or(x.clone(), |s| s.forward(x))).relu()
    }
}

#[derive(Module)]
struct ResNet {
    stem: Conv2d,
    norm: BatchNorm2d,
    blocks: Vec<Residual>,
    head: Linear,
}

impl ResNet {
    fn new(width: usize) -> ResNet {
        ResNet {
            stem: Conv2d::new(3, width, 3, 1, 1, false),
            norm: BatchNorm2d::new(width),
            blocks: vec![
                Residual::new(width, width, 1),
                Residual::new(width, 2 * width, 2),
                Residual::new(2 * width, 4 * width, 2),
            ],
            head: Linear::new(4 * width, 10, true),
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.norm.forward(&self.stem.forward(x)).relu();
        let x = self.blocks.iter().fold(x, |x, block| block.forward(&x));
        self.head.forward(&x.mean_dim([2, 3], false))
    }
}

/// Digits of 3 × 32 × 32, in a warm colour.
fn coloured(count: usize, seed: u64) -> impl Dataset {
    SyntheticDigits::new(count, seed).map((
        Pad::new(2),
        ToFloat,
        from_fn(|grey, _draw| {
            let Elements::F32(pixels) = grey.into_elements() else { unreachable!("floats by now") };
            let colours = [1.0, 0.6, 0.3].into_iter();
            let colours: Vec<f32> = colours.flat_map(|c| pixels.iter().map(move |p| c * p)).collect();
            Array::try_new(colours, &[3, 32, 32])
        }),
    ))
}

fn main() -> Result<()> {
    let options = Options::parse();
    set_default_device(Device::auto());
    manual_seed(0);
    let normal = || Normalize::new(&[0.49, 0.48, 0.45], &[0.25, 0.24, 0.26]);
    let (train, test): (Arc<dyn Dataset>, Arc<dyn Dataset>) = match &options.data {
        Some(folder) => {
            let varied =
                (RandomHorizontalFlip::new(0.5), RandomCrop::new(32, 32).with_padding(4), ToFloat, normal());
            (
                Arc::new(Cifar10::train(folder)?.map(varied)),
                Arc::new(Cifar10::test(folder)?.map((ToFloat, normal()))),
            )
        }
        None => {
            println!("Without --data it learns coloured digits that it draws itself.");
            (Arc::new(coloured(options.samples.min(6_000), 0)), Arc::new(coloured(500, 1)))
        }
    };
    let count = options.samples.min(train.len());
    let mut train = DataLoader::over(Subset::new(Arc::new(train), (0..count).collect()), 64)
        .with_shuffle(true)
        .with_workers(1);
    let mut test = DataLoader::over(test, 250).with_workers(1);
    let model = ResNet::new(options.width);
    let rule = SGDOptions { learning_rate: 0.1, momentum: 0.9, weight_decay: 5e-4, ..SGDOptions::default() };
    let mut sgd = SGD::with(model.parameters(), rule);
    let steps = options.epochs * train.len() as u64;
    let settings = TrainerOptions { epochs: options.epochs, log_every: 20, ..TrainerOptions::default() };
    let history = Trainer::new(&model, &mut sgd, settings).with_schedule(OneCycleLR::new(steps)).fit(
        &mut train,
        Some(&mut test),
        |x, y| Ok(classified(&model.forward(x), y)),
    )?;
    println!(
        "{:.2}% of the test pictures are right.",
        100.0 * history.last("validation/accuracy").unwrap_or(f64::NAN)
    );
    Ok(())
}
