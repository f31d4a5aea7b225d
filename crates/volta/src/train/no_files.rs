//! A browser's tab has no folders: what stands for those of runs there is never made.

use super::history::{History, Row};
use crate::error::{Result, bail};
use crate::io::{Checkpoint, Metadata};
use crate::nn::Module;
use std::convert::Infallible;
use std::path::{Path, PathBuf};

/// A checkpoint that cannot be read.
pub(super) struct Damaged {
    pub path: PathBuf,
    never: Infallible,
}

impl Damaged {
    pub fn reason(&self) -> &str {
        match self.never {}
    }
}

/// Files of a run.
pub(super) struct RunFiles(Infallible);

impl RunFiles {
    pub fn last(folder: &Path) -> Result<(Option<Checkpoint>, Vec<Damaged>)> {
        none(folder)
    }

    pub fn open(folder: &Path, _: Option<u64>) -> Result<(RunFiles, History)> {
        none(folder)
    }

    pub fn log(&mut self, _: &[Row]) -> Result<()> {
        match self.0 {}
    }

    pub fn has(&self, _: u64) -> bool {
        match self.0 {}
    }

    pub fn save(&mut self, _: u64, _: &Checkpoint) -> Result<()> {
        match self.0 {}
    }

    pub fn save_shard(folder: &Path, _: u64, _: &Checkpoint, _: (usize, usize)) -> Result<()> {
        none(folder)
    }

    pub fn save_shards(&mut self, _: u64, _: &Checkpoint, _: usize) -> Result<()> {
        match self.0 {}
    }

    pub fn read(folder: &Path, _: u64) -> Result<Checkpoint> {
        none(folder)
    }

    pub fn history(folder: &Path) -> Result<History> {
        none(folder)
    }

    pub fn go_back(&mut self, _: u64, _: &[Damaged]) -> Result<History> {
        match self.0 {}
    }

    pub fn set_aside(&self, _: &[Damaged]) -> Result<()> {
        match self.0 {}
    }

    pub fn last_saved(&self) -> Option<PathBuf> {
        match self.0 {}
    }

    pub fn best(&self) -> Option<PathBuf> {
        match self.0 {}
    }

    pub fn save_best(&self, _: &dyn Module, _: &Metadata) -> Result<()> {
        match self.0 {}
    }

    pub fn finish(&mut self, _: &History) -> Result<()> {
        match self.0 {}
    }
}

fn none<T>(folder: &Path) -> Result<T> {
    bail!(Io, "a browser's tab has no folders, and so not {}", folder.display())
}
