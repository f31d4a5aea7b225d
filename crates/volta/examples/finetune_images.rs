//! A network that knows ImageNet learns the classes of a folder of images: one folder inside of it for each class.
//!
//! `cargo run --release --example finetune_images -- --data FOLDER --weights resnet18.pth`
//!
//! The weights are torchvision's, as it downloads them; without them the network begins with random ones. Without images it draws
//! circles and squares first.

use clap::{Parser, ValueEnum};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use volta::data::{
    DataLoader, Dataset, ImageFolder, Normalize, RandomHorizontalFlip, Resize, Subset, ToFloat,
};
use volta::models::{
    MobileNetV2, MobileNetV2Options, ResNet, ResNetOptions, VisionTransformer, VisionTransformerOptions,
};
use volta::train::{Trainer, TrainerOptions, classified};
use volta::{AdamW, Device, Linear, Module, Result, Tensor, manual_seed, set_default_device};

#[derive(Clone, Copy, ValueEnum)]
enum Network {
    Resnet18,
    Resnet50,
    MobilenetV2,
    VitB16,
}

#[derive(Parser)]
struct Options {
    /// A folder with a folder of images for every class.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Torchvision's weights of the network, as .pth or .safetensors.
    #[arg(long)]
    weights: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "resnet18")]
    network: Network,
    /// Height and width that images are brought to; a ViT's are 224.
    #[arg(long, default_value_t = 224)]
    size: usize,
    /// Train the last layer alone.
    #[arg(long)]
    freeze: bool,
    /// Walks through the images.
    #[arg(long, default_value_t = 3)]
    epochs: u64,
    /// Images a step.
    #[arg(long, default_value_t = 16)]
    batch: usize,
    #[arg(long, default_value_t = 3e-4)]
    learning_rate: f64,
    /// Where the trained weights go.
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Gives a network torchvision's weights, and then a last layer of its own for `classes`.
fn prepare<M: Module>(
    mut model: M,
    options: &Options,
    classes: usize,
    head: impl Fn(&mut M) -> &mut Linear,
) -> Result<(M, Vec<Tensor>)> {
    if let Some(path) = &options.weights {
        volta::load(&model, path, true)?;
    }
    let last = head(&mut model);
    *last = Linear::new(last.weight.size(1), classes, true);
    let trained = if options.freeze { last.parameters() } else { model.parameters() };
    if options.freeze {
        model.set_requires_grad(false);
        trained.iter().for_each(|p| p.set_requires_grad(true));
    }
    Ok((model, trained))
}

fn network(options: &Options, classes: usize) -> Result<(Box<dyn Module>, Vec<Tensor>)> {
    fn boxed<M: Module + 'static>((model, trained): (M, Vec<Tensor>)) -> (Box<dyn Module>, Vec<Tensor>) {
        (Box::new(model), trained)
    }
    Ok(match options.network {
        Network::Resnet18 => {
            boxed(prepare(ResNet::new(ResNetOptions::resnet18()), options, classes, |m| &mut m.fc)?)
        }
        Network::Resnet50 => {
            boxed(prepare(ResNet::new(ResNetOptions::resnet50()), options, classes, |m| &mut m.fc)?)
        }
        Network::MobilenetV2 => {
            let model = MobileNetV2::new(MobileNetV2Options::default());
            boxed(prepare(model, options, classes, |m| &mut m.classifier.1)?)
        }
        Network::VitB16 => {
            let model = VisionTransformer::new(VisionTransformerOptions::b_16());
            boxed(prepare(model, options, classes, |m| &mut m.heads.head)?)
        }
    })
}

/// Circles and squares of random places, sizes and colours, as files.
fn draw(folder: &Path, count: usize) -> std::io::Result<()> {
    const SIDE: i64 = 40;
    let mut state = 1u64;
    let mut random = |most: i64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % most as u64) as i64
    };
    for class in ["circles", "squares"] {
        std::fs::create_dir_all(folder.join(class))?;
        for k in 0..count {
            let (x, y, r) = (12 + random(16), 12 + random(16), 6 + random(6));
            let colours = [0; 6].map(|_| 40 + random(200) as u8);
            let mut file = format!("P6\n{SIDE} {SIDE}\n255\n").into_bytes();
            for place in 0..SIDE * SIDE {
                let (dx, dy) = ((place % SIDE - x).abs(), (place / SIDE - y).abs());
                let inside = if class == "circles" { dx * dx + dy * dy <= r * r } else { dx.max(dy) <= r };
                file.extend(if inside { &colours[..3] } else { &colours[3..] });
            }
            std::fs::write(folder.join(class).join(format!("{k}.ppm")), file)?;
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let options = Options::parse();
    set_default_device(Device::auto());
    manual_seed(0);
    let made = std::env::temp_dir().join(format!("volta-images-{}", std::process::id()));
    if options.data.is_none() {
        println!("Without --data it learns circles and squares that it draws itself.");
        draw(&made, 100).expect("a folder for temporary files");
    }
    let images = Arc::new(ImageFolder::open(options.data.as_ref().unwrap_or(&made))?);
    println!("{} images of {}.", images.len(), images.classes().join(", "));
    let (model, trained) = network(&options, images.classes().len())?;
    let mut adam = AdamW::new(trained, options.learning_rate, (0.9, 0.999), 1e-8, 0.01);

    // Every fifth image is kept for validation.
    let part = |kept: bool| (0..images.len()).filter(|k| (k % 5 == 4) == kept).collect::<Vec<_>>();
    let size = Resize::new(options.size, options.size);
    let normal = || Normalize::new(&[0.485, 0.456, 0.406], &[0.229, 0.224, 0.225]);
    let seen = Subset::new(images.clone(), part(false)).map((
        size,
        RandomHorizontalFlip::new(0.5),
        ToFloat,
        normal(),
    ));
    let kept = Subset::new(images.clone(), part(true)).map((size, ToFloat, normal()));
    let mut train = DataLoader::over(seen, options.batch).with_shuffle(true).with_workers(1);
    let mut test = DataLoader::over(kept, options.batch).with_workers(1);
    let settings = TrainerOptions { epochs: options.epochs, log_every: 10, ..TrainerOptions::default() };
    let history = Trainer::new(&model, &mut adam, settings)
        .fit(&mut train, Some(&mut test), |x, y| Ok(classified(&model.forward(x), y)))?;
    println!(
        "{:.2}% of the images that it did not learn are right.",
        100.0 * history.last("validation/accuracy").unwrap_or(f64::NAN)
    );
    if let Some(path) = &options.output {
        volta::save(&model, path)?;
        println!("{} holds the weights.", path.display());
    }
    if options.data.is_none() {
        let _ = std::fs::remove_dir_all(&made);
    }
    Ok(())
}
