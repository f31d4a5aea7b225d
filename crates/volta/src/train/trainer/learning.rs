//! Steps: batches forward and backward, then the optimizer, and what is due after them.

use super::{Run, Step, Trainer};
use crate::autograd::no_grad;
use crate::call::LayerScope;
use crate::clock::Instant;
use crate::data::DataLoader;
use crate::dtype::DType;
use crate::error::Result;
use crate::telemetry::Profiler;
use crate::tensor::{Tensor, autocast, try_realize_all};
use crate::train::event::Event;
use crate::train::metrics::Outcome;
use crate::train::options::OnNonFinite;
use std::time::Duration;

impl Trainer<'_> {
    /// A step with the next batches of the epoch, and what is due after it. Without one left it is the end of the epoch, and no
    /// step is made: false.
    pub(super) async fn step(
        &mut self,
        run: &mut Run,
        train: &DataLoader,
        validation: &mut Option<&mut DataLoader>,
        step: &mut Step<'_>,
    ) -> Result<bool> {
        loop {
            let started = Instant::now();
            let Some(batch) = next_batch(run, train) else {
                self.end_epoch(run, train, validation, step).await?;
                return Ok(false);
            };
            let (x, y) = batch?;
            let stepped = self.learn(run, train, &x, &y, step)?;
            self.done.1 += started.elapsed();
            if stepped {
                break;
            }
        }
        self.tell(&Event::Step { step: run.step })?;
        if run.is_due(self.options.log_every) {
            self.log(run, train).await?;
        }
        // What is due after the last batch is done once the epoch is counted, even if the steps end there: a
        // checkpoint that is saved then does not repeat the validation when it is loaded.
        if train.position() < train.len() {
            if self.options.validate_every.is_some_and(|n| run.is_due(n)) {
                self.validate(run, train, validation, step).await?;
            }
            if self.options.checkpoint_every.is_some_and(|n| run.is_due(n)) {
                self.save(run, train).await?;
            }
        } else if !self.is_stopped() && next_batch(run, train).is_none() {
            self.end_epoch(run, train, validation, step).await?;
        }
        Ok(true)
    }

    /// What is due after a walk through the training data.
    async fn end_epoch(
        &mut self,
        run: &mut Run,
        train: &DataLoader,
        validation: &mut Option<&mut DataLoader>,
        step: &mut Step<'_>,
    ) -> Result<()> {
        if self.options.validate_every.is_none() {
            self.log(run, train).await?;
        }
        if self.options.validate_every.is_none_or(|n| run.is_due(n)) {
            self.validate(run, train, validation, step).await?;
        }
        if self.options.checkpoint_every.is_none_or(|n| run.is_due(n)) {
            self.save(run, train).await?;
        }
        Ok(())
    }

    /// Learns from a batch, and profiles the step that it is a part of if that is due. Whether the step was made.
    fn learn(
        &mut self,
        run: &mut Run,
        train: &DataLoader,
        x: &Tensor,
        y: &Tensor,
        step: &mut Step<'_>,
    ) -> Result<bool> {
        if run.waiting == 0 {
            // The last step of an epoch has the batches that are left, this one among them.
            let left = (train.len() + 1).saturating_sub(train.position()).max(1);
            run.group = self.options.accumulate.clamp(1, left);
            // The first steps of a run compile their plans, which is not what a profile is about.
            let due = self.options.profile_every.is_some_and(|n| (run.step + 1).is_multiple_of(n.max(1)));
            run.profiler = (due && run.step > run.first).then(|| (Profiler::begin(), Duration::ZERO));
        }
        let started = Instant::now();
        let _brought = self.bring_parameters();
        match self.parallel.take() {
            _ if self.ranks.is_some() => self.batch_of_rank(run, train, (x, y), step)?,
            Some(mut parallel) => {
                let computed = self.batch_in_parts(run, &mut parallel, (x, y), step);
                self.parallel = Some(parallel);
                computed?;
            }
            None => self.batch(run, x, y, step)?,
        }
        if run.waiting < run.group {
            if let Some((_, time)) = &mut run.profiler {
                *time += started.elapsed();
            }
            return Ok(false);
        }
        self.update(run)?;
        if let Some((profiler, before)) = run.profiler.take() {
            let profile = profiler.end();
            let time = before + started.elapsed();
            self.tell(&Event::Profiled { step: run.step, profile: &profile, time })?;
        }
        Ok(true)
    }

    /// The forward and the backward pass of one batch.
    fn batch(&mut self, run: &mut Run, x: &Tensor, y: &Tensor, step: &mut Step<'_>) -> Result<()> {
        self.remember_buffers(run);
        let mut outcome = self.outcome(x, y, step)?;
        let units = outcome.units.map_or(x.size(0), |(_, n)| n);
        self.take_in(run, &mut outcome, x.size(0))?;
        self.count_units(run, units);
        let mut loss = outcome.loss;
        if run.group > 1 {
            loss = loss.try_mul(1.0 / run.group as f64)?;
        }
        match &self.scaler {
            Some(scaler) => scaler.scale(&loss).try_backward()?,
            None => loss.try_backward()?,
        }
        run.waiting += 1;
        if run.group > 1 {
            // The graph of a batch goes before the next one comes.
            let gradients: Vec<Tensor> =
                self.optimizer.parameters().iter().filter_map(Tensor::grad).collect();
            let finite = run.health.losses().cloned();
            try_realize_all(&gradients.into_iter().chain(finite).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Remembers what the forward passes of a step change, if the step may be skipped.
    pub(super) fn remember_buffers(&self, run: &mut Run) {
        if self.skips_by_itself() && run.waiting == 0 {
            run.buffers = self.model.buffers().into_iter().map(|b| (b.clone(), b.detach())).collect();
        }
    }

    /// Takes in what came of so many rows.
    pub(super) fn take_in(&self, run: &mut Run, outcome: &mut Outcome, rows: usize) -> Result<()> {
        let finite = run.health.add_loss(outcome)?;
        if self.skips() {
            // The loss of a step that is skipped for it is no part of the mean.
            outcome.counted = Some(no_grad(|| match &outcome.counted {
                Some(counted) => finite.try_where_(counted, 0.0),
                None => finite.try_to_dtype(DType::F32)?.try_mul(rows as f64),
            })?);
        }
        run.meter.add(outcome, rows);
        Ok(())
    }

    /// Counts what was learnt from.
    pub(super) fn count_units(&mut self, run: &mut Run, units: usize) {
        run.units += units;
        self.units += units as u64;
    }

    /// Whether steps are skipped whose gradients are not finite: by the scaler, or by the trainer itself.
    pub(super) fn skips(&self) -> bool {
        self.scaler.is_some() || self.skips_by_itself()
    }

    pub(super) fn skips_by_itself(&self) -> bool {
        self.scaler.is_none() && self.options.on_non_finite == OnNonFinite::SkipStep
    }

    pub(super) fn outcome(&self, x: &Tensor, y: &Tensor, step: &mut Step<'_>) -> Result<Outcome> {
        // What goes wrong in there has lines of its own.
        let _outside = LayerScope::leave();
        match self.options.precision {
            Some(dtype) => autocast(dtype, || step(x, y)),
            None => step(x, y),
        }
    }
}

/// The next batch of the epoch; behind the last one, the epoch is counted.
fn next_batch(run: &mut Run, train: &DataLoader) -> Option<Result<(Tensor, Tensor)>> {
    let batch = run.batches.get_or_insert_with(|| train.rest()).next();
    if batch.is_none() {
        run.batches = None;
    }
    batch
}
