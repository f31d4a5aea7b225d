//! A variational autoencoder: digits through eight numbers and back.
//!
//! `cargo run --release --example vae`

use clap::Parser;
use volta::data::{DataLoader, Dataset, SyntheticDigits, ToFloat};
use volta::{
    Adam, BceOptions, Device, Linear, Module, Reduction, Result, Tensor, bce_with_logits_with, manual_seed,
    no_grad, set_default_device,
};

#[derive(Parser)]
struct Options {
    /// Training steps.
    #[arg(long, default_value_t = 600)]
    steps: usize,
}

const PIXELS: usize = 784;
const LATENT: usize = 8;

#[derive(Module)]
struct Vae {
    encoder: Linear,
    mean: Linear,
    log_variance: Linear,
    decoder: Linear,
    pixels: Linear,
}

impl Vae {
    fn new() -> Vae {
        Vae {
            encoder: Linear::new(PIXELS, 256, true),
            mean: Linear::new(256, LATENT, true),
            log_variance: Linear::new(256, LATENT, true),
            decoder: Linear::new(LATENT, 256, true),
            pixels: Linear::new(256, PIXELS, true),
        }
    }

    fn encode(&self, x: &Tensor) -> (Tensor, Tensor) {
        let h = self.encoder.forward(x).relu();
        (self.mean.forward(&h), self.log_variance.forward(&h))
    }

    /// Logits of pixels.
    fn decode(&self, z: &Tensor) -> Tensor {
        self.pixels.forward(&self.decoder.forward(z).relu())
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        self.decode(&self.encode(x).0).sigmoid()
    }

    /// The bits of a picture that its latent numbers do not tell, and those of the latent numbers.
    fn loss(&self, x: &Tensor) -> Tensor {
        let (mean, log_variance) = self.encode(x);
        let z = &mean + (&log_variance * 0.5).exp() * mean.randn_like();
        let options = BceOptions { reduction: Reduction::Sum, ..BceOptions::default() };
        let picture = bce_with_logits_with(&self.decode(&z), x, options);
        let latent = (log_variance.exp() + mean.square() - &log_variance - 1.0).sum() * 0.5;
        (picture + latent) / x.size(0) as f64
    }
}

/// A picture of characters.
fn draw(pixels: &[f32]) -> String {
    let shade = |p: &f32| [' ', '.', '+', '#'][((p * 4.0) as usize).min(3)];
    pixels.chunks(28).step_by(2).map(|row| row.iter().map(shade).chain(['\n']).collect::<String>()).collect()
}

fn main() -> Result<()> {
    let options = Options::parse();
    set_default_device(Device::auto());
    manual_seed(0);
    let model = Vae::new();
    let mut adam = Adam::new(model.parameters(), 1e-3, (0.9, 0.999), 1e-8, 0.0);
    let loader =
        DataLoader::over(SyntheticDigits::new(64 * options.steps, 0).map(ToFloat), 64).with_workers(1);
    let mut losses = Vec::new();
    for (step, (x, _)) in loader.iter().enumerate() {
        adam.zero_grad();
        let loss = model.loss(&x.reshape([64, PIXELS]));
        loss.backward();
        adam.step();
        if step % 100 == 0 || step + 1 == options.steps {
            losses.push(loss.item::<f32>());
            println!("step {step:>4}  loss {:.2}", losses[losses.len() - 1]);
        }
    }
    assert!(losses.last() < losses.first(), "nothing was learnt");
    let picture = no_grad(|| model.decode(&Tensor::randn([1, LATENT])).sigmoid());
    println!("\nA digit from nowhere:\n{}", draw(&picture.to_vec::<f32>()));
    Ok(())
}
