//! MNIST itself, where `VOLTA_DATA` has it: the convolutional network of the example learns it in one epoch.

use std::path::PathBuf;
use std::sync::Arc;
use volta::data::{DataLoader, Dataset, Mnist, Normalize, Subset, ToFloat};
use volta::nn::Flatten;
use volta::train::{Trainer, TrainerOptions, classified};
use volta::{Adam, Conv2d, Linear, MaxPool2d, Module, ReLU, Sequential, default_device, gpu, manual_seed};
use volta_testing::test;

#[test]
fn a_convolutional_network_learns_mnist_in_an_epoch() {
    let Some(folder) = std::env::var_os("VOLTA_DATA").map(|f| PathBuf::from(f).join("mnist")) else {
        eprintln!("left out: VOLTA_DATA does not say where MNIST is");
        return;
    };
    if !folder.is_dir() {
        eprintln!("left out: {} is not there", folder.display());
        return;
    }
    // A processor that plays a GPU would take an hour: there a small part must do.
    let is_slow = default_device().is_gpu()
        && gpu::adapters().iter().any(|a| a.index == Some(0) && a.kind == gpu::AdapterKind::Software);
    let (samples, least) = if is_slow { (1_920, 0.75) } else { (60_000, 0.985) };
    manual_seed(0);
    let change = || (ToFloat, Normalize::new(&[0.1307], &[0.3081]));
    let (train, test) = (Mnist::train(&folder).unwrap(), Mnist::test(&folder).unwrap());
    let test_count = if is_slow { 500 } else { test.len() };
    let part = |images, count: usize| Subset::new(Arc::new(images), (0..count).collect());
    let mut train = DataLoader::over(part(train, samples).map(change()), 64).with_shuffle(true).with_seed(0);
    let mut test = DataLoader::over(part(test, test_count).map(change()), 250);
    let model = Sequential::new(vec![
        Box::new(Conv2d::new(1, 32, 3, 1, 0, true)),
        Box::new(ReLU),
        Box::new(Conv2d::new(32, 64, 3, 1, 0, true)),
        Box::new(ReLU),
        Box::new(MaxPool2d::new(2, 2, 0)),
        Box::new(Flatten::default()),
        Box::new(Linear::new(9216, 128, true)),
        Box::new(ReLU),
        Box::new(Linear::new(128, 10, true)),
    ]);
    let mut adam = Adam::new(model.parameters(), 1e-3, (0.9, 0.999), 1e-8, 0.0);
    let options = TrainerOptions { progress: false, ..TrainerOptions::default() };
    let history = Trainer::new(&model, &mut adam, options)
        .fit(&mut train, Some(&mut test), |x, y| Ok(classified(&model.try_forward(x)?, y)))
        .unwrap();
    let accuracy = history.last("validation/accuracy").unwrap();
    eprintln!("{:.2}% of {test_count} test images are right after {samples}", 100.0 * accuracy);
    assert!(accuracy >= least, "{accuracy}");
}

volta_testing::main!();
