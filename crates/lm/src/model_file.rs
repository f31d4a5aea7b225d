//! A trained model in one file: weights, and in the metadata what it takes to use them.

use crate::config::{self, Config};
use crate::date::now;
use std::path::Path;
use volta::io::{Metadata, Weights, to_safetensors_async};
use volta::models::{Activation, Gpt, GptOptions, Norm, Positions};
use volta::text::Tokenizer;
use volta::train::History;
use volta::{Checkpoint, Device, Error, ErrorKind, Module, Result, with_device};

/// What the metadata says the file is.
const FORMAT: &str = "volta-language-model";
/// Grows when files can no longer be read by the programs before.
const VERSION: u32 = 1;

/// What is known about a model besides how it was configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Updates that were made.
    pub steps: u64,
    /// The last loss of the training, if one was read.
    pub train_loss: Option<f64>,
    /// The last loss of the validation, if there was one.
    pub valid_loss: Option<f64>,
    /// Where it was trained.
    pub device: String,
    /// When it was written.
    pub date: String,
}

impl About {
    /// A model after so many steps, of which this was measured.
    pub fn of(history: &History, steps: u64, device: &str) -> About {
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
    /// The network.
    pub gpt: Gpt,
    /// What makes tokens of text.
    pub tokenizer: Tokenizer,
    /// What it was made by.
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

/// What the metadata of a checkpoint says it is.
const CHECKPOINT_FORMAT: &str = "volta-checkpoint";

/// What a file in memory is called.
const IN_MEMORY: &str = "the model";

impl Model {
    /// Reads a model's file, also the one in a checkpoint.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(path: &Path, device: Device) -> Result<Model> {
        Model::read(Weights::open(path)?, path, || Checkpoint::load(path), device)
    }

    /// [`open`](Self::open) of a file that is in memory.
    pub fn from_bytes(bytes: Vec<u8>, device: Device) -> Result<Model> {
        let path = Path::new(IN_MEMORY);
        if is_checkpoint(&bytes) {
            return Model::of_checkpoint(&Checkpoint::from_bytes(bytes)?, path, device);
        }
        let again = || Err(wrong(path, "is a checkpoint that cannot be read"));
        Model::read(Weights::from_bytes(bytes)?, path, again, device)
    }

    fn read(
        weights: Weights,
        path: &Path,
        checkpoint: impl FnOnce() -> Result<Checkpoint>,
        device: Device,
    ) -> Result<Model> {
        let data = weights.metadata();
        if data.get("format").is_some_and(|format| format == CHECKPOINT_FORMAT) {
            return Model::of_checkpoint(&checkpoint()?, path, device);
        }
        if about(&weights).is_none() {
            return Err(wrong(path, "is not a language model that volta trained"));
        }
        let part = |name: &str| data.get(name).ok_or_else(|| wrong(path, format!("has no {name}")));
        let version: u32 = part("version")?.parse().map_err(|_| wrong(path, "has no readable version"))?;
        if version > VERSION {
            return Err(wrong(
                path,
                format!("is of version {version}; this program reads up to {VERSION}: use a newer volta"),
            ));
        }
        let model = Model::blank(path, part("config")?, part("tokenizer")?, device)?;
        weights.load_into(&model.gpt, true)?;
        Ok(model)
    }

    /// The model of a checkpoint; `path` is for errors.
    pub fn of_checkpoint(checkpoint: &Checkpoint, path: &Path, device: Device) -> Result<Model> {
        let note = |name: &str| {
            let what = format!("the checkpoint has no {name}, so that it cannot be used as a model");
            checkpoint.text(name).map_err(|_| wrong(path, what))
        };
        let model = Model::blank(path, note("config")?, note(TOKENIZER_NOTE)?, device)?;
        checkpoint.restore_module("model", &model.gpt)?;
        Ok(model)
    }

    /// A model as its configuration and its tokenizer describe it, without its weights.
    fn blank(path: &Path, config: &str, tokenizer: &str, device: Device) -> Result<Model> {
        let config = Config::from_toml(config, path).map_err(|e| wrong(path, e.to_string()))?;
        let tokenizer = Tokenizer::from_json(tokenizer).map_err(|e| wrong(path, e.message()))?;
        let gpt = with_device(device, || Gpt::try_new(shape(&config, tokenizer.vocabulary_size())))?;
        gpt.eval();
        Ok(Model { gpt, tokenizer, config })
    }

    /// The file of a model, in memory; nobody is blocked.
    pub async fn to_bytes(
        gpt: &Gpt,
        tokenizer: &Tokenizer,
        config: &Config,
        about: &About,
    ) -> Result<Vec<u8>> {
        to_safetensors_async(&gpt.state_dict(), &metadata(tokenizer, config, about)).await
    }
}

fn wrong(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Data, format!("{}: {what}", path.display()))
}

/// Whether a file says that it is a checkpoint.
fn is_checkpoint(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    let header = bytes.get(8..).map_or(&[][..], |rest| &rest[..rest.len().min(length as usize)]);
    let name = CHECKPOINT_FORMAT.as_bytes();
    header.windows(name.len()).any(|part| part == name)
}
