//! Steps whose gradients several devices compute, or one of them part by part.

use super::{Run, Step, Trainer};
use crate::autograd::no_grad;
use crate::data::DataLoader;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::optim::GradScaler;
use crate::parallel::{DataParallel, PartOutput, Pass};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::train::metrics::Outcome;

/// What the parts of a step have in common, and what the host knows of them.
#[derive(Default)]
struct Parts {
    metrics: Vec<&'static str>,
    /// Whether means are over something else than rows.
    counts: bool,
    perplexity: bool,
    units: usize,
}

impl Trainer<'_> {
    /// The devices that compute gradients, if the options ask for more than the model's own.
    pub(super) fn parallel(&self, train: &DataLoader) -> Result<Option<DataParallel>> {
        let (mut devices, parts) = (self.options.devices.clone(), self.options.gradient_parts);
        if devices.len() <= 1 && parts.is_none() {
            match (devices.first(), self.optimizer.parameters().first().map(Tensor::device)) {
                (Some(device), Some(own)) if *device != own => {
                    bail!(
                        Device,
                        "the model is on {own}, and TrainerOptions::devices names {device}: move it there with to_device"
                    )
                }
                _ => return Ok(None),
            }
        }
        if devices.is_empty() {
            devices.extend(self.optimizer.parameters().first().map(Tensor::device));
        }
        let mut parallel = DataParallel::new(&*self.model, &devices)?;
        if let Some(parts) = parts {
            parallel = parallel.with_gradient_parts(parts)?;
        }
        // The shortest batch is the last of an epoch.
        let (batch, samples) = (train.batch_size(), train.dataset().len());
        let is_short = train.len() * batch > samples;
        parallel.parts().check(if is_short { samples % batch } else { batch })?;
        Ok(Some(if self.options.shares_by_speed { parallel.with_shares_by_speed() } else { parallel }))
    }

    /// The forward and the backward pass of one batch, part by part. Behind the last batch of a step its losses are taken in.
    pub(super) fn batch_in_parts(
        &mut self,
        run: &mut Run,
        parallel: &mut DataParallel,
        (x, y): (&Tensor, &Tensor),
        step: &mut Step<'_>,
    ) -> Result<()> {
        self.remember_buffers(run);
        let mut parts = Parts::default();
        let is_last = run.waiting + 1 == run.group;
        let scale = self.scaler.as_ref().map(GradScaler::scale_in_use);
        let pass = Pass { factor: 1.0 / run.group as f64, scale, is_last };
        let sums = parallel.run(x, y, pass, &mut |x, y| {
            let outcome = self.outcome(x, y, step)?;
            parts.metrics = outcome.metrics.iter().map(|(name, _)| *name).collect();
            parts.counts = outcome.counted.is_some();
            parts.perplexity = outcome.perplexity;
            parts.units += outcome.units.map_or(x.size(0), |(_, n)| n);
            let sums = no_grad(|| sums_of(&outcome, x.size(0)))?;
            Ok(PartOutput { loss: outcome.loss, sums })
        })?;
        self.count_units(run, parts.units);
        run.rows += x.size(0);
        run.waiting += 1;
        if let Some(sums) = sums {
            let rows = std::mem::take(&mut run.rows);
            let mut outcome = no_grad(|| means_of(&sums, &parts, rows))?;
            self.take_in(run, &mut outcome, rows)?;
        }
        Ok(())
    }
}

/// The sums of a part: the loss and each metric times what they count, and at the end what they count, if that is not its rows.
fn sums_of(outcome: &Outcome, rows: usize) -> Result<Vec<Tensor>> {
    let counted = outcome.counted.as_ref().map(|n| n.try_to_dtype(DType::F32)).transpose()?;
    let means = std::iter::once(&outcome.loss).chain(outcome.metrics.iter().map(|(_, mean)| mean));
    let sum = |mean: &Tensor| {
        let mean = mean.detach().try_to_dtype(DType::F32)?;
        match &counted {
            // The mean of nothing is NaN, and must not count.
            Some(n) => n.try_gt(0.0)?.try_where_(&mean.try_mul(n)?, 0.0),
            None => mean.try_mul(rows as f64),
        }
    };
    let mut sums = means.map(sum).collect::<Result<Vec<_>>>()?;
    sums.extend(counted);
    Ok(sums)
}

/// The means over all parts of a step.
fn means_of(sums: &Tensor, parts: &Parts, rows: usize) -> Result<Outcome> {
    let number = |k: usize| sums.try_narrow(0, k, 1)?.try_reshape(Shape::of(&[]));
    let counted = parts.counts.then(|| number(1 + parts.metrics.len())).transpose()?;
    let mean = |k: usize| match &counted {
        Some(n) => number(k)?.try_div(n),
        None => number(k)?.try_mul(1.0 / rows as f64),
    };
    let mut outcome = Outcome::from(mean(0)?);
    for (k, name) in parts.metrics.iter().enumerate() {
        outcome.metrics.push((name, mean(1 + k)?));
    }
    (outcome.counted, outcome.perplexity) = (counted, parts.perplexity);
    Ok(outcome)
}
