//! The tuner: which variant of a product, a convolution or attention is the fastest on this adapter, by
//! trying them. Without it the variant is chosen from sizes and limits; with it, from what was measured.
//!
//! A `problem` is a kernel of a plan without what follows it. A `candidate` gives it memory and takes the time of every variant
//! that fits the adapter's limits. `runtime/tuning_cache.rs` keeps on disk what was found.

#[cfg(not(target_arch = "wasm32"))]
mod candidate;
#[cfg(not(target_arch = "wasm32"))]
mod problem_plan;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

use crate::lower::selections::DEFAULT;
#[cfg(not(target_arch = "wasm32"))]
use crate::lower::{problem, selections::Selections};

use std::fmt;
use std::path::PathBuf;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::Arc;
use std::time::Duration;
#[cfg(not(target_arch = "wasm32"))]
use volta_ir::{error::Result, plan::Plan};

/// What tuning found for one problem: a product, a convolution or attention of certain shapes and types.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tuned {
    /// What is computed, with types, shapes and strides.
    pub problem: String,
    /// The name of the fastest variant; `default` if none was faster than what is taken without tuning.
    pub choice: String,
    /// The time of the default variant.
    pub default_time: Duration,
    /// The time of the fastest variant.
    pub time: Duration,
    /// Ways that were tried.
    pub tried: usize,
    /// How often the step computes it.
    pub uses: usize,
}

/// What tuning found and did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tuning {
    /// Problems that were tuned now, those with the most arithmetic first.
    pub tuned: Vec<Tuned>,
    /// Problems that had been tuned before.
    pub known: usize,
    /// Problems for which there was no time.
    pub left: usize,
    /// The file that has the choices; none if `VOLTA_CACHE` is off, and they last as long as the program.
    pub file: Option<PathBuf>,
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for t in &self.tuned {
            let (before, now) = (t.default_time.as_secs_f64() * 1e6, t.time.as_secs_f64() * 1e6);
            writeln!(f, "{before:>10.1} µs → {now:>10.1} µs  {}  ({}, × {})", t.choice, t.problem, t.uses)?;
        }
        let faster = self.tuned.iter().filter(|t| t.choice != DEFAULT).count();
        let (all, known, left) = (self.tuned.len(), self.known, self.left);
        write!(
            f,
            "{all} tuned, {faster} of them faster now; {known} known before, {left} left for want of time"
        )
    }
}

/// Tries the variants of all that these plans compute on `gpu:index`, until the time is spent. `progress` hears how many were
/// tried, and how many there are.
#[cfg(not(target_arch = "wasm32"))]
pub fn tune(
    index: usize,
    plans: &[Arc<Plan>],
    budget: Duration,
    mut progress: impl FnMut(usize, usize),
) -> Result<Tuning> {
    let context = crate::runtime::context::open(index)?;
    let until = volta_ir::clock::Instant::now() + budget;
    let mut problems = Problems::default();
    plans.iter().for_each(|plan| problems.add(plan, &context));
    problems.all.sort_by_key(|p| std::cmp::Reverse(p.kernel.flops * p.uses as u64));
    let mut tuning = Tuning { known: problems.known.len(), ..Tuning::default() };
    let mut found = Selections::default();
    let (mut tried, all) = (0, problems.all.iter().map(|p| p.variants).sum());
    progress(0, all);
    let on_trial = context.try_pipelines();
    for Problem { name, kernel, native, variants, uses } in &problems.all {
        if volta_ir::clock::Instant::now() >= until {
            tuning.left += 1;
            continue;
        }
        let before = tried;
        let raced = candidate::Candidate::new(&context, kernel, native).and_then(|trial| {
            candidate::race(&trial, until, || {
                tried += 1;
                progress(tried, all);
            })
        });
        tried = before + variants;
        progress(tried, all);
        let race = match raced {
            Err(error) if context.is_lost() => return Err(error),
            // A problem for which there is no memory besides the step's stays as it is.
            Err(_) | Ok(None) => {
                tuning.left += 1;
                continue;
            }
            Ok(Some(race)) => race,
        };
        // What was not tried to the end may be tried again, unless it brought something.
        if !race.complete && race.best.0 == DEFAULT {
            tuning.left += 1;
            continue;
        }
        found.insert(name, &race.best.0);
        tuning.tuned.push(Tuned {
            problem: name.clone(),
            choice: race.best.0,
            default_time: race.default,
            time: race.best.1,
            tried: race.tried,
            uses: *uses,
        });
    }
    drop(on_trial);
    let mut tuned = context.tuned();
    tuning.file = tuned.file().map(PathBuf::from);
    if !tuning.tuned.is_empty() {
        tuned.add(found)?;
    }
    Ok(tuning)
}

/// A problem of the plans that were looked at.
#[cfg(not(target_arch = "wasm32"))]
struct Problem {
    name: String,
    kernel: volta_ir::plan::kernel::Kernel,
    native: volta_ir::plan::kernel::NativeKernel,
    variants: usize,
    uses: usize,
}

#[cfg(not(target_arch = "wasm32"))]
#[derive(Default)]
struct Problems {
    all: Vec<Problem>,
    /// The names of those that were tuned before.
    known: std::collections::BTreeSet<String>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Problems {
    fn add(&mut self, plan: &volta_ir::plan::Plan, context: &crate::runtime::context::Context) {
        let kept = context.tuned();
        for kernel in &plan.kernels {
            let volta_ir::plan::kernel::KernelBody::Native(native) = &kernel.body else { continue };
            let variants = crate::kernels::select::variants(native, &context.caps).len();
            if variants == 0 {
                continue;
            }
            let name = problem::name(native);
            if kept.selections.get(&name).is_some() {
                self.known.insert(name);
            } else if let Some(same) = self.all.iter_mut().find(|p| p.name == name) {
                same.uses += 1;
            } else {
                let (kernel, native) = (kernel.clone(), (**native).clone());
                self.all.push(Problem { name, kernel, native, variants, uses: 1 });
            }
        }
    }
}
