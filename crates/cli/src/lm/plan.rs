//! The plans of a step, made as a trainer makes them and not run: what a step will need.

use super::config::Config;
use super::prepare::{self, Prepared};
use super::steps::{half, update};
use crate::output::Failure;
use std::fmt;
use volta::models::Gpt;
use volta::train::{Meter, Outcome};
use volta::{
    DType, Device, GradScaler, Module, PlanReport, Tensor, assume_computed, autocast, plan_only,
    try_realize_all,
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
    /// The plans of a usual step. No memory is taken for it.
    pub fn new(config: &Config, prepared: &Prepared) -> Result<Option<StepPlan>, Failure> {
        // A step also computes what its thread has pending, and the model that will be trained is: a thread of its own has
        // nothing pending.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, || StepPlan::here(config, prepared));
            let thread = thread.map_err(|e| Failure::Failed(format!("cannot start a thread: {e}")))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn here(config: &Config, prepared: &Prepared) -> Result<Option<StepPlan>, Failure> {
        let batches = prepared.pace.batches_a_step();
        let gpt = Gpt::try_new(prepared.gpt.options)?;
        let mut optimizer = prepare::optimizer(config, &gpt)?;
        let mut scaler = half(config).then(GradScaler::new);
        let Some((x, y)) = prepared.train.peek()? else { return Ok(None) };
        let mut ready = gpt.parameters();
        // What the batches before have left: each adds to it.
        let gradients: Vec<Tensor> = match batches {
            1 => Vec::new(),
            _ => ready.iter().map(|p| p.detach().try_mul(0.0)).collect::<volta::Result<_>>()?,
        };
        ready.extend(gradients.iter().cloned().chain([x.clone(), y.clone()]));
        assume_computed(&ready);
        let collect =
            || gpt.parameters().iter().zip(&gradients).for_each(|(p, g)| p.set_grad(Some(g.clone())));
        collect();
        let batch = plan_only(|| {
            let loss = || gpt.try_loss(&x, &y);
            let loss = if half(config) { autocast(DType::F16, loss)? } else { loss()? };
            let mut meter = Meter::new();
            meter.add(&Outcome::from(loss.clone()), x.size(0));
            let loss = if batches > 1 { loss.try_mul(1.0 / batches as f64)? } else { loss };
            match &scaler {
                Some(scaler) => scaler.try_scale(&loss)?.try_backward()?,
                None => loss.try_backward()?,
            }
            if batches > 1 {
                return try_realize_all(
                    &gpt.parameters().iter().filter_map(Tensor::grad).collect::<Vec<_>>(),
                );
            }
            update(config, &mut *optimizer, scaler.as_mut())
        })?;
        let Some(batch) = batch else { return Ok(None) };
        collect();
        let update = match batches {
            1 => None,
            _ => plan_only(|| update(config, &mut *optimizer, scaler.as_mut()))?,
        };
        Ok(Some(StepPlan { batches, batch, update }))
    }

    /// An error with what is needed and what there is, if a step does not fit into the device's memory.
    pub fn check_memory(&self, device: Device) -> Result<(), Failure> {
        let (needed, there) = (self.peak_bytes() as u64, device.memory()?);
        match there {
            Some(there) if needed > there => Err(Failure::Failed(format!(
                "a step needs {} of memory, and {device} has {}: make the batch, the context or the model smaller, or use \
                 --precision f16",
                gigabytes(needed),
                gigabytes(there)
            ))),
            _ => Ok(()),
        }
    }

    /// The sum of something over all plans that the step runs.
    fn sum(&self, count: impl Fn(&PlanReport) -> u64) -> u64 {
        self.batches * count(&self.batch) + self.update.as_ref().map_or(0, count)
    }

    pub fn kernels(&self) -> u64 {
        self.sum(|plan| plan.kernels.len() as u64)
    }

    pub fn flops(&self) -> u64 {
        self.sum(PlanReport::flops)
    }

    pub fn traffic(&self) -> u64 {
        self.sum(PlanReport::traffic)
    }

    /// The most memory that any of the plans needs.
    pub fn peak_bytes(&self) -> usize {
        self.update.as_ref().map_or(0, |plan| plan.peak_bytes).max(self.batch.peak_bytes)
    }
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
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
