//! XOR, learnt on the CPU and on the GPU by the same code, with both times.
//!
//! `cargo run --release --example gpu_training`

use std::time::Instant;
use volta::{Adam, Device, Linear, Module, RawTensor, ReLU, Sequential, Tensor, manual_seed, mse_loss};

const EPOCHS: usize = 200;

/// Trains on a device; the last loss, what the network says, and the milliseconds after the first epoch, in which the
/// plan is compiled.
fn train(device: Device) -> (f32, Vec<f32>, f64) {
    manual_seed(7);
    let x = RawTensor::new_on_device(vec![0., 0., 0., 1., 1., 0., 1., 1.], &[4, 2], false, device);
    let y = RawTensor::new_on_device(vec![0., 1., 1., 0.], &[4, 1], false, device);
    let model = Sequential::new(vec![
        Box::new(Linear::new_on_device(2, 8, true, device)),
        Box::new(ReLU),
        Box::new(Linear::new_on_device(8, 1, true, device)),
    ]);
    let mut adam = Adam::new(model.parameters(), 0.05, (0.9, 0.999), 1e-8, 0.0);
    let mut step = || {
        adam.zero_grad();
        let loss = mse_loss(&model.forward(&x), &y);
        loss.backward();
        adam.step();
        loss
    };
    let mut loss: Tensor = step();
    loss.item::<f32>();
    let start = Instant::now();
    for _ in 1..EPOCHS {
        loss = step();
    }
    let last = loss.item();
    (last, model.forward(&x).to_vec(), start.elapsed().as_secs_f64() * 1e3)
}

fn main() {
    let mut devices = vec![Device::Cpu];
    match Device::gpu() {
        Ok(gpu) => devices.push(gpu),
        Err(error) => println!("Only the CPU trains here: {}\n", error.message()),
    }
    for device in devices {
        let (loss, says, milliseconds) = train(device);
        let says: Vec<String> = says.iter().map(|v| format!("{v:.2}")).collect();
        println!(
            "{device}: {EPOCHS} epochs in {milliseconds:.1} ms, loss {loss:.5}; XOR is [{}]",
            says.join(", ")
        );
        assert!(loss < 0.01, "XOR was not learnt");
    }
}
