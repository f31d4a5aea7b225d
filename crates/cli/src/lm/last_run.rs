//! What the last run in a folder began with, and whether another one can go on there.

use crate::output::Failure;
use std::path::Path;
use volta::CheckpointFolder;
use volta_lm::RunManifest;

/// What the last checkpoint in the folder of a run says; nothing if a program before this one wrote it.
pub fn read(folder: &Path) -> Result<Option<RunManifest>, Failure> {
    let checkpoints = folder.join("checkpoints");
    // Of those that are damaged the trainer tells, which passes over them too.
    let (last, _) = match checkpoints.is_dir() {
        true => CheckpointFolder::open(&checkpoints)?.last_intact()?,
        false => (None, Vec::new()),
    };
    let Some(checkpoint) = last else {
        return Err(Failure::Usage(format!(
            "there is no checkpoint in {}: leave out --resume to start a new run, or remove this folder to go on \
             with the run before it",
            folder.display()
        )));
    };
    RunManifest::of(&checkpoint, &checkpoints).map_err(|e| Failure::Failed(e.to_string()))
}

/// Refuses to go on in `folder` with something else than the run there began with.
pub fn check(begun: &RunManifest, now: &RunManifest, folder: &Path) -> Result<(), Failure> {
    let changes = begun.changes(now);
    if changes.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "the run in {} cannot go on with what it did not begin with; give its values again, or leave out --resume to \
         start a new run:\n  {}",
        folder.display(),
        changes.join("\n  ")
    )))
}
