//! Checkpoints: beginning with one, going on from one, and writing the next.

use super::{Run, SKIPPED, Trainer};
use crate::data::DataLoader;
use crate::error::{Result, bail};
use crate::io::Checkpoint;
use crate::train::event::Event;
use crate::train::files::RunFiles;
use crate::train::health::{self, Health, Verdict};
use crate::train::lock::RunLock;
use crate::train::metrics::Meter;
use std::time::Duration;

impl Trainer<'_> {
    /// A new run, or the one that the folder or a checkpoint holds.
    pub(in crate::train) async fn start(&mut self, train: &mut DataLoader, validates: bool) -> Result<Run> {
        self.check(train, validates)?;
        self.parallel = self.parallel(train)?;
        (self.done, self.units) = ((0, Duration::ZERO), 0);
        let mut run = Run::default();
        // Others may have walked through the same data, and left after the last batch.
        if train.position() >= train.len() {
            train.restart(train.epoch() + 1);
        }
        run.first_epoch = train.epoch();
        let Some(folder) = self.options.folder.clone() else {
            if let Some(saved) = self.checkpoint.clone() {
                self.resume(&mut run, &saved, train).await?;
            }
            return Ok(run);
        };
        // Nobody else writes there, not even while the last checkpoint is looked for.
        if self.lock.is_none_or(|lock| lock.folder() != folder) {
            run._lock = Some(RunLock::acquire(&folder)?);
        }
        let (found, damaged) =
            if self.options.resume { RunFiles::last(&folder)? } else { (None, Vec::new()) };
        if let Some(saved) = &found {
            self.resume(&mut run, saved, train).await?;
        }
        let (files, history) = RunFiles::open(&folder, found.is_some().then_some(run.step))?;
        files.set_aside(&damaged)?;
        // What a row of the history counts already is not counted once more.
        if history.series(SKIPPED).last().is_some_and(|&(step, _)| step == run.step) {
            run.health.forget_skipped();
        }
        (run.history, run.damaged) = (history, damaged);
        run.files = Some(files);
        Ok(run)
    }

    /// Goes on from a checkpoint, which must be finite.
    async fn resume(&mut self, run: &mut Run, saved: &Checkpoint, train: &mut DataLoader) -> Result<()> {
        self.restore(run, saved, train)?;
        run.first = run.step;
        run.resumed = true;
        if health::are_finite(self.optimizer.parameters()).await? {
            return Ok(());
        }
        match &self.options.folder {
            Some(folder) => bail!(
                NonFinite,
                "the last checkpoint in {}, of step {}, holds NaN or infinity: a Volta that did not look has saved it. \
                 Remove it to go on from the one before",
                folder.display(),
                run.step
            ),
            None => bail!(
                NonFinite,
                "the checkpoint, of step {}, holds NaN or infinity: a Volta that did not look has saved it. Go on from one \
                 that was saved before",
                run.step
            ),
        }
    }

    /// Puts everything to where it was when a checkpoint was saved.
    pub(super) fn restore(
        &mut self,
        run: &mut Run,
        saved: &Checkpoint,
        train: &mut DataLoader,
    ) -> Result<()> {
        saved.restore_module("model", &*self.model)?;
        saved.restore("optimizer", &mut *self.optimizer)?;
        if let Some(scheduler) = &mut self.scheduler {
            saved.restore("scheduler", scheduler)?;
            // The schedule may be that of a longer run.
            scheduler.apply(&mut *self.optimizer);
        }
        if let Some(scaler) = &mut self.scaler {
            saved.restore("scaler", scaler)?;
        }
        saved.restore("loader", train)?;
        saved.restore_rng()?;
        run.step = saved.int("step")? as u64;
        run.since_best = saved.int("since_best")? as u64;
        run.best = saved.float("best").ok().filter(|best| !best.is_nan());
        // Files that were written before do not say it.
        run.first_epoch = saved.int("first_epoch").unwrap_or(0) as u64;
        let skipped = |name: &str| saved.int(name).unwrap_or(0) as u64;
        run.health = Health::after(skipped("skipped"), skipped("skipped_in_a_row"));
        if let Some(parallel) = &mut self.parallel {
            parallel.forget();
        }
        run.rows = 0;
        run.meter = Meter::new();
        if saved.parts().any(|part| part == "meter") {
            run.meter.load(saved.state("meter")?)?;
        }
        Ok(())
    }

    /// Writes a checkpoint into the folder, if there is one that does not have it.
    pub(super) async fn save(&mut self, run: &mut Run, train: &DataLoader) -> Result<()> {
        if run.files.as_ref().is_none_or(|files| files.has(run.step)) {
            return Ok(());
        }
        self.settle()?;
        // What is not finite never takes the place of what is.
        let verdict = self.check_parameters(run).await?;
        let checkpoint = self.checkpoint_of(run, train, &verdict);
        let Some(files) = &mut run.files else { return Ok(()) };
        files.save(run.step, &checkpoint)?;
        run.went_back.1 = 0;
        self.tell(&Event::Saved { step: run.step })
    }

    /// Everything that it takes to go on from here.
    pub(in crate::train) fn checkpoint_of(
        &self,
        run: &Run,
        train: &DataLoader,
        verdict: &Verdict,
    ) -> Checkpoint {
        let notes = self.notes.iter();
        let mut checkpoint = notes
            .fold(Checkpoint::new(), |checkpoint, (name, text)| checkpoint.with_value(name, text.as_str()))
            .with_module("model", &*self.model)
            .with("optimizer", &*self.optimizer)
            .with("loader", train)
            .with_rng()
            .with_value("step", run.step as i64)
            .with_value("first_epoch", run.first_epoch as i64)
            .with_value("since_best", run.since_best as i64)
            .with_value("skipped", verdict.skipped as i64)
            .with_value("skipped_in_a_row", verdict.streak as i64);
        if let Some(best) = run.best {
            checkpoint = checkpoint.with_value("best", best);
        }
        if let Some(scheduler) = &self.scheduler {
            checkpoint = checkpoint.with("scheduler", scheduler);
        }
        if let Some(scaler) = &self.scaler {
            checkpoint = checkpoint.with("scaler", scaler);
        }
        if run.meter.samples() > 0 {
            checkpoint = checkpoint.with_state("meter", run.meter.state());
        }
        checkpoint
    }
}
