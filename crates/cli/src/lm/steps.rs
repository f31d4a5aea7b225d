//! What a model is used for, once: a step of its training, and the first tokens of a text.

use super::config::{Config, Precision};
use super::model_file::{self, find};
use super::prepare;
use crate::output::Failure;
use std::path::Path;
use volta::models::Generation;
use volta::optim::try_clip_grad_norm;
use volta::text::{Sampler, SamplerOptions};
use volta::{DType, Device, GradScaler, Module, Optimizer, Tensor, autocast, no_grad};

/// Whether products are computed in half precision.
pub fn half(config: &Config) -> bool {
    config.precision == Precision::F16
}

/// The optimizer's step with the gradients that there are, as a trainer makes it.
pub fn update(
    config: &Config,
    optimizer: &mut dyn Optimizer,
    mut scaler: Option<&mut GradScaler>,
) -> volta::Result<()> {
    if config.clip > 0.0 {
        if let Some(scaler) = &mut scaler {
            scaler.try_unscale(&*optimizer)?;
        }
        try_clip_grad_norm(optimizer.parameters(), config.clip)?;
    }
    match scaler {
        Some(scaler) => scaler.try_step(optimizer),
        None => optimizer.try_step(),
    }
}

/// Trains the model that `name` means on tokens without a meaning, as its configuration says, and lets it write. Its file
/// stays as it is.
pub fn all(name: Option<&str>, folder: &Path, device: Device) -> Result<(), Failure> {
    let model = model_file::load(&find(name, folder)?, device)?;
    let (config, gpt) = (&model.config, &model.gpt);
    let batch = || Tensor::try_zeros([config.batch, config.context])?.try_to_dtype(DType::I32);
    let (x, y) = (batch()?, batch()?);
    gpt.train();
    let mut optimizer = prepare::optimizer(config, gpt)?;
    let mut scaler = half(config).then(GradScaler::new);
    // The first step also sets the optimizer's state up.
    for _ in 0..2 {
        optimizer.zero_grad();
        match &scaler {
            Some(scaler) => {
                let loss = autocast(DType::F16, || gpt.try_loss(&x, &y))?;
                scaler.try_scale(&loss)?.try_backward()?;
            }
            None => gpt.try_loss(&x, &y)?.try_backward()?,
        }
        update(config, &mut *optimizer, scaler.as_mut())?;
    }
    gpt.eval();
    no_grad(|| -> Result<(), Failure> {
        gpt.try_loss(&x, &y)?.try_realize()?;
        let mut text = Generation::new(gpt, Sampler::new(SamplerOptions::default())?);
        text.read(&[0])?;
        text.write()?;
        text.write()?;
        Ok(())
    })
}
