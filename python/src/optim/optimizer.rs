//! All of the engine's optimizers as one class: a rule by its name, groups of parameters with options by their names.

use super::state::{Saved, from_python, to_python};
use crate::arguments::TensorArg;
use crate::error::{call, run};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, TryLockError};
use volta::optim::{
    AdagradOptions, AdamOptions, AdamWOptions, LionOptions, MuonOptions, RMSpropOptions, Rule, RuleOptimizer,
    SGDOptions, Setting,
};
use volta::{Optimizer, Result, Tensor};

/// The options of a group, in the order of the rule's settings.
type Options = Vec<f64>;

/// An optimizer whose options are lists of numbers.
pub trait Engine: Optimizer + Send {
    fn try_add_group(&mut self, parameters: Vec<Tensor>, options: &[f64]) -> Result<()>;
    fn set_options(&mut self, groups: &[Options]) -> Result<()>;
}

/// Puts numbers in the place of a rule's settings; whether one of them is another now.
fn put<R: Rule>(rule: &mut R, options: &[f64]) -> bool {
    let mut changed = false;
    for ((_, setting), &value) in rule.settings().into_iter().zip(options) {
        changed |= match setting {
            Setting::Number(x) => std::mem::replace(x, value) != value,
            Setting::Whole(n) => std::mem::replace(n, value as u32) != value as u32,
            Setting::Flag(yes) => std::mem::replace(yes, value != 0.0) != (value != 0.0),
        };
    }
    changed
}

/// A rule with the options of Python; the engine checks them when it takes it.
fn rule<R: Rule + Default>(options: &[f64]) -> R {
    let mut rule = R::default();
    put(&mut rule, options);
    rule
}

impl<R: Rule + Default + Send> Engine for RuleOptimizer<R> {
    fn try_add_group(&mut self, parameters: Vec<Tensor>, options: &[f64]) -> Result<()> {
        RuleOptimizer::try_add_group(self, parameters, rule(options))
    }

    fn set_options(&mut self, groups: &[Options]) -> Result<()> {
        // All are checked before one is stored: the next step must not go by what this one refused.
        let mut changed = Vec::new();
        for (g, (group, new)) in self.groups().iter().zip(groups).enumerate() {
            let mut options = group.options.clone();
            if put(&mut options, new) {
                options.check()?;
                changed.push((g, options));
            }
        }
        let all = self.groups_mut();
        changed.into_iter().for_each(|(g, options)| all[g].options = options);
        Ok(())
    }
}

fn boxed<R: Rule + Default + Send + 'static>(
    parameters: Vec<Tensor>,
    options: &[f64],
) -> Result<Box<dyn Engine>> {
    Ok(Box::new(RuleOptimizer::<R>::try_with(parameters, rule(options))?))
}

/// Makes an optimizer of parameters and options.
type Make = fn(Vec<Tensor>, &[f64]) -> Result<Box<dyn Engine>>;

/// How each optimizer is made.
const RULES: [(&str, Make); 7] = [
    ("SGD", boxed::<SGDOptions>),
    ("Adam", boxed::<AdamOptions>),
    ("AdamW", boxed::<AdamWOptions>),
    ("RMSprop", boxed::<RMSpropOptions>),
    ("Adagrad", boxed::<AdagradOptions>),
    ("Lion", boxed::<LionOptions>),
    ("Muon", boxed::<MuonOptions>),
];

/// One of the engine's optimizers.
#[pyclass(name = "Optimizer", module = "volta._volta._optim", frozen)]
pub struct PyOptimizer(Mutex<Box<dyn Engine>>);

impl PyOptimizer {
    /// The optimizer, unless another thread uses it.
    pub fn lock(&self) -> PyResult<MutexGuard<'_, Box<dyn Engine>>> {
        match self.0.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("another thread is using this optimizer"))
            }
        }
    }
}

#[pymethods]
impl PyOptimizer {
    #[new]
    fn new(name: &str, parameters: Vec<TensorArg>, options: Options) -> PyResult<PyOptimizer> {
        let Some((_, make)) = RULES.iter().find(|(known, _)| *known == name) else {
            return Err(PyValueError::new_err(format!("there is no optimizer {name:?}")));
        };
        let parameters = parameters.into_iter().map(|p| p.0).collect();
        Ok(PyOptimizer(Mutex::new(call(|| make(parameters, &options))?)))
    }

    /// More parameters, with options of their own.
    fn add_group(&self, parameters: Vec<TensorArg>, options: Options) -> PyResult<()> {
        let parameters = parameters.into_iter().map(|p| p.0).collect();
        let mut optimizer = self.lock()?;
        call(|| optimizer.try_add_group(parameters, &options))
    }

    /// Other options for the next steps, those of every group.
    fn set_options(&self, groups: Vec<Options>) -> PyResult<()> {
        let mut optimizer = self.lock()?;
        call(|| optimizer.set_options(&groups))
    }

    /// Moves every parameter that has a gradient, and computes everything pending on this thread. The options of every
    /// group are given, as Python may have changed them.
    fn step(&self, py: Python<'_>, groups: Vec<Options>) -> PyResult<()> {
        let mut guard = self.lock()?;
        let optimizer = &mut **guard;
        run(py, || {
            optimizer.set_options(&groups)?;
            optimizer.try_step()
        })
    }

    /// Forgets all gradients.
    fn zero_grad(&self) -> PyResult<()> {
        self.lock()?.zero_grad();
        Ok(())
    }

    /// Everything it remembers: numbers and tensors by name.
    fn state(&self) -> PyResult<Saved> {
        Ok(to_python(&self.lock()?.state()))
    }

    /// Goes on from what `state` gave.
    fn load_state(&self, py: Python<'_>, state: Saved) -> PyResult<()> {
        let mut optimizer = self.lock()?;
        let state = from_python(py, state)?;
        call(|| optimizer.load_state(&state))
    }
}
