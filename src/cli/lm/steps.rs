//! What a model is used for, once: a step of its training, and the first tokens of a text.

use super::config::Precision;
use super::model_file::{self, find};
use super::prepare;
use crate::cli::output::Failure;
use std::path::Path;
use volta::models::Generation;
use volta::text::{Sampler, SamplerOptions};
use volta::{DType, Device, GradScaler, Module, Tensor, autocast, no_grad, try_clip_grad_norm};

/// Trains the model that `name` means on tokens without a meaning, as its configuration says, and lets it write. Its file
/// stays as it is.
pub fn all(name: Option<&str>, folder: &Path, device: Device) -> Result<(), Failure> {
    let model = model_file::load(&find(name, folder)?, device)?;
    let (config, gpt) = (&model.config, &model.gpt);
    let batch = || Tensor::try_zeros([config.batch, config.context])?.try_to_dtype(DType::I32);
    let (x, y) = (batch()?, batch()?);
    gpt.train();
    let mut optimizer = prepare::optimizer(config, gpt)?;
    let mut scaler = (config.precision == Precision::F16).then(GradScaler::new);
    // The first step also sets the optimizer's state up.
    for _ in 0..2 {
        optimizer.zero_grad();
        match &mut scaler {
            Some(scaler) => {
                let loss = autocast(DType::F16, || gpt.try_loss(&x, &y))?;
                scaler.scale(&loss).try_backward()?;
                scaler.unscale(&*optimizer);
            }
            None => gpt.try_loss(&x, &y)?.try_backward()?,
        }
        if config.clip > 0.0 {
            try_clip_grad_norm(optimizer.parameters(), config.clip)?;
        }
        match &mut scaler {
            Some(scaler) => scaler.step(&mut *optimizer),
            None => optimizer.try_step()?,
        }
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
