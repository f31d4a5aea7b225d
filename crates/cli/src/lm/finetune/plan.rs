//! What a step will need, before anything runs.

use super::options::{Options, Precision};
use super::prepare::Prepared;
use crate::output::Failure;
use volta::optim::{AdamWOptions, try_clip_grad_norm};
use volta::train::Meter;
use volta::{
    AdamW, DType, Device, GradScaler, Module, Result, Tensor, autocast, plan_only, try_realize_all,
    with_device,
};
use volta_lm::StepPlan;
use volta_lm::finetune::Learner;

/// The optimizer of what is trained. What has one axis is not drawn to zero.
pub fn optimizer(options: &Options, learner: &Learner<'_>) -> Result<AdamW> {
    let (wide, narrow): (Vec<_>, Vec<_>) = learner.parameters().into_iter().partition(|p| p.rank() > 1);
    let own = AdamWOptions::default();
    let own = AdamWOptions { learning_rate: options.rate(), weight_decay: options.weight_decay, ..own };
    let mut optimizer = AdamW::try_with(wide, own.clone())?;
    if !narrow.is_empty() {
        optimizer.try_add_group(narrow, AdamWOptions { weight_decay: 0.0, ..own })?;
    }
    Ok(optimizer)
}

/// The plans of a usual step with what memory there is.
pub fn step(options: &Options, prepared: &Prepared, device: Device) -> Result<Option<StepPlan>> {
    StepPlan::within(device, options.memory, || planned(options, prepared))
}

/// Plans of a step whose update is recorded and not made: what is trained gets its values back.
fn planned(options: &Options, prepared: &Prepared) -> Result<Option<StepPlan>> {
    let parameters = Learner(&prepared.llm).parameters();
    let values: Vec<Vec<f32>> = parameters.iter().map(Tensor::try_to_vec).collect::<Result<_>>()?;
    let plan = recorded(options, prepared, &parameters);
    for (p, values) in parameters.iter().zip(values) {
        p.set_grad(None);
        p.try_assign(&with_device(p.device(), || Tensor::try_from_vec(values, p.shape()))?)?;
    }
    try_realize_all(&parameters)?;
    plan
}

fn recorded(options: &Options, prepared: &Prepared, parameters: &[Tensor]) -> Result<Option<StepPlan>> {
    let learner = Learner(&prepared.llm);
    learner.train();
    let Some((x, y)) = prepared.train.peek()? else { return Ok(None) };
    try_realize_all(&[x.clone(), y.clone()])?;
    let mut optimizer = optimizer(options, &learner)?;
    let mut scaler = (options.precision == Precision::F16).then(GradScaler::new);
    let batches = prepared.pace.batches_a_step();
    // What the batches before have left: each adds to it.
    let gradients: Vec<Tensor> = match batches {
        1 => Vec::new(),
        _ => parameters.iter().map(|p| p.detach().try_mul(0.0)).collect::<Result<_>>()?,
    };
    volta::assume_computed(&gradients);
    let collect = || parameters.iter().zip(&gradients).for_each(|(p, g)| p.set_grad(Some(g.clone())));
    collect();
    let batch = plan_only(|| {
        let outcome = || prepared.loss.of(&prepared.llm, &x, &y);
        let outcome = if scaler.is_some() { autocast(DType::F16, outcome)? } else { outcome()? };
        let mut meter = Meter::new();
        let loss = outcome.loss.clone();
        meter.add(&outcome, x.size(0));
        let loss = if batches > 1 { loss.try_mul(1.0 / batches as f64)? } else { loss };
        match &scaler {
            Some(scaler) => scaler.try_scale(&loss)?.try_backward()?,
            None => loss.try_backward()?,
        }
        if batches > 1 {
            return try_realize_all(&parameters.iter().filter_map(Tensor::grad).collect::<Vec<_>>());
        }
        update(options, &mut optimizer, scaler.as_mut())
    })?;
    let Some(batch) = batch else { return Ok(None) };
    collect();
    let update = match batches {
        1 => None,
        _ => plan_only(|| update(options, &mut optimizer, scaler.as_mut()))?,
    };
    Ok(Some(StepPlan::of(batches, batch, update)))
}

fn update(options: &Options, optimizer: &mut AdamW, scaler: Option<&mut GradScaler>) -> Result<()> {
    let mut scaler = scaler;
    if options.clip > 0.0 {
        if let Some(scaler) = &mut scaler {
            scaler.try_unscale(&*optimizer)?;
        }
        try_clip_grad_norm(optimizer.parameters(), options.clip)?;
    }
    match scaler {
        Some(scaler) => scaler.try_step(optimizer),
        None => optimizer.try_step(),
    }
}

/// An error that says what to do, if a step does not fit.
pub fn check(plan: &StepPlan, options: &Options, device: Device) -> std::result::Result<(), Failure> {
    let memory = plan.memory(device)?;
    if memory.missing_bytes == 0 {
        return Ok(());
    }
    let mut advice = Vec::new();
    if options.batch > 1 {
        let (batch, accumulation) = (options.batch / 2, options.accumulation * 2);
        advice.push(format!("--batch {batch} --accumulation {accumulation}"));
    }
    advice.push("a smaller --length".into());
    if options.full {
        advice.push("adapters instead of --full".into());
    } else if options.quantize.is_none() {
        advice.push("--quantize 4".into());
    }
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    let limit = memory.limit.unwrap_or_default();
    Err(Failure::Failed(format!(
        "a step needs {:.2} GB of memory at least, though it computes again whatever it can, and {device} may use {:.2} GB: try {}",
        gigabytes(limit + memory.missing_bytes),
        gigabytes(limit),
        advice.join(", or ")
    )))
}
