//! The folder of a run: checkpoints, the best model, the log, TensorBoard's events, and the curves at the end.

use super::chart;
use super::history::{CsvLog, History, Row};
use super::tensorboard::EventWriter;
use crate::error::{Error, Result, bail};
use crate::io::{Checkpoint, CheckpointFolder, save};
use crate::nn::Module;
use std::path::{Path, PathBuf};

/// Files of a run: `checkpoints/`, `best.safetensors`, `metrics.csv`, `tensorboard/`, `curves.svg`.
pub(super) struct RunFiles {
    path: PathBuf,
    checkpoints: CheckpointFolder,
    /// The step of the last checkpoint.
    saved: Option<u64>,
    log: CsvLog,
    events: EventWriter,
}

fn checkpoints(folder: &Path) -> Result<CheckpointFolder> {
    Ok(CheckpointFolder::open(folder.join("checkpoints"))?.keep(2))
}

impl RunFiles {
    /// The last checkpoint in a folder, if there is one.
    pub fn last(folder: &Path) -> Result<Option<Checkpoint>> {
        if folder.join("checkpoints").exists() { checkpoints(folder)?.last() } else { Ok(None) }
    }

    /// The files of a new run, or of one that goes on after a step; also what that one measured.
    pub fn open(folder: &Path, after: Option<u64>) -> Result<(RunFiles, History)> {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, &e, "make the folder of the run"))?;
        let checkpoints = checkpoints(folder)?;
        if after.is_none() && !checkpoints.steps()?.is_empty() {
            bail!(
                Argument,
                "{} holds the checkpoints of another run: set resume to go on with it, or choose another folder",
                folder.display()
            );
        }
        let log = folder.join("metrics.csv");
        let (log, history) = match after {
            Some(step) => CsvLog::resume(log, step)?,
            None => (CsvLog::create(log)?, History::default()),
        };
        let files = RunFiles {
            path: folder.to_path_buf(),
            checkpoints,
            saved: after,
            log,
            events: EventWriter::create(folder.join("tensorboard"))?,
        };
        Ok((files, history))
    }

    pub fn log(&mut self, rows: &[Row]) -> Result<()> {
        self.log.add(rows)?;
        for row in rows {
            self.events.scalar(&row.name, row.value, row.step)?;
        }
        self.events.flush()
    }

    /// Saves a checkpoint, unless the last one is of the same step. Whether it did.
    pub fn save(&mut self, step: u64, checkpoint: &Checkpoint) -> Result<bool> {
        if self.saved == Some(step) {
            return Ok(false);
        }
        self.checkpoints.save(step, checkpoint)?;
        self.saved = Some(step);
        Ok(true)
    }

    pub fn save_best(&self, model: &dyn Module) -> Result<()> {
        save(model, self.path.join("best.safetensors"))
    }

    /// Draws the curves.
    pub fn finish(&mut self, history: &History) -> Result<()> {
        let path = self.path.join("curves.svg");
        let svg = chart::stacked(&history.charts());
        std::fs::write(&path, svg).map_err(|e| Error::io(&path, &e, "write the curves"))
    }
}
