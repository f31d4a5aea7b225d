//! What `volta finetune` can be told.

use crate::device::DeviceFlag;
use crate::output::Failure;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use volta::BlockFormat;
use volta::models::{LoraOptions, WeightStorage};
use volta_lm::config::parse_bytes;

#[derive(clap::Args)]
pub struct Options {
    /// The model: a folder as Hugging Face has it, a GGUF file, or hf:OWNER/NAME.
    #[arg(long, short)]
    pub model: String,
    /// What it learns: JSON lines with messages (a chat), prompt and completion, text, or prompt, chosen and rejected (with --dpo).
    #[arg(long, short)]
    pub data: PathBuf,
    /// JSON lines to validate on.
    #[arg(long, value_name = "FILE", conflicts_with = "valid_fraction")]
    pub valid: Option<PathBuf>,
    /// Which share of the data is for validation instead.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub valid_fraction: f64,

    /// Train all weights instead of adapters.
    #[arg(long, conflicts_with_all = ["rank", "alpha", "dropout", "targets", "dora", "quantize", "adapter"])]
    pub full: bool,
    /// The rank of adapters (LoRA) [default: 16]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub rank: Option<u32>,
    /// What adapters add is multiplied by this over the rank [default: twice the rank]
    #[arg(long)]
    pub alpha: Option<f64>,
    /// The probability of dropping an input of an adapter [default: 0]
    #[arg(long)]
    pub dropout: Option<f64>,
    /// The layers that get adapters, as in q_proj,v_proj [default: all products of the blocks]
    #[arg(long, value_delimiter = ',')]
    pub targets: Vec<String>,
    /// Train the lengths of weights beside their directions (DoRA).
    #[arg(long)]
    pub dora: bool,
    /// Round the frozen weights to 4 or 8 bits (QLoRA); those of a GGUF file that have as few stay as they are.
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u8).range(4..=8))]
    pub quantize: Option<u8>,
    /// Go on with adapters that are there: a folder of PEFT's files.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["rank", "alpha", "dropout", "targets", "dora"])]
    pub adapter: Option<PathBuf>,

    /// Learn which of two answers is preferred (DPO).
    #[arg(long)]
    pub dpo: bool,
    /// How strongly DPO holds on to the model as it was.
    #[arg(long, default_value_t = 0.1, requires = "dpo")]
    pub beta: f64,

    /// Walks through the data.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub epochs: u64,
    /// Steps, instead of epochs.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: Option<u64>,
    /// Rows of a batch; of several samples each if these are short.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,
    /// Batches of a step.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub accumulation: u32,
    /// Tokens of a row [default: those of the longest sample, 256 at least and 1024 at most]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..))]
    pub length: Option<u32>,
    /// Every sample gets a row of its own.
    #[arg(long)]
    pub no_packing: bool,
    /// Prompts and completions stay as they are, without the model's template of chats.
    #[arg(long)]
    pub plain: bool,
    /// The size of updates [default: 2e-4; 2e-5 with --full, a tenth of these with --dpo]
    #[arg(long)]
    pub learning_rate: Option<f64>,
    /// How the learning rate falls.
    #[arg(long, value_enum, default_value_t = Schedule::Cosine)]
    pub schedule: Schedule,
    /// Steps with rising rates [default: 3 % of all]
    #[arg(long)]
    pub warmup: Option<u64>,
    /// How strongly weights are drawn to zero.
    #[arg(long, default_value_t = 0.0)]
    pub weight_decay: f64,
    /// The largest norm of all gradients together; 0 for any.
    #[arg(long, default_value_t = 1.0)]
    pub clip: f64,
    /// What products are computed in.
    #[arg(long, value_enum, default_value_t = Precision::F32)]
    pub precision: Precision,
    /// Where random numbers start.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Where to run: auto, cpu, gpu or gpu:N [default: VOLTA_DEVICE, or else auto]
    #[command(flatten)]
    pub device: DeviceFlag,
    /// The most memory of the device that is in use at a time, as in 6GB; what does not fit is computed again [default: what there is]
    #[arg(long, value_parser = memory)]
    pub memory: Option<u64>,
    /// Print what is trained, the plan of a step and its memory, and stop.
    #[arg(long)]
    pub dry_run: bool,

    /// What the run is called [default: the model's name and how it is tuned]
    #[arg(long)]
    pub name: Option<String>,
    /// The folder that runs are in.
    #[arg(long, default_value = super::DEFAULT_FOLDER)]
    pub output: String,
    /// Go on with the last run of this name, from its last checkpoint, to the same bits.
    #[arg(long)]
    pub resume: bool,
    /// Steps between two validations [default: an epoch]
    #[arg(long)]
    pub valid_interval: Option<u64>,
    /// Steps between two checkpoints [default: an epoch]
    #[arg(long)]
    pub checkpoint_interval: Option<u64>,
    /// Steps between two samples of what it writes; 0 for none [default: a quarter of all]
    #[arg(long)]
    pub sample_interval: Option<u64>,
    /// The most tokens of a sample.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub sample_length: u64,
    /// What samples go on from [default: the first prompt of the data]
    #[arg(long)]
    pub prompt: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Schedule {
    /// Down to zero along half a wave.
    Cosine,
    /// Down to zero in a straight line.
    Linear,
    /// Not at all.
    Constant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Precision {
    F32,
    /// Halves, with a gradient scaler.
    F16,
}

fn memory(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "must be an amount of memory, as in 6GB, 512MB or 4GiB".to_string())
}

