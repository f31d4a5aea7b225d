//! A trained model in one file: weights, and in the metadata what it takes to use them.

use super::clock::now;
use super::config::{self, Config, quoted};
use crate::output::Failure;
use std::path::{Path, PathBuf};
use volta::io::{Metadata, Weights, save_safetensors};
use volta::models::{Activation, Gpt, GptOptions, Norm, Positions};
use volta::text::Tokenizer;
use volta::train::History;
use volta::{Checkpoint, Device, Module, with_device};

/// What the metadata says the file is.
const FORMAT: &str = "volta-language-model";
/// Grows when files can no longer be read by the programs before.
const VERSION: u32 = 1;
/// The folder that models are in unless another one is named.
pub const DEFAULT_FOLDER: &str = "models";
/// The ending of model files.
pub const ENDING: &str = "safetensors";

/// What is known about a model besides how it was configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    pub steps: u64,
    pub train_loss: Option<f64>,
    pub valid_loss: Option<f64>,
    pub device: String,
    /// When it was written.
    pub date: String,
}

impl About {
    /// A model after so many steps, of which this was measured.
    pub fn of(history: &History, steps: u64, device: Device) -> About {
        About {
            steps,
            train_loss: history.last("train/loss"),
            valid_loss: history.last("validation/loss"),
            device: device.to_string(),
            date: now(),
        }
    }
}

/// A model with what it takes to use it.
pub struct Model {
    pub gpt: Gpt,
    pub tokenizer: Tokenizer,
    pub config: Config,
}

/// The shape that a configuration asks for.
pub fn shape(config: &Config, vocabulary: usize) -> GptOptions {
    GptOptions {
        vocabulary,
        context: config.context,
        layers: config.layers,
        heads: config.heads,
        width: config.width,
        dropout: config.dropout,
        positions: match config.positions {
            config::Positions::Learned => Positions::Learned,
            config::Positions::Rotary => Positions::Rotary,
        },
        norm: match config.norm {
            config::Norm::Layer => Norm::Layer,
            config::Norm::Rms => Norm::Rms,
        },
        activation: match config.activation {
            config::Activation::Gelu => Activation::Gelu,
            config::Activation::SwiGlu => Activation::SwiGlu,
        },
        tied: config.tied_head,
    }
}

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

/// What stands in the file of a model besides its weights.
pub fn metadata(tokenizer: &Tokenizer, config: &Config, about: &About) -> Metadata {
    let loss = |loss: Option<f64>| loss.map_or(String::new(), |l| l.to_string());
    [
        ("format", FORMAT.to_string()),
        ("version", VERSION.to_string()),
        ("config", config.effective()),
        ("tokenizer", tokenizer.to_json()),
        ("steps", about.steps.to_string()),
        ("train_loss", loss(about.train_loss)),
        ("valid_loss", loss(about.valid_loss)),
        ("device", about.device.clone()),
        ("date", about.date.clone()),
    ]
    .into_iter()
    .map(|(k, v)| (k.to_string(), v))
    .collect()
}

/// What the metadata of a model file says; `None` if the file is something else.
pub fn about(weights: &Weights) -> Option<About> {
    let data = weights.metadata();
    (data.get("format").map(String::as_str) == Some(FORMAT)).then(|| About {
        steps: data.get("steps").and_then(|s| s.parse().ok()).unwrap_or(0),
        train_loss: data.get("train_loss").and_then(|s| s.parse().ok()),
        valid_loss: data.get("valid_loss").and_then(|s| s.parse().ok()),
        device: data.get("device").cloned().unwrap_or_default(),
        date: data.get("date").cloned().unwrap_or_default(),
    })
}

/// What a checkpoint calls the tokenizer of its model.
pub const TOKENIZER_NOTE: &str = "tokenizer_json";

/// Reads a model, also the one in a checkpoint.
pub fn load(path: &Path, device: Device) -> Result<Model, Failure> {
    let weights = Weights::open(path)?;
    let wrong = |what: String| Failure::Failed(format!("{}: {what}", path.display()));
    let data = weights.metadata();
    if data.get("format").is_some_and(|format| format == "volta-checkpoint") {
        return load_checkpoint(path, device);
    }
    if about(&weights).is_none() {
        return Err(wrong("is not a language model that volta trained".into()));
    }
    let part = |name: &str| data.get(name).ok_or_else(|| wrong(format!("has no {name}")));
    let version: u32 = part("version")?.parse().map_err(|_| wrong("has no readable version".into()))?;
    if version > VERSION {
        return Err(wrong(format!(
            "is of version {version}; this program reads up to {VERSION}: use a newer volta"
        )));
    }
    let model = blank(path, part("config")?, part("tokenizer")?, device)?;
    weights.load_into(&model.gpt, true)?;
    Ok(model)
}

/// Reads the model of a checkpoint.
fn load_checkpoint(path: &Path, device: Device) -> Result<Model, Failure> {
    let checkpoint = Checkpoint::load(path)?;
    let note = |name: &str| {
        checkpoint.text(name).map_err(|_| {
            let path = path.display();
            Failure::Failed(format!(
                "{path}: the checkpoint has no {name}, so that it cannot be used as a model"
            ))
        })
    };
    let model = blank(path, note("config")?, note(TOKENIZER_NOTE)?, device)?;
    checkpoint.restore_module("model", &model.gpt)?;
    Ok(model)
}

/// A model as its configuration and its tokenizer describe it, without its weights.
fn blank(path: &Path, config: &str, tokenizer: &str, device: Device) -> Result<Model, Failure> {
    let wrong = |what: String| Failure::Failed(format!("{}: {what}", path.display()));
    let config = Config::from_toml(config, path).map_err(|e| wrong(e.to_string()))?;
    let tokenizer = Tokenizer::from_json(tokenizer).map_err(|e| wrong(e.message().to_string()))?;
    let gpt = with_device(device, || Gpt::try_new(shape(&config, tokenizer.vocabulary_size())))?;
    gpt.eval();
    Ok(Model { gpt, tokenizer, config })
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
