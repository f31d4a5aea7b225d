//! The folder of a run: checkpoints, the best model, the log, TensorBoard's events, and the curves at the end.

use super::chart;
use super::history::{CsvLog, History, Row, read_csv};
use super::tensorboard::EventWriter;
use crate::error::{Error, Result, bail};
pub(super) use crate::io::Damaged;
use crate::io::{Checkpoint, CheckpointFolder, Metadata, clear_unfinished, save_with, write_file};
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

const CHECKPOINTS: &str = "checkpoints";
/// The best model.
const BEST: &str = "best.safetensors";
const LOG: &str = "metrics.csv";
const CURVES: &str = "curves.svg";

fn checkpoints(folder: &Path) -> Result<CheckpointFolder> {
    Ok(CheckpointFolder::open(folder.join(CHECKPOINTS))?.keep(2))
}

impl RunFiles {
    /// The last checkpoint in a folder that can be read, if there is one, and those after it that cannot.
    pub fn last(folder: &Path) -> Result<(Option<Checkpoint>, Vec<Damaged>)> {
        let path = folder.join(CHECKPOINTS);
        if path.exists() { checkpoints(folder)?.last_intact() } else { Ok((None, Vec::new())) }
    }

    /// The files of a new run, or of one that goes on after a step; also what that one measured.
    pub fn open(folder: &Path, after: Option<u64>) -> Result<(RunFiles, History)> {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, &e, "make the folder of the run"))?;
        [BEST, LOG, CURVES].iter().try_for_each(|name| clear_unfinished(folder.join(name)))?;
        let checkpoints = checkpoints(folder)?;
        if after.is_none() && !checkpoints.steps()?.is_empty() {
            bail!(
                Argument,
                "{} holds the checkpoints of another run: set resume to go on with it, or choose another folder",
                folder.display()
            );
        }
        let log = folder.join(LOG);
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

    /// Whether the last checkpoint is of this step.
    pub fn has(&self, step: u64) -> bool {
        self.saved == Some(step)
    }

    /// Saves a checkpoint.
    pub fn save(&mut self, step: u64, checkpoint: &Checkpoint) -> Result<()> {
        self.checkpoints.save(step, checkpoint)?;
        self.saved = Some(step);
        Ok(())
    }

    /// Writes one shard of a checkpoint, of so many.
    pub fn save_shard(
        folder: &Path,
        step: u64,
        checkpoint: &Checkpoint,
        shard: (usize, usize),
    ) -> Result<()> {
        CheckpointFolder::of_another(folder.join(CHECKPOINTS)).save_shard(step, checkpoint, shard)
    }

    /// Makes the shards of a checkpoint, which are all written, a whole.
    pub fn save_shards(&mut self, step: u64, checkpoint: &Checkpoint, count: usize) -> Result<()> {
        self.checkpoints.save_shards(step, checkpoint, count)?;
        self.saved = Some(step);
        Ok(())
    }

    /// The checkpoint of a step, for whoever only reads.
    pub fn read(folder: &Path, step: u64) -> Result<Checkpoint> {
        Checkpoint::load(CheckpointFolder::of_another(folder.join(CHECKPOINTS)).path_of(step))
    }

    /// What the run has measured, for whoever only reads.
    pub fn history(folder: &Path) -> Result<History> {
        read_csv(folder.join(LOG))
    }

    /// Goes back to the last checkpoint that can be read: what was measured after it is forgotten. Later ones that cannot be
    /// read are put out of the way.
    pub fn go_back(&mut self, step: u64, damaged: &[Damaged]) -> Result<History> {
        self.set_aside(damaged)?;
        let (log, history) = CsvLog::resume(self.path.join(LOG), step)?;
        (self.log, self.saved) = (log, Some(step));
        Ok(history)
    }

    /// Puts damaged checkpoints out of the way.
    pub fn set_aside(&self, damaged: &[Damaged]) -> Result<()> {
        damaged.iter().try_for_each(|damaged| self.checkpoints.set_aside(damaged))
    }

    /// The last checkpoint that was saved.
    pub fn last_saved(&self) -> Option<PathBuf> {
        self.saved.map(|step| self.checkpoints.path_of(step))
    }

    /// The best model, if there is one.
    pub fn best(&self) -> Option<PathBuf> {
        Some(self.path.join(BEST)).filter(|path| path.exists())
    }

    pub fn save_best(&self, model: &dyn Module, metadata: &Metadata) -> Result<()> {
        save_with(model, self.path.join(BEST), metadata)
    }

    /// Draws the curves.
    pub fn finish(&mut self, history: &History) -> Result<()> {
        write_file(self.path.join(CURVES), chart::stacked(&history.charts()))
    }
}
