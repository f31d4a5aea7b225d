//! Optimizers and schedules, made by name. Options have the names of Volta's own, in camelCase where JavaScript sees them.

use crate::error::{Thrown, argument, js};
use crate::handles::{AVERAGES, OPTIMIZERS, SCHEDULERS, hold, tensors};
use crate::object::{flag, number, numbers};
use volta::optim::{
    AdagradOptions, AdamOptions, AdamWOptions, LionOptions, MuonOptions, RMSpropOptions, SGDOptions,
};
use volta::optim::{
    ChainedLR, CosineAnnealingLR, ExponentialLR, LinearLR, MultiStepLR, OneCycleLR, Options, PlateauOptions,
    ReduceLROnPlateau, Rule, RuleOptimizer, Schedule, SequentialLR, Setting, StepLR, WarmupLR,
};
use volta::{Ema, Optimizer, Scheduler, Tensor};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// An optimizer of any rule.
pub trait AnyOptimizer: Optimizer {
    /// More parameters, with options of their own.
    fn add_group(&mut self, parameters: Vec<Tensor>, names: &[String], values: &[f64]) -> Thrown<()>;

    /// Other options for one group.
    fn set_options(&mut self, group: usize, names: &[String], values: &[f64]) -> Thrown<()>;

    /// An object that can be looked at as an optimizer.
    fn as_optimizer(&mut self) -> &mut dyn Optimizer;
}

/// Gives options the values of their names.
fn set<O: Options>(options: &mut O, names: &[String], values: &[f64]) -> Thrown<()> {
    for (name, &value) in names.iter().zip(values) {
        let mut settings = options.settings();
        let Some((_, setting)) = settings.iter_mut().find(|(known, _)| known == name) else {
            let known: Vec<&str> = settings.iter().map(|(name, _)| *name).collect();
            return Err(argument(&format!(
                "{}: it has no option {name:?}; it has {}",
                O::NAME,
                known.join(", ")
            )));
        };
        match setting {
            Setting::Number(x) => **x = value,
            Setting::Whole(x) => **x = value as u32,
            Setting::Flag(x) => **x = value != 0.0,
        }
    }
    options.check().map_err(js)
}

impl<R: Rule + Default + 'static> AnyOptimizer for RuleOptimizer<R>
where
    RuleOptimizer<R>: Optimizer,
{
    fn add_group(&mut self, parameters: Vec<Tensor>, names: &[String], values: &[f64]) -> Thrown<()> {
        let mut options = self.groups().first().map_or_else(R::default, |group| group.options.clone());
        set(&mut options, names, values)?;
        self.try_add_group(parameters, options).map_err(js)
    }

    fn set_options(&mut self, group: usize, names: &[String], values: &[f64]) -> Thrown<()> {
        match self.groups_mut().get_mut(group) {
            Some(group) => set(&mut group.options, names, values),
            None => Err(argument(&format!("there is no group {group}"))),
        }
    }

    fn as_optimizer(&mut self) -> &mut dyn Optimizer {
        self
    }
}

/// A new optimizer, by its name, parameters and options.
#[wasm_bindgen]
pub fn optimizer_new(name: &str, parameters: &[u32], names: Vec<String>, values: &[f64]) -> Thrown<u32> {
    let parameters = tensors(parameters)?;
    /// The optimizer of each name.
    macro_rules! optimizers {
        ($($optimizer:literal $options:ident)*) => {
            match name {
                $($optimizer => {
                    let mut options = $options::default();
                    set(&mut options, &names, values)?;
                    Box::new(RuleOptimizer::try_with(parameters, options).map_err(js)?) as Box<dyn AnyOptimizer>
                })*
                other => return Err(argument(&format!("no optimizer is called {other:?}"))),
            }
        };
    }
    let made = optimizers!(
        "SGD" SGDOptions "Adam" AdamOptions "AdamW" AdamWOptions "RMSprop" RMSpropOptions "Adagrad" AdagradOptions
        "Lion" LionOptions "Muon" MuonOptions);
    Ok(OPTIMIZERS.with_borrow_mut(|all| all.insert(made)))
}

/// What `f` makes of an optimizer.
pub fn with_optimizer<R>(handle: u32, f: impl FnOnce(&mut dyn AnyOptimizer) -> Thrown<R>) -> Thrown<R> {
    let mut optimizer = OPTIMIZERS.with_borrow_mut(|all| all.borrow(handle))?;
    let result = f(&mut *optimizer);
    OPTIMIZERS.with_borrow_mut(|all| all.restore(handle, optimizer));
    result
}

