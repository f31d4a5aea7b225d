//! Language models of others: a folder as Hugging Face has it, a GGUF file, or a name on the Hub.
//!
//! `chat`, `generate` and `eval` are what the commands of these names do with them, `embed`, `merge` and `serve` are commands of their own. `writing` shows
//! text as
//! it is written.

pub mod chat;
pub mod embed;
pub mod eval;
pub mod generate;
pub mod merge;
#[cfg(feature = "serve")]
pub mod serve;
mod writing;

use crate::output::Failure;
use std::path::{Path, PathBuf};
use volta::io::{Hub, HubRepo};
use volta::models::{Llm, Lora, WeightStorage};

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

/// The flag of commands that take adapters.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Adapter {
    /// Adapters of the model: a folder of PEFT's files, as `volta finetune` writes them.
    #[arg(long, value_name = "DIR")]
    adapter: Option<PathBuf>,
}

impl Adapter {
    /// Reads a model with its adapters, to the default device.
    fn load(&self, path: &Path, storage: WeightStorage) -> Result<(Llm, Option<Lora>), Failure> {
        let mut llm = Llm::load_with(path, storage)?;
        let Some(folder) = &self.adapter else { return Ok((llm, None)) };
        let Some(model) = llm.causal_lm_mut() else {
            return Err(Failure::Usage(
                "--adapter is for models of Llama's family, and this is GPT-2".into(),
            ));
        };
        let lora = Lora::load(model, folder)?;
        Ok((llm, Some(lora)))
    }

    /// Refuses adapters for a model that was trained here.
    pub fn check_none(&self) -> Result<(), Failure> {
        match self.adapter {
            Some(_) => {
                Err(Failure::Usage("--adapter is for models of others: this one was trained here".into()))
            }
            None => Ok(()),
        }
    }
}

/// Reads a model to be used, with its adapters, to the default device. Weights stay as small as they are.
fn load(path: &Path, adapter: &Adapter) -> Result<Llm, Failure> {
    Ok(adapter.load(path, WeightStorage::AsStored)?.0)
}

/// What a model is called in results: its file's or folder's name.
pub fn called(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
