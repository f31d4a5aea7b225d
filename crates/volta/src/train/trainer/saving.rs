//! Checkpoints: beginning with one, going on from one, and writing the next.

use super::ranks::Ranks;
use super::{Run, SKIPPED, Trainer};
use crate::data::DataLoader;
use crate::error::{Result, bail};
use crate::io::Checkpoint;
use crate::train::event::Event;
use crate::train::files::{Damaged, RunFiles};
use crate::train::health::{self, Health, Verdict};
use crate::train::history::History;
use crate::train::lock::RunLock;
use crate::train::metrics::Meter;
use std::path::Path;
use std::time::Duration;

/// The model's part of a checkpoint, and the optimizer's.
pub(super) const MODEL: &str = "model";
const OPTIMIZER: &str = "optimizer";

/// What was measured since the last reading: by a process, and by the parts of ranks.
const METER: &str = "meter";
const METERS: &str = "meters";

impl Trainer<'_> {
    /// A new run, or the one that the folder or a checkpoint holds.
    pub(in crate::train) async fn start(&mut self, train: &mut DataLoader, validates: bool) -> Result<Run> {
        self.check(train, validates)?;
        // A rank has one device, and computes its parts by itself.
        self.parallel = if self.ranks.is_some() { None } else { self.parallel(train)? };
        (self.done, self.units) = ((0, Duration::ZERO), 0);
        let mut run = Run::default();
        // Others may have walked through the same data, and left after the last batch.
        if train.position() >= train.len() {
            train.restart(train.epoch() + 1);
        }
        run.first_epoch = train.epoch();
        let Some(folder) = self.options.folder.clone() else {
            let saved = self.checkpoint.clone();
            self.begin_with_ranks(train, saved.is_none())?;
            if let Some(saved) = saved {
                self.resume(&mut run, &saved, train).await?;
            }
            self.set_out(&run)?;
            return Ok(run);
        };
        if self.ranks.as_ref().is_some_and(|ranks| ranks.world.size() > 1) {
            let run = self.start_with_ranks(run, &folder, train).await?;
            return self.set_out(&run).map(|()| run);
        }
        self.begin_with_ranks(train, false)?;
        // Nobody else writes there, not even while the last checkpoint is looked for.
        if self.lock.is_none_or(|lock| lock.folder() != folder) {
            run._lock = Some(RunLock::acquire(&folder)?);
        }
        let (found, damaged) = self.last_checkpoint(&folder)?;
        if let Some(saved) = &found {
            self.resume(&mut run, saved, train).await?;
        }
        open_files(&mut run, &folder, found.is_some(), damaged)?;
        self.set_out(&run)?;
        Ok(run)
    }

    /// What ranks do before their first step, once all have the same parameters.
    fn set_out(&mut self, run: &Run) -> Result<()> {
        self.share_out_parameters()?;
        self.anchor(run)
    }

    /// The checkpoint to go on from, if that is asked for, and later ones that cannot be read.
    pub(super) fn last_checkpoint(&self, folder: &Path) -> Result<(Option<Checkpoint>, Vec<Damaged>)> {
        if self.options.resume { RunFiles::last(folder) } else { Ok((None, Vec::new())) }
    }

    /// Goes on from a checkpoint, which must be finite.
    pub(super) async fn resume(
        &mut self,
        run: &mut Run,
        saved: &Checkpoint,
        train: &mut DataLoader,
    ) -> Result<()> {
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
        saved.restore_module(MODEL, &*self.model)?;
        let part = self.own_part(saved, OPTIMIZER);
        self.load_optimizer(saved.state(&part)?).map_err(|e| saved.about(&part, &e))?;
        self.load_outer(saved)?;
        let scaler_part = self.own_part(saved, "scaler");
        if let Some(scheduler) = &mut self.scheduler {
            saved.restore("scheduler", scheduler)?;
            // The schedule may be that of a longer run.
            scheduler.apply(&mut *self.optimizer);
        }
        if let Some(scaler) = &mut self.scaler {
            saved.restore(&scaler_part, scaler)?;
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
        let has = |name: &str| saved.parts().any(|part| part == name);
        match &mut self.ranks {
            Some(ranks) => {
                ranks.forget();
                if has(METERS) {
                    ranks.load(saved.state(METERS)?)?;
                }
            }
            None if has(METER) => run.meter.load(saved.state(METER)?)?,
            None => {}
        }
        Ok(())
    }

    /// Writes a checkpoint into the folder, if there is one that does not have it.
    pub(super) async fn save(&mut self, run: &mut Run, train: &DataLoader) -> Result<()> {
        if self.options.folder.is_some() {
            self.synchronize(run)?;
        }
        if self.saves_with_ranks() {
            return self.save_with_ranks(run, train).await;
        }
        if run.files.as_ref().is_none_or(|files| files.has(run.step)) {
            return Ok(());
        }
        if let Some(ranks) = &mut self.ranks {
            ranks.collect_totals().await?;
        }
        self.settle()?;
        // What is not finite never takes the place of what is.
        let verdict = self.check_parameters(run).await?;
        let checkpoint = self.whole_checkpoint(self.checkpoint_of(run, train, &verdict))?;
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
            .with_module(MODEL, &*self.model)
            .with(OPTIMIZER, &*self.optimizer)
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
            checkpoint = checkpoint.with_state(METER, run.meter.state());
        }
        if let Some(state) = self.ranks.as_ref().and_then(Ranks::state) {
            checkpoint = checkpoint.with_state(METERS, state);
        }
        checkpoint
    }
}

impl Trainer<'_> {
    /// A checkpoint with whole tensors in the place of the parts that ranks have, as far as this rank writes them.
    pub(super) fn whole_checkpoint(&self, checkpoint: Checkpoint) -> Result<Checkpoint> {
        let mut checkpoint = self.with_local_steps(checkpoint)?;
        let Some(ranks) = self.ranks.as_ref().filter(|ranks| ranks.shards.is_some()) else {
            return Ok(checkpoint);
        };
        let parameters = self.optimizer.parameters();
        let model = self.model.state_dict();
        let in_model = |name: &str| {
            let tensor = model.get(name)?;
            parameters.iter().position(|parameter| parameter.is_same(tensor))
        };
        let in_optimizer = |name: &str| self.optimizer.parameter_of_state(name);
        // Which tensors a rank writes depends on their sizes alone.
        self.give_shapes(checkpoint.state_mut(OPTIMIZER)?, in_optimizer)?;
        let own = checkpoint.names_of_shard((ranks.world.rank(), ranks.world.size()));
        let is_own = |name: &str| own.contains(name);
        let mut state = self.optimizer.state();
        self.whole_state(OPTIMIZER, &mut state, in_optimizer, is_own)?;
        *checkpoint.state_mut(OPTIMIZER)? = state;
        self.whole_state(MODEL, checkpoint.state_mut(MODEL)?, in_model, is_own)?;
        Ok(checkpoint)
    }
}

/// Opens the files of a run that begins, or goes on.
pub(super) fn open_files(run: &mut Run, folder: &Path, goes_on: bool, damaged: Vec<Damaged>) -> Result<()> {
    let (files, history) = RunFiles::open(folder, goes_on.then_some(run.step))?;
    files.set_aside(&damaged)?;
    take_history(run, history);
    (run.damaged, run.files) = (damaged, Some(files));
    Ok(())
}

/// Goes on with what was measured before.
pub(super) fn take_history(run: &mut Run, history: History) {
    // What a row of the history counts already is not counted once more.
    if history.series(SKIPPED).last().is_some_and(|&(step, _)| step == run.step) {
        run.health.forget_skipped();
    }
    run.history = history;
}
