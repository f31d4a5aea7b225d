//! The plans of a step, made as a trainer makes them and not run: what a step will need.

use crate::config::Config;
use crate::model_file::shape;
use crate::optimizer::{optimizer, update};
use crate::prepare::Prepared;
use std::fmt;
use volta::models::{Gpt, GptOptions};
use volta::train::{Meter, Outcome};
use volta::{
    DType, Device, GradScaler, Module, PlanReport, Result, Tensor, assume_computed, autocast, plan_only,
    try_realize_all, with_device,
};

/// A step in numbers. Printing it gives its plans.
pub struct StepPlan {
    /// How many batches it has.
    batches: u64,
    /// That of a batch; of the whole step, if it has only one.
    batch: PlanReport,
    /// That of the update after several batches.
    update: Option<PlanReport>,
}

impl StepPlan {
    /// The plans of a usual step of a run that has not begun. No memory is taken for it. Nothing without data.
    pub fn new(config: &Config, prepared: &Prepared) -> Result<Option<StepPlan>> {
        alone(|| {
            let Some((x, y)) = prepared.train.peek()? else { return Ok(None) };
            // Of several devices the first does what the others do, and the update.
            let (parts, own) = prepared.parts(config)?;
            let rows = x.size(0).div_ceil(parts);
            let part = |t: &Tensor| t.try_narrow(0, 0, rows)?.try_to_device(prepared.device);
            let (x, y) = (part(&x)?, part(&y)?);
            let batches = prepared.pace.batches_a_step() * own as u64;
            StepPlan::here(config, prepared.gpt.options, batches, &x, &y)
        })
    }

    /// The plans of a usual step of a model for so many different tokens, whose text nobody has looked at.
    pub fn estimate(config: &Config, vocabulary: usize, device: Device) -> Result<Option<StepPlan>> {
        alone(|| {
            with_device(device, || {
                let batch = || Tensor::try_zeros([config.batch, config.context])?.try_to_dtype(DType::I32);
                let options = shape(config, vocabulary);
                StepPlan::here(config, options, config.accumulation as u64, &batch()?, &batch()?)
            })
        })
    }

    fn here(
        config: &Config,
        options: GptOptions,
        batches: u64,
        x: &Tensor,
        y: &Tensor,
    ) -> Result<Option<StepPlan>> {
        let gpt = with_device(x.device(), || Gpt::try_new(options))?;
        let mut optimizer = optimizer(config, &gpt)?;
        let mut scaler = config.is_half().then(GradScaler::new);
        let mut ready = gpt.parameters();
        // What the batches before have left: each adds to it.
        let gradients: Vec<Tensor> = match batches {
            1 => Vec::new(),
            _ => ready.iter().map(|p| p.detach().try_mul(0.0)).collect::<Result<_>>()?,
        };
        ready.extend(gradients.iter().cloned().chain([x.clone(), y.clone()]));
        assume_computed(&ready);
        let collect =
            || gpt.parameters().iter().zip(&gradients).for_each(|(p, g)| p.set_grad(Some(g.clone())));
        // Ranks that share out the optimizer's state make the update by itself.
        let updates = batches == 1 && config.zero == 0;
        collect();
        let batch = plan_only(|| {
            let loss = || gpt.try_loss(x, y);
            let loss = if config.is_half() { autocast(DType::F16, loss)? } else { loss()? };
            let mut meter = Meter::new();
            meter.add(&Outcome::from(loss.clone()), x.size(0));
            let loss = if batches > 1 { loss.try_mul(1.0 / batches as f64)? } else { loss };
            match &scaler {
                Some(scaler) => scaler.try_scale(&loss)?.try_backward()?,
                None => loss.try_backward()?,
            }
            if !updates {
                return try_realize_all(
                    &gpt.parameters().iter().filter_map(Tensor::grad).collect::<Vec<_>>(),
                );
            }
            update(config, &mut *optimizer, scaler.as_mut())
        })?;
        let Some(batch) = batch else { return Ok(None) };
        collect();
        let update = match batches {
            _ if config.zero > 0 => None,
            1 => None,
            _ => plan_only(|| update(config, &mut *optimizer, scaler.as_mut()))?,
        };
        Ok(Some(StepPlan { batches, batch, update }))
    }

    /// Plans of a step of `batches` batches that were made elsewhere: that of a batch, or of the whole step if it has only one, and that of
    /// the update after several.
    pub fn of(batches: u64, batch: PlanReport, update: Option<PlanReport>) -> StepPlan {
        StepPlan { batches, batch, update }
    }

    /// How often a step runs each of the plans.
    pub(crate) fn plans(&self) -> impl Iterator<Item = (u64, &PlanReport)> {
        std::iter::once((self.batches, &self.batch)).chain(self.update.iter().map(|plan| (1, plan)))
    }

    /// Whether they were made under a limit.
    pub(crate) fn has_limit(&self) -> bool {
        self.batch.fit.is_some()
    }

    /// The sum of something over all plans that the step runs.
    fn sum(&self, count: impl Fn(&PlanReport) -> u64) -> u64 {
        self.plans().map(|(times, plan)| times * count(plan)).sum()
    }

    /// How many kernels it runs.
    pub fn kernels(&self) -> u64 {
        self.sum(|plan| plan.kernels.len() as u64)
    }

    /// Its arithmetic operations.
    pub fn flops(&self) -> u64 {
        self.sum(PlanReport::flops)
    }

    /// The bytes that it reads and writes.
    pub fn traffic(&self) -> u64 {
        self.sum(PlanReport::traffic)
    }

    /// The most memory that any of the plans needs.
    pub fn peak_bytes(&self) -> usize {
        self.plans().map(|(_, plan)| plan.peak_bytes).max().unwrap_or(0)
    }
}

/// Plans without what this thread has pending, which a step would compute too: on a thread of its own.
#[cfg(not(target_arch = "wasm32"))]
fn alone<T: Send>(plan: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, plan);
        let failed = |e| volta::Error::new(volta::ErrorKind::Io, format!("cannot start a thread: {e}"));
        let thread = thread.map_err(failed)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A tab has one thread: what is pending there is computed before.
#[cfg(target_arch = "wasm32")]
fn alone<T>(plan: impl FnOnce() -> Result<T>) -> Result<T> {
    try_realize_all(&[])?;
    plan()
}

impl fmt::Display for StepPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.update {
            None => write!(f, "The plan of a step:\n{}", self.batch),
            Some(update) => write!(
                f,
                "The plan of each of the {} batches of a step:\n{}\n\nThe plan of the update:\n{update}",
                self.batches, self.batch
            ),
        }
    }
}
