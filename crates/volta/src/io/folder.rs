//! A folder of checkpoints: the last few, and the best.

use super::atomic;
use super::checkpoint::Checkpoint;
use crate::call::Call;
use crate::error::{Error, ErrorKind, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The last checkpoints of a training and the best one, by the step after which they were saved. The folder belongs to
/// one training at a time.
///
/// ```
/// use volta::{Checkpoint, CheckpointFolder};
///
/// # let path = std::env::temp_dir().join(format!("volta-doc-folder-{}", std::process::id()));
/// let folder = CheckpointFolder::open(&path)?.keep(2);
/// for step in 1..=5 {
///     let checkpoint = Checkpoint::new().with_value("step", step);
///     folder.save(step as u64, &checkpoint)?;
///     folder.save_if_best((step - 2).pow(2) as f64, &checkpoint)?;
/// }
/// assert_eq!(folder.steps()?, [4, 5]);
/// assert_eq!(folder.last()?.unwrap().int("step")?, 5);
/// assert_eq!(folder.best()?.unwrap().int("step")?, 2);
/// # std::fs::remove_dir_all(&path).unwrap();
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CheckpointFolder {
    path: PathBuf,
    keep: usize,
}

/// A checkpoint that cannot be read, and why.
#[derive(Clone, Debug)]
pub struct Damaged {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub error: Error,
}

impl Damaged {
    /// What is wrong with it, without its name.
    pub fn reason(&self) -> &str {
        let message = self.error.message();
        let name = self.path.display().to_string();
        message.strip_prefix(&name).map_or(message, |rest| rest.trim_start_matches([':', ' ']))
    }
}

const PREFIX: &str = "step-";
const SUFFIX: &str = ".safetensors";
const BEST: &str = "best.safetensors";
/// What is behind the names of damaged checkpoints that were passed over.
const ASIDE: &str = ".damaged";
/// The value that the best checkpoint gets beside its own.
const BEST_SCORE: &str = "best_score";

impl CheckpointFolder {
    /// Opens a folder, makes it if need be, and clears away what a training that was killed left unfinished.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> Result<CheckpointFolder> {
        let _call = Call::enter("CheckpointFolder::open");
        let path = path.as_ref().to_path_buf();
        fs::create_dir_all(&path).map_err(|e| Error::io(&path, &e, "make the folder"))?;
        atomic::clear(&path, "")?;
        Ok(CheckpointFolder { path, keep: 3 })
    }

    /// The folder of a training that another process has opened: nothing is made or cleared away.
    pub(crate) fn of_another(path: PathBuf) -> CheckpointFolder {
        CheckpointFolder { path, keep: 3 }
    }

    /// Keeps the last `count` checkpoints, at least one; three unless said otherwise. The best is kept besides.
    #[must_use]
    pub fn keep(mut self, count: usize) -> CheckpointFolder {
        self.keep = count.max(1);
        self
    }

    /// Saves a checkpoint, then removes those beyond the last few, but never this one.
    #[track_caller]
    pub fn save(&self, step: u64, checkpoint: &Checkpoint) -> Result<()> {
        let _call = Call::enter("CheckpointFolder::save");
        checkpoint.save(self.path.join(file_name(step)))?;
        self.remove_old(step)
    }

    /// Removes the checkpoints beyond the last few, but not that of a step, and shards that belong to none.
    fn remove_old(&self, step: u64) -> Result<()> {
        let steps = self.steps()?;
        let beyond = &steps[..steps.len().saturating_sub(self.keep)];
        for old in beyond.iter().filter(|&&old| old != step) {
            self.remove(&file_name(*old))?;
        }
        let left = self.steps()?;
        let is_orphan = |name: &String| shard_step(name).is_some_and(|step| !left.contains(&step));
        self.names()?.iter().filter(|name| is_orphan(name)).try_for_each(|name| self.remove(name))
    }

    /// Writes one shard of a checkpoint, `shard.0` of `shard.1`: a part of its tensors. Whoever writes the others may be in another process.
    /// They count once [`save_shards`](Self::save_shards) has made them whole.
    #[track_caller]
    pub fn save_shard(&self, step: u64, checkpoint: &Checkpoint, shard: (usize, usize)) -> Result<()> {
        let _call = Call::enter("CheckpointFolder::save_shard");
        checkpoint.save_shard(self.path.join(shard_name(step, shard.0, shard.1)), shard)
    }

    /// Makes so many shards, all of which are written, the checkpoint of a step, by a file under its usual name that says where its tensors
    /// are. Whatever happens meanwhile, it is there or not.
    #[track_caller]
    pub fn save_shards(&self, step: u64, checkpoint: &Checkpoint, count: usize) -> Result<()> {
        let _call = Call::enter("CheckpointFolder::save_shards");
        let shards: Vec<String> = (0..count).map(|k| shard_name(step, k, count)).collect();
        checkpoint.save_shard_list(self.path.join(file_name(step)), &shards)?;
        self.remove_old(step)
    }

    /// Saves a checkpoint as the best one if its score, say a loss, is lower than that of the best so far. Whether it
    /// was saved. The score stands in it as the value `best_score`.
    #[track_caller]
    pub fn save_if_best(&self, score: f64, checkpoint: &Checkpoint) -> Result<bool> {
        let _call = Call::enter("CheckpointFolder::save_if_best");
        let better = match self.best()? {
            Some(best) => score < best.float(BEST_SCORE)?,
            None => !score.is_nan(),
        };
        if better {
            checkpoint.clone().with_value(BEST_SCORE, score).save(self.path.join(BEST))?;
        }
        Ok(better)
    }

    /// The steps of the checkpoints that are there, in order.
    #[track_caller]
    pub fn steps(&self) -> Result<Vec<u64>> {
        let step = |name: &String| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok();
        let mut steps: Vec<u64> = self.names()?.iter().filter_map(step).collect();
        steps.sort_unstable();
        Ok(steps)
    }

    /// Where the checkpoint of a step is, or would be.
    pub fn path_of(&self, step: u64) -> PathBuf {
        self.path.join(file_name(step))
    }

    /// The checkpoint of the latest step.
    #[track_caller]
    pub fn last(&self) -> Result<Option<Checkpoint>> {
        let _call = Call::enter("CheckpointFolder::last");
        self.steps()?.last().map(|&step| Checkpoint::load(self.path_of(step))).transpose()
    }

    /// The checkpoint of the latest step among those that can be read, and the later ones that cannot. If none can, that is an
    /// error; so is one that a newer Volta wrote.
    ///
    /// ```
    /// use volta::{Checkpoint, CheckpointFolder};
    ///
    /// # let path = std::env::temp_dir().join(format!("volta-doc-intact-{}", std::process::id()));
    /// let folder = CheckpointFolder::open(&path)?;
    /// for step in [10, 20] {
    ///     folder.save(step, &Checkpoint::new().with_value("step", step as i64))?;
    /// }
    /// std::fs::write(folder.path_of(20), b"cut off").unwrap();
    /// let (last, damaged) = folder.last_intact()?;
    /// assert_eq!(last.unwrap().int("step")?, 10);
    /// assert_eq!(damaged[0].path, folder.path_of(20));
    /// # std::fs::remove_dir_all(&path).unwrap();
    /// # Ok::<(), volta::Error>(())
    /// ```
    #[track_caller]
    pub fn last_intact(&self) -> Result<(Option<Checkpoint>, Vec<Damaged>)> {
        let _call = Call::enter("CheckpointFolder::last_intact");
        let mut damaged: Vec<Damaged> = Vec::new();
        for step in self.steps()?.into_iter().rev() {
            let path = self.path_of(step);
            match Checkpoint::load(&path) {
                Ok(checkpoint) => return Ok((Some(checkpoint), damaged)),
                Err(error) if is_damage(&path, &error) => damaged.push(Damaged { path, error }),
                Err(error) => return Err(error),
            }
        }
        match damaged.into_iter().next() {
            None => Ok((None, Vec::new())),
            Some(latest) => Err(latest.error.with_context("no checkpoint in its folder can be read")),
        }
    }

    /// Puts a damaged checkpoint out of the way, under its name with `.damaged` behind it: it counts no more.
    #[track_caller]
    pub(crate) fn set_aside(&self, damaged: &Damaged) -> Result<()> {
        let mut aside = damaged.path.clone().into_os_string();
        aside.push(ASIDE);
        fs::rename(&damaged.path, aside).map_err(|e| Error::io(&damaged.path, &e, "rename the file"))
    }

    /// The best checkpoint.
    #[track_caller]
    pub fn best(&self) -> Result<Option<Checkpoint>> {
        let _call = Call::enter("CheckpointFolder::best");
        let path = self.path.join(BEST);
        if path.exists() { Checkpoint::load(path).map(Some) } else { Ok(None) }
    }

    fn names(&self) -> Result<Vec<String>> {
        let failed = |e: std::io::Error| Error::io(&self.path, &e, "list the folder");
        let mut names = Vec::new();
        for file in fs::read_dir(&self.path).map_err(failed)? {
            // Names that are not UTF-8 are not ours.
            names.extend(file.map_err(failed)?.file_name().into_string());
        }
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.path.join(name);
        fs::remove_file(&path).map_err(|e| Error::io(&path, &e, "remove the file"))
    }
}

/// Whether a checkpoint could not be read because of what the file is, and not of what this program is.
fn is_damage(path: &Path, error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Data | ErrorKind::Io) && !Checkpoint::is_newer(path)
}

/// The name of a shard: not that of a checkpoint.
fn shard_name(step: u64, shard: usize, count: usize) -> String {
    format!("{PREFIX}{step:08}.{shard}-of-{count}{SUFFIX}")
}

/// The step that a shard belongs to.
fn shard_step(name: &str) -> Option<u64> {
    let (step, shard) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('.')?;
    shard.contains("-of-").then(|| step.parse().ok())?
}

fn file_name(step: u64) -> String {
    format!("{PREFIX}{step:08}{SUFFIX}")
}
