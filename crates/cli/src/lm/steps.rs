//! What a model is used for, once: a step of its training, and the first tokens of a text.

use super::model_file::{self, find};
use crate::output::Failure;
use std::path::Path;
use volta::models::Generation;
use volta::text::{Sampler, SamplerOptions};
use volta::{DType, Device, GradScaler, Module, Tensor, autocast, no_grad};
use volta_lm::{optimizer, update};

/// Trains the model that `name` means on tokens without a meaning, as its configuration says, and lets it write. Its file
/// stays as it is.
pub fn all(name: Option<&str>, folder: &Path, device: Device) -> Result<(), Failure> {
    let model = model_file::load(&find(name, folder)?, device)?;
    let (config, gpt) = (&model.config, &model.gpt);
    let batch = || Tensor::try_zeros([config.batch, config.context])?.try_to_dtype(DType::I32);
    let (x, y) = (batch()?, batch()?);
    gpt.train();
    let mut optimizer = optimizer(config, gpt)?;
    let mut scaler = config.is_half().then(GradScaler::new);
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
