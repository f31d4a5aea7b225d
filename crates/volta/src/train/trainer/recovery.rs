//! Losses, gradients and parameters that are not finite: finding them, and ending the run or going back to its last
//! checkpoint.

use super::{Run, Trainer};
use crate::clock::Instant;
use crate::data::DataLoader;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::train::event::Event;
use crate::train::files::RunFiles;
use crate::train::health::{MAX_SKIPPED_IN_A_ROW, Verdict};
use crate::train::metrics::read_together;
use crate::train::options::OnNonFinite;

/// What was found not to be finite.
pub(in crate::train) struct Fault {
    step: u64,
    what: String,
}

impl Trainer<'_> {
    /// Finds the fault in what the device has counted.
    pub(super) fn judge(&self, run: &mut Run, verdict: &Verdict) -> Result<()> {
        let fault = match verdict.first_bad {
            Some(nth) => {
                let what =
                    if self.options.clip.is_some() { "the loss or the gradient's norm" } else { "the loss" };
                Some(Fault { step: run.step - run.health.steps() + nth, what: what.to_string() })
            }
            None if verdict.streak >= MAX_SKIPPED_IN_A_ROW => {
                let what = format!("after {} skipped steps in a row, the gradient", verdict.streak);
                Some(Fault { step: run.step, what })
            }
            None => None,
        };
        raise(run, fault)
    }

    /// Looks at what the next checkpoint will be made of, after all steps so far.
    pub(in crate::train) async fn check_parameters(&mut self, run: &mut Run) -> Result<Verdict> {
        let started = Instant::now();
        let counters = read_together(&run.health.counters()).await?;
        let verdict = run.health.verdict(&counters);
        self.judge(run, &verdict)?;
        let is_finite = self.are_parameters_finite().await?;
        self.done.1 += started.elapsed();
        let fault = (!is_finite).then(|| Fault { step: run.step, what: "a parameter".to_string() });
        raise(run, fault).map(|()| verdict)
    }

    /// Ends a run with a fault, or goes back to the last checkpoint.
    pub(in crate::train) fn recover(
        &mut self,
        run: &mut Run,
        train: &mut DataLoader,
        fault: &Fault,
    ) -> Result<()> {
        run.profiler.take().map(|(profiler, _)| profiler.end());
        let files = run.files.as_ref();
        let (checkpoint, best) = (files.and_then(RunFiles::last_saved), files.and_then(RunFiles::best));
        let (step, what) = (fault.step, fault.what.as_str());
        self.tell(&Event::NonFinite {
            step,
            what,
            checkpoint: checkpoint.as_deref(),
            best: best.as_deref(),
        })?;
        let (Some(folder), OnNonFinite::GoBack { factor, at_most }) =
            (self.options.folder.clone(), self.options.on_non_finite)
        else {
            return self.give_up(run, fault);
        };
        if run.went_back.0 >= at_most {
            return self.give_up(run, fault);
        }
        let (saved, damaged) = RunFiles::last(&folder)?;
        let Some(saved) = saved else { return self.give_up(run, fault) };
        self.restore(run, &saved, train)?;
        let Some(files) = &mut run.files else { return self.give_up(run, fault) };
        run.history = files.go_back(run.step, &damaged)?;
        run.went_back = (run.went_back.0 + 1, run.went_back.1 + 1);
        (run.waiting, run.units, run.since) = (0, 0, None);
        run.closed = false;
        // A checkpoint from before it went back the last time has the rates of then.
        let factor = factor.powi(run.went_back.1 as i32);
        match &mut self.scheduler {
            Some(scheduler) => scheduler.scale_rates(factor, &mut *self.optimizer),
            None => {
                let rates: Vec<f64> =
                    self.optimizer.learning_rates().iter().map(|rate| rate * factor).collect();
                self.optimizer.set_learning_rates(&rates);
            }
        }
        self.tell_damaged(&damaged)?;
        self.tell(&Event::WentBack { step: run.step, factor })
    }

    /// The error that ends a run with a fault; its curves show how it came to it.
    fn give_up(&mut self, run: &mut Run, fault: &Fault) -> Result<()> {
        let Fault { step, what } = fault;
        let mut message = format!("the training has diverged: in step {step}, {what} is not finite.");
        if let Some(files) = &mut run.files {
            files.finish(&run.history)?;
            message += &match files.last_saved() {
                Some(path) => format!(" The last checkpoint is finite: {}.", path.display()),
                None => " No checkpoint was written before.".to_string(),
            };
        }
        if run.went_back.0 > 0 {
            message += &format!(" It went back to a checkpoint {} times.", run.went_back.0);
        }
        message += " Try a lower learning rate, a longer warmup, or gradients that are clipped (TrainerOptions::clip); \
                    TrainerOptions::on_non_finite can also leave such steps out, or go back to a checkpoint";
        bail!(NonFinite, "{message}")
    }
}

/// Leaves a fault, if there is one, to whoever can do something about it.
fn raise(run: &mut Run, fault: Option<Fault>) -> Result<()> {
    let Some(fault) = fault else { return Ok(()) };
    let error =
        Error::new(ErrorKind::NonFinite, format!("in step {}, {} is not finite", fault.step, fault.what));
    run.fault = Some(fault);
    Err(error)
}
