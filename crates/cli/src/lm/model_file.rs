//! The files of trained models: where they are, and which one is meant.

use crate::output::Failure;
use std::path::{Path, PathBuf};
use volta::Device;
use volta::Module;
use volta::io::{Weights, save_safetensors};
use volta::models::Gpt;
use volta::text::Tokenizer;
use volta_lm::config::quoted;
use volta_lm::{About, Config, Model, about, metadata};

/// The folder that models are in unless another one is named.
pub const DEFAULT_FOLDER: &str = "models";
/// The ending of model files.
pub const ENDING: &str = "safetensors";

/// Writes a model: whole, or not at all.
pub fn save(
    path: &Path,
    gpt: &Gpt,
    tokenizer: &Tokenizer,
    config: &Config,
    about: &About,
) -> volta::Result<()> {
    save_safetensors(path, &gpt.state_dict(), &metadata(tokenizer, config, about))
}

/// Reads a model, also the one in a checkpoint.
pub fn load(path: &Path, device: Device) -> Result<Model, Failure> {
    Ok(Model::open(path, device)?)
}

/// All model files of a folder with what they say about themselves, the newest last.
pub fn list(folder: &Path) -> Result<Vec<(PathBuf, About, u64)>, Failure> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != ENDING) {
            continue;
        }
        if let Some(about) = Weights::open(&path).ok().as_ref().and_then(about) {
            found.push((path, about, entry.metadata().map_or(0, |m| m.len())));
        }
    }
    found.sort_by(|a, b| (&a.1.date, &a.0).cmp(&(&b.1.date, &b.0)));
    Ok(found)
}

/// The file that `name` means: a path, or the name of a model in `folder`; without one, the newest there.
pub fn find(name: Option<&str>, folder: &Path) -> Result<PathBuf, Failure> {
    let there = list(folder)?;
    let Some(name) = name else {
        return there.last().map(|m| m.0.clone()).ok_or_else(|| {
            let (folder, training) = (folder.display(), training_in(folder));
            Failure::Failed(format!(
                "there is no model in {folder}: train one with `{training}`, or name a file"
            ))
        });
    };
    // A model's name comes first: a file of the same name may lie here for other reasons.
    let named = folder.join(format!("{name}.{ENDING}"));
    if named.is_file() {
        return Ok(named);
    }
    let path = PathBuf::from(name);
    if path.is_file() {
        return Ok(path);
    }
    let names: Vec<String> = there.iter().map(|m| stem(&m.0)).collect();
    let known =
        if names.is_empty() { "none is there".into() } else { format!("there are: {}", names.join(", ")) };
    Err(Failure::Failed(format!("{name} is neither a file nor a model in {}; {known}", folder.display())))
}

/// The command that makes a model in a folder, for a shell.
pub fn training_in(folder: &Path) -> String {
    if folder == Path::new(DEFAULT_FOLDER) {
        return "volta train".to_string();
    }
    format!("volta train {}", quoted(&format!("--output={}", folder.display())))
}

/// The name of a model: its file's without the ending.
pub fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned())
}