/// More parameters, with options of their own; others are those of the first group.
#[wasm_bindgen]
pub fn optimizer_add_group(
    handle: u32,
    parameters: &[u32],
    names: Vec<String>,
    values: &[f64],
) -> Thrown<()> {
    let parameters = tensors(parameters)?;
    with_optimizer(handle, |optimizer| optimizer.add_group(parameters, &names, values))
}

/// Other options for one group, from the next step on.
#[wasm_bindgen]
pub fn optimizer_set(handle: u32, group: usize, names: Vec<String>, values: &[f64]) -> Thrown<()> {
    with_optimizer(handle, |optimizer| optimizer.set_options(group, &names, values))
}

/// Moves all parameters that have gradients. On a GPU it is submitted and not waited for.
#[wasm_bindgen]
pub fn optimizer_step(handle: u32) -> Thrown<()> {
    with_optimizer(handle, |optimizer| optimizer.try_step().map_err(js))
}

/// Forgets all gradients.
#[wasm_bindgen]
pub fn optimizer_zero_grad(handle: u32) -> Thrown<()> {
    with_optimizer(handle, |optimizer| {
        optimizer.zero_grad();
        Ok(())
    })
}

/// The learning rate of every group.
#[wasm_bindgen]
pub fn optimizer_rates(handle: u32) -> Thrown<Vec<f64>> {
    with_optimizer(handle, |optimizer| Ok(optimizer.learning_rates()))
}

/// Other learning rates.
#[wasm_bindgen]
pub fn optimizer_set_rates(handle: u32, rates: &[f64]) -> Thrown<()> {
    with_optimizer(handle, |optimizer| {
        optimizer.set_learning_rates(rates);
        Ok(())
    })
}

/// Frees optimizers.
#[wasm_bindgen]
pub fn optimizers_free(handles: &[u32]) {
    for &handle in handles {
        let freed = OPTIMIZERS.with_borrow_mut(|all| all.remove(handle));
        drop(freed);
    }
}

/// Scales gradients so that together they are no longer than this; gives the length before.
#[wasm_bindgen]
pub fn clip_grad_norm(parameters: &[u32], max_norm: f64) -> Thrown<u32> {
    volta::try_clip_grad_norm(&tensors(parameters)?, max_norm).map(hold).map_err(js)
}

/// Cuts off gradients at both ends.
#[wasm_bindgen]
pub fn clip_grad_value(parameters: &[u32], limit: f64) -> Thrown<()> {
    volta::try_clip_grad_value(&tensors(parameters)?, limit).map_err(js)
}