/// Settings that may change when a run goes on: they change nothing that is learnt.
const FREE: [&str; 4] = ["steps", "epochs", "output", "intervals"];

impl Options {
    /// An error that names a flag whose value cannot be.
    pub fn check(&self) -> Result<(), Failure> {
        let flags: [(&str, f64, bool, &str); 7] = [
            (
                "valid-fraction",
                self.valid_fraction,
                (0.0..1.0).contains(&self.valid_fraction),
                "0 to below 1",
            ),
            ("learning-rate", self.rate(), self.rate() > 0.0, "more than 0"),
            ("weight-decay", self.weight_decay, self.weight_decay >= 0.0, "0 or more"),
            ("clip", self.clip, self.clip >= 0.0, "0 or more"),
            ("beta", self.beta, self.beta > 0.0, "more than 0"),
            ("alpha", self.alpha.unwrap_or(1.0), self.alpha.unwrap_or(1.0) > 0.0, "more than 0"),
            (
                "dropout",
                self.dropout.unwrap_or(0.0),
                (0.0..1.0).contains(&self.dropout.unwrap_or(0.0)),
                "0 to below 1",
            ),
        ];
        if let Some((name, value, _, needed)) =
            flags.iter().find(|(_, value, fits, _)| !fits || !value.is_finite())
        {
            return Err(Failure::Usage(format!("--{name} is {value}: it must be {needed}")));
        }
        if self.quantize.is_some_and(|bits| bits != 4 && bits != 8) {
            return Err(Failure::Usage("--quantize takes 4 or 8 bits".into()));
        }
        Ok(())
    }

    /// What matrices are in memory.
    pub fn storage(&self) -> WeightStorage {
        match self.quantize {
            _ if self.full => WeightStorage::Floats,
            Some(4) => WeightStorage::Blocks(BlockFormat::Int4),
            Some(_) => WeightStorage::Blocks(BlockFormat::Int8),
            None => WeightStorage::AsStored,
        }
    }

    /// The adapters that are made.
    pub fn lora(&self, all: Vec<String>) -> LoraOptions {
        let rank = self.rank.unwrap_or(16) as usize;
        LoraOptions {
            rank,
            alpha: self.alpha.unwrap_or(2.0 * rank as f64),
            dropout: self.dropout.unwrap_or(0.0),
            targets: if self.targets.is_empty() { all } else { self.targets.clone() },
            dora: self.dora,
            ..LoraOptions::default()
        }
    }

    pub fn rate(&self) -> f64 {
        let usual = if self.full { 2e-5 } else { 2e-4 };
        self.learning_rate.unwrap_or(if self.dpo { usual / 10.0 } else { usual })
    }

    /// How it is tuned, in a word.
    pub fn method(&self) -> &'static str {
        match (self.dpo, self.full) {
            (true, _) => "dpo",
            (_, true) => "full",
            _ if self.dora || self.quantize.is_some() => {
                if self.dora {
                    "dora"
                } else {
                    "qlora"
                }
            }
            _ => "lora",
        }
    }

    /// Everything that a run is told, for its page and its checkpoints. `data` tells texts apart.
    pub fn settings(&self, data: &str, length: usize, lora: Option<&LoraOptions>) -> Map<String, Value> {
        let lora = lora.map(|o| {
            json!({
                "rank": o.rank, "alpha": o.alpha, "dropout": o.dropout, "targets": o.targets, "dora": o.dora,
                "rank_stabilized": o.rank_stabilized,
            })
        });
        let settings = json!({
            "model": self.model, "data": data, "method": self.method(), "adapters": lora, "quantize": self.quantize,
            "from_adapter": self.adapter, "beta": self.dpo.then_some(self.beta), "valid_fraction": self.valid_fraction,
            "epochs": self.epochs, "steps": self.steps, "batch": self.batch, "accumulation": self.accumulation,
            "length": length, "packing": !self.no_packing, "plain": self.plain, "learning_rate": self.rate(),
            "schedule": format!("{:?}", self.schedule).to_lowercase(), "warmup": self.warmup,
            "weight_decay": self.weight_decay, "clip": self.clip,
            "precision": format!("{:?}", self.precision).to_lowercase(), "seed": self.seed, "output": self.output,
            "intervals": [self.valid_interval, self.checkpoint_interval, self.sample_interval],
        });
        match settings {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

/// What a run that goes on was told otherwise when it began: a line each.
pub fn changes(begun: &Map<String, Value>, now: &Map<String, Value>) -> Vec<String> {
    let held = now.iter().filter(|(name, _)| !FREE.contains(&name.as_str()));
    let changed = held.filter(|(name, value)| begun.get(*name) != Some(value));
    changed
        .map(|(name, value)| {
            format!("{name} was {}, and is {value}", begun.get(name).unwrap_or(&Value::Null))
        })
        .collect()
}
