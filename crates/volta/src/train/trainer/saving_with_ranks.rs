//! Checkpoints of several ranks: the first one decides where to go on, each writes its shard, and the first one makes them whole.

use super::saving::{open_files, take_history};
use super::{Run, Trainer};
use crate::data::DataLoader;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::train::event::Event;
use crate::train::files::RunFiles;
use crate::train::lock::RunLock;
use std::path::Path;

/// What the first rank tells the others: that a run begins, or why it cannot; otherwise the step to go on from.
const NEW: &str = "new";
const FAILED: char = '!';

impl Trainer<'_> {
    /// A new run, or the one that the folder holds, of several ranks.
    pub(super) async fn start_with_ranks(
        &mut self,
        mut run: Run,
        folder: &Path,
        train: &mut DataLoader,
    ) -> Result<Run> {
        let Some(ranks) = &self.ranks else { return Ok(run) };
        let (world, is_first) = (ranks.world.clone(), ranks.is_first());
        let mut found = Ok((None, Vec::new()));
        if is_first {
            found = self.lock_folder(&mut run, folder).and_then(|()| self.last_checkpoint(folder));
        }
        let said = match &found {
            Ok((Some(checkpoint), _)) => checkpoint.int("step")?.to_string(),
            Ok((None, _)) => NEW.to_string(),
            Err(error) => format!("{FAILED}{}", error.message()),
        };
        let said = world.broadcast_text(0, &said)?;
        if let Some(reason) = said.strip_prefix(FAILED) {
            // The first one has an error of its own, with its kind.
            found?;
            bail!(Io, "rank 0 cannot begin: {reason}");
        }
        let (mut saved, damaged) = found?;
        let step = said.parse::<u64>().ok();
        self.begin_with_ranks(train, step.is_none())?;
        if let Some(step) = step
            && !is_first
        {
            let read = RunFiles::read(folder, step);
            saved = Some(read.map_err(|e| e.with_context("all ranks must see the folder of the run"))?);
        }
        if let Some(saved) = &saved {
            self.resume(&mut run, saved, train).await?;
        }
        if is_first {
            open_files(&mut run, folder, step.is_some(), damaged)?;
        }
        world.barrier()?;
        if step.is_some() && !is_first {
            take_history(&mut run, RunFiles::history(folder)?);
        }
        if let Some(ranks) = &mut self.ranks {
            ranks.saved = step;
        }
        Ok(run)
    }

    fn lock_folder(&self, run: &mut Run, folder: &Path) -> Result<()> {
        if self.lock.is_none_or(|lock| lock.folder() != folder) {
            run._lock = Some(RunLock::acquire(folder)?);
        }
        Ok(())
    }

    /// Whether checkpoints are written by several ranks.
    pub(super) fn saves_with_ranks(&self) -> bool {
        self.options.folder.is_some() && self.ranks.as_ref().is_some_and(|ranks| ranks.world.size() > 1)
    }

    /// Writes this rank's shard of a checkpoint into the folder; the first rank makes it whole when all are there.
    pub(super) async fn save_with_ranks(&mut self, run: &mut Run, train: &DataLoader) -> Result<()> {
        let (Some(ranks), Some(folder)) = (&self.ranks, self.options.folder.clone()) else { return Ok(()) };
        if ranks.saved == Some(run.step) {
            return Ok(());
        }
        let (world, is_first) = (ranks.world.clone(), ranks.is_first());
        self.settle()?;
        let verdict = self.check_parameters(run).await?;
        if let Some(ranks) = &mut self.ranks {
            ranks.collect_totals().await?;
        }
        let checkpoint = self.whole_checkpoint(self.checkpoint_of(run, train, &verdict))?;
        let shard = (world.rank(), world.size());
        let written = RunFiles::save_shard(&folder, run.step, &checkpoint, shard);
        all_succeed(&*world, written.as_ref().err())?;
        written?;
        let made_whole = match &mut run.files {
            Some(files) if is_first => files.save_shards(run.step, &checkpoint, world.size()),
            _ => Ok(()),
        };
        all_succeed(&*world, made_whole.as_ref().err())?;
        made_whole?;
        if let Some(ranks) = &mut self.ranks {
            ranks.saved = Some(run.step);
        }
        self.tell(&Event::Saved { step: run.step })
    }
}

/// An error on the ranks that succeeded if another one has failed; those that have failed go on to their own.
fn all_succeed(world: &dyn crate::parallel::World, failed: Option<&Error>) -> Result<()> {
    let mine = failed.map_or(String::new(), |error| format!("{}: {}", world.name(), error.message()));
    let others = world.gather_texts(&mine)?;
    match others.into_iter().find(|reason| !reason.is_empty()) {
        Some(reason) if failed.is_none() => Err(Error::new(ErrorKind::Io, reason)),
        _ => Ok(()),
    }
}
