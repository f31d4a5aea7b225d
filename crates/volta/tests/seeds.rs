//! The code of the document on training with a GPU, as it is written there. Small sizes stand in for its data; the
//! adapter is whatever `Device::gpu()` finds (a software one if `VOLTA_ADAPTER` names it).

// The snippets clone devices, borrow shapes and make models mutable, which they need not.
#![allow(clippy::clone_on_copy, clippy::needless_borrows_for_generic_args, unused_mut)]

use std::sync::{Mutex, PoisonError};
use volta::{Conv2d, DataLoader, Device, Linear, Module, RawTensor, ReLU, Sequential, manual_seed};
use volta_testing::test;

/// Snippets share the program's random numbers.
static TURN: Mutex<()> = Mutex::new(());

/// The GPU if there is one, which there must be in continuous integration.
fn device() -> Option<Device> {
    match Device::gpu() {
        Ok(device) => Some(device),
        Err(error) if std::env::var_os("CI").is_some() => panic!("{error}"),
        Err(error) => {
            eprintln!("left out: {error}");
            None
        }
    }
}

/// The quick start, with the document's `use` line and no other.
mod quick_start {
    #[rustfmt::skip]
    use volta::{Adam, Device, Linear, Module, ReLU, Sequential, RawTensor, mse_loss};

    /// The losses on the way, and the model.
    pub fn train(device: Device, x_batch: RawTensor, y_batch: RawTensor) -> (Vec<f32>, Sequential) {
        let mut losses = Vec::new();

        // 2. Create model on GPU
        let mut model = Sequential::new(vec![
            Box::new(Linear::new_on_device(784, 128, true, device.clone())),
            Box::new(ReLU),
            Box::new(Linear::new_on_device(128, 10, true, device.clone())),
        ]);

        // 3. Create optimizer (uses GPU automatically)
        let mut opt = Adam::new(model.parameters(), 0.001, (0.9, 0.999), 1e-8, 0.0);

        // 4. Training loop (everything stays on GPU)
        for epoch in 0..100 {
            opt.zero_grad();
            let x = x_batch.to_device(device.clone());
            let y = y_batch.to_device(device.clone());

            let predictions = model.forward(&x); // GPU forward
            let loss = mse_loss(&predictions, &y); // GPU loss
            loss.backward(); // GPU backward
            opt.step(); // GPU optimizer
            if epoch % 33 == 0 {
                losses.push(loss.item::<f32>());
            }
        }
        (losses, model)
    }
}

#[test]
fn the_quick_start_trains() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(device) = device() else { return };
    manual_seed(1);
    let (losses, model) =
        quick_start::train(device, RawTensor::randn(&[16, 784]), RawTensor::randn(&[16, 10]));
    assert!(losses[3] < losses[0] * 0.1, "{losses:?}");
    assert!(model.parameters().iter().all(|p| p.device() == device));
}

#[test]
fn a_model_migrates_and_keeps_its_values() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(device) = device() else { return };
    // Start with CPU model
    let mut model = Sequential::new(vec![
        Box::new(Linear::new(784, 128, true)),
        Box::new(ReLU),
        Box::new(Linear::new(128, 10, true)),
    ]);
    model.to_device(Device::Cpu);
    let x = RawTensor::randn(&[3, 784]).to_device(Device::Cpu);
    let before = model.forward(&x).to_vec::<f32>();

    // Move to GPU
    model.to_device(Device::gpu().unwrap());

    // Now all operations use GPU
    let there = model.forward(&x.to_device(device));
    assert_eq!(there.device(), device);
    for (a, b) in there.to_vec::<f32>().iter().zip(&before) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
    model.to_device(Device::Cpu);
    assert_eq!(model.forward(&x).to_vec::<f32>(), before, "there and back changes nothing");
}

#[test]
fn a_loaders_batches_are_on_the_device() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(device) = device() else { return };
    let (data, targets) = (vec![0.5; 100 * 28 * 28], vec![0.0; 100 * 10]);
    let mut samples = 0;

    let dataloader = DataLoader::new(data, targets, &[28, 28], &[10], 64, true).with_device(device);

    for (x, y) in dataloader {
        // x and y already on GPU!
        assert_eq!((x.device(), y.device()), (device, device));
        assert_eq!((&x.shape()[1..], &y.shape()[1..]), (&[28, 28][..], &[10][..]));
        samples += x.size(0);
    }
    assert_eq!(samples, 100);
}

#[test]
fn layers_are_made_on_a_device() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(device) = device() else { return };
    // Create layers directly on GPU
    let layer = Linear::new_on_device(784, 128, true, device);
    let conv = Conv2d::new_on_device(3, 64, 3, 1, 1, true, device);
    for p in layer.parameters().iter().chain(&conv.parameters()) {
        assert_eq!(p.device(), device);
    }
    let x = RawTensor::new_on_device(vec![1.0; 2 * 3 * 8 * 8], &[2, 3, 8, 8], false, device);
    assert_eq!(conv.forward(&x).shape()[..], [2, 64, 8, 8]);
    let z = RawTensor::new(vec![1.0, 2.0], &[2], true);
    z.square().sum().backward();
    assert_eq!(z.grad().unwrap().to_vec::<f32>(), [2.0, 4.0]);
}

volta_testing::main!();