/// A schedule described by an object: its `kind`, its numbers, and parts of it that are schedules themselves.
fn schedule(of: &JsValue) -> Thrown<Box<dyn Schedule>> {
    let kind = crate::object::text(of, "kind").unwrap_or_default();
    let whole = |name: &str, default: u64| number(of, name).map_or(default, |x| x.max(0.0) as u64);
    let real = |name: &str, default: f64| number(of, name).unwrap_or(default);
    let parts = || -> Thrown<Vec<Box<dyn Schedule>>> {
        let parts = js_sys::Reflect::get(of, &"schedules".into())?;
        js_sys::Array::from(&parts).iter().map(|part| schedule(&part)).collect()
    };
    let missing = || argument(&format!("{kind}: it is made of schedules, and there are none"));
    Ok(match &kind[..] {
        "StepLR" => Box::new(StepLR::new(whole("stepSize", 1).max(1), real("gamma", 0.1))),
        "MultiStepLR" => {
            let milestones: Vec<u64> =
                numbers(of, "milestones").unwrap_or_default().iter().map(|&m| m as u64).collect();
            Box::new(MultiStepLR::new(&milestones, real("gamma", 0.1)))
        }
        "ExponentialLR" => Box::new(ExponentialLR::new(real("gamma", 0.99))),
        "LinearLR" => Box::new(LinearLR::new(
            real("startFactor", 1.0 / 3.0),
            real("endFactor", 1.0),
            whole("totalIters", 5),
        )),
        "CosineAnnealingLR" => Box::new(CosineAnnealingLR::new(whole("tMax", 1).max(1), real("etaMin", 0.0))),
        "CosineAnnealingWarmRestarts" => {
            let cosine = CosineAnnealingLR::new(whole("t0", 1).max(1), real("etaMin", 0.0));
            Box::new(cosine.with_restarts(whole("tMult", 1).max(1)))
        }
        "OneCycleLR" => {
            let usual = OneCycleLR::new(whole("totalSteps", 1).max(1));
            Box::new(OneCycleLR {
                up: real("pctStart", usual.up),
                start_divisor: real("divFactor", usual.start_divisor),
                final_divisor: real("finalDivFactor", usual.final_divisor),
                linear: flag(of, "linear"),
                ..usual
            })
        }
        "ReduceLROnPlateau" => {
            let usual = PlateauOptions::default();
            Box::new(ReduceLROnPlateau::new(PlateauOptions {
                factor: real("factor", usual.factor),
                patience: whole("patience", usual.patience),
                threshold: real("threshold", usual.threshold),
                cooldown: whole("cooldown", usual.cooldown),
                minimum: real("minLr", usual.minimum),
                larger_is_better: flag(of, "largerIsBetter"),
            }))
        }
        "WarmupLR" => {
            let then = parts()?.pop().ok_or_else(missing)?;
            Box::new(WarmupLR::new(whole("steps", 0), then))
        }
        "SequentialLR" => {
            let milestones = numbers(of, "milestones").unwrap_or_default();
            let mut parts = parts()?.into_iter();
            let mut all = SequentialLR::new(parts.next().ok_or_else(missing)?);
            for (part, from) in parts.zip(milestones) {
                all = all.then(from as u64, part);
            }
            Box::new(all)
        }
        "ChainedScheduler" => {
            let mut parts = parts()?.into_iter();
            let mut all = ChainedLR::new(parts.next().ok_or_else(missing)?);
            for part in parts {
                all = all.and(part);
            }
            Box::new(all)
        }
        other => return Err(argument(&format!("no schedule is called {other:?}"))),
    })
}

/// A new scheduler of an optimizer's rates.
#[wasm_bindgen]
pub fn scheduler_new(description: &JsValue, optimizer: u32) -> Thrown<u32> {
    let schedule = schedule(description)?;
    let scheduler = with_optimizer(optimizer, |o| Ok(Scheduler::new(schedule, o.as_optimizer())))?;
    Ok(SCHEDULERS.with_borrow_mut(|all| all.insert(scheduler)))
}

/// Goes on to the next step's rates; with a metric for schedules that look at one.
#[wasm_bindgen]
pub fn scheduler_step(handle: u32, optimizer: u32, metric: Option<f64>) -> Thrown<()> {
    with_optimizer(optimizer, |o| {
        SCHEDULERS.with_borrow_mut(|all| {
            let scheduler = all.get(handle)?;
            match metric {
                Some(metric) => scheduler.step_with(metric, o.as_optimizer()),
                None => scheduler.step(o.as_optimizer()),
            }
            Ok(())
        })
    })
}

/// Frees schedulers.
#[wasm_bindgen]
pub fn schedulers_free(handles: &[u32]) {
    for &handle in handles {
        let freed = SCHEDULERS.with_borrow_mut(|all| all.remove(handle));
        drop(freed);
    }
}

/// Moving averages of parameters.
#[wasm_bindgen]
pub fn ema_new(parameters: &[u32], decay: f64) -> Thrown<u32> {
    let ema = Ema::try_new(tensors(parameters)?, decay).map_err(js)?;
    Ok(AVERAGES.with_borrow_mut(|all| all.insert(ema)))
}

/// Moves the averages towards the parameters.
#[wasm_bindgen]
pub fn ema_update(handle: u32) -> Thrown<()> {
    AVERAGES.with_borrow_mut(|all| all.get(handle)?.try_update().map_err(js))
}

/// Exchanges averages and parameters.
#[wasm_bindgen]
pub fn ema_swap(handle: u32) -> Thrown<()> {
    AVERAGES.with_borrow_mut(|all| all.get(handle)?.try_swap().map_err(js))
}

/// The averages.
#[wasm_bindgen]
pub fn ema_averages(handle: u32) -> Thrown<Vec<u32>> {
    AVERAGES.with_borrow_mut(|all| Ok(all.get(handle)?.averages().iter().cloned().map(hold).collect()))
}

/// Frees averages.
#[wasm_bindgen]
pub fn emas_free(handles: &[u32]) {
    for &handle in handles {
        let freed = AVERAGES.with_borrow_mut(|all| all.remove(handle));
        drop(freed);
    }
}
