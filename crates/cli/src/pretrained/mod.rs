//! Language models of others: a folder as Hugging Face has it, a GGUF file, or a name on the Hub.
//!
//! `chat`, `generate` and `eval` are what the commands of these names do with them, `embed` and `serve` are commands of their own. `writing` shows text as
//! it is written.

pub mod chat;
pub mod embed;
pub mod eval;
pub mod generate;
#[cfg(feature = "serve")]
pub mod serve;
mod writing;

use crate::output::Failure;
use std::path::{Path, PathBuf};
use volta::io::{Hub, HubRepo};
use volta::models::Llm;

/// What names of the Hub begin with.
pub const HUB: &str = "hf:";

/// Where a model of others lies, if a name means one; anything else may be a model that was trained here.
pub fn find(name: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    let Some(name) = name else { return Ok(None) };
    if name.starts_with(HUB) {
        return hub_folder(name).map(Some);
    }
    let path = PathBuf::from(name);
    let is_gguf = || path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gguf")) && path.is_file();
    Ok((path.join("config.json").is_file() || is_gguf()).then_some(path))
}

/// Where a model of the Hub lies in the cache.
fn hub_folder(name: &str) -> Result<PathBuf, Failure> {
    let repo: HubRepo = name.parse().map_err(|e| Failure::usage(&e))?;
    Ok(Hub::from_environment().map_err(|e| Failure::usage(&e))?.need(&repo)?)
}

/// Reads a model, to the default device.
fn load(path: &Path) -> Result<Llm, Failure> {
    Ok(Llm::load(path)?)
}

/// What a model is called in results: its file's or folder's name.
fn called(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
