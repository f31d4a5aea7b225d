//! The tuner: which variant of a product, a convolution or attention is the fastest on this adapter, by
//! trying them. Without it the variant is chosen from sizes and limits; with it, from what was measured.
//!
//! A `problem` is a kernel of a plan without what follows it. A `candidate` gives it memory and takes the time of every variant
//! that fits the adapter's limits. `selections` is what was found, for the lowering to look up, and on disk.

#[cfg(not(target_arch = "wasm32"))]
mod candidate;
mod problem;
mod selections;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

pub(super) use selections::{Selections, TuningCache};

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

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

/// What [`tune`] found and did.
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
        let faster = self.tuned.iter().filter(|t| t.choice != selections::DEFAULT).count();
        let (all, known, left) = (self.tuned.len(), self.known, self.left);
        write!(
            f,
            "{all} tuned, {faster} of them faster now; {known} known before, {left} left for want of time"
        )
    }
}

/// Finds out which variant of each product, convolution and attention of a step is the fastest on `device`, and
/// keeps to it from then on, in this program and in later ones: the choices are written to the folder of compiled
/// kernels (see `VOLTA_CACHE`), for this adapter, driver and version of Volta.
///
/// Runs `step`, looks at the plans that it ran, and tries every variant that fits the adapter's limits on each different
/// problem in them, those with the most arithmetic first, until `budget` is spent. The default variant stays unless another
/// one takes 3 % less. Problems that were tuned before are not tried again. Results change by no more than rounding.
///
/// `progress` hears how many variants were tried, and how many there are.
///
/// ```no_run
/// use std::time::Duration;
/// use volta::{Device, Tensor, gpu::tune, with_device};
/// let device = Device::gpu()?;
/// let found = tune(device, Duration::from_secs(20), |_, _| (), || {
///     with_device(device, || Tensor::rand([512, 512]).try_matmul(&Tensor::rand([512, 512]))?.try_realize())
/// })?;
/// println!("{found}");
/// # Ok::<(), volta::Error>(())
/// ```
///
/// # Errors
///
/// What `step` returns; [`ErrorKind::Device`](crate::ErrorKind::Device) if `device` is not a GPU, or was lost;
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the choices, which hold for this program, could not be written for later ones.
#[cfg(not(target_arch = "wasm32"))]
#[track_caller]
pub fn tune(
    device: crate::Device,
    budget: Duration,
    mut progress: impl FnMut(usize, usize),
    step: impl FnOnce() -> crate::Result<()>,
) -> crate::Result<Tuning> {
    use crate::error::{Error, ErrorKind};
    let _call = crate::call::Call::enter("tune");
    let crate::Device::Gpu(index) = device else {
        return Err(Error::new(ErrorKind::Device, "only GPUs are tuned: the CPU has one way for everything"));
    };
    let context = super::device::context::open(index)?;
    let (done, plans) = crate::telemetry::plans_of(device, step);
    done?;
    // What the step itself takes, compiling included, is not the tuner's time.
    let until = crate::clock::Instant::now() + budget;
    let mut problems = Problems::default();
    plans.iter().for_each(|plan| problems.add(plan, &context));
    problems.all.sort_by_key(|p| std::cmp::Reverse(p.kernel.flops * p.uses as u64));
    let mut tuning = Tuning { known: problems.known.len(), ..Tuning::default() };
    let mut found = Selections::default();
    let (mut tried, all) = (0, problems.all.iter().map(|p| p.variants).sum());
    progress(0, all);
    let on_trial = context.try_pipelines();
    for Problem { name, kernel, native, variants, uses } in &problems.all {
        if crate::clock::Instant::now() >= until {
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
        if !race.complete && race.best.0 == selections::DEFAULT {
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
    let mut kept = context.kept();
    tuning.file = kept.file().map(PathBuf::from);
    if !tuning.tuned.is_empty() {
        kept.add(found)?;
    }
    Ok(tuning)
}

/// A problem of the plans that were looked at.
#[cfg(not(target_arch = "wasm32"))]
struct Problem {
    name: String,
    kernel: crate::plan::kernel::Kernel,
    native: crate::plan::kernel::NativeKernel,
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
    fn add(&mut self, plan: &crate::plan::Plan, context: &super::device::context::Context) {
        let kept = context.kept();
        for kernel in &plan.kernels {
            let crate::plan::kernel::KernelBody::Native(native) = &kernel.body else { continue };
            let variants = super::lower::kernel_select::variants(native, &context.caps).len();
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
