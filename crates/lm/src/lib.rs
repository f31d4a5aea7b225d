//! What a run of a language model is, without a terminal and without a folder: the program `volta`, Python and a browser's tab are
//! faces of it, and share what they write.
//!
//! | file | holds |
//! |---|---|
//! | `config` | what to train: the keys, their meaning, where values come from |
//! | `prepare` `optimizer` `epoch_math` | model, data, optimizer and schedule of a configuration; what a step is |
//! | `plan` `memory_fit` `rank_memory` | what a step will need; whether there is memory for it; what each of several ranks takes |
//! | `run` | a run that is driven from outside, step by step |
//! | `finetune` | data, rows and losses for models of others |
//! | `run_manifest` `fingerprint` | whether a run can be resumed |
//! | `model_file` `gpt2` | the trained model; one of Hugging Face's |
//! | `sampling` `histogram` | text as it is written; weights as they are spread |
//!
//! ```
//! use volta::text::{Corpus, CorpusOptions};
//! use volta::Device;
//! use volta_lm::{Config, Model, Run};
//!
//! let config = Config::given(&[("layers", "1"), ("heads", "1"), ("width", "8"), ("context", "8"), ("steps", "2")])?;
//! let corpus = Corpus::load("short", &CorpusOptions::default())?;
//! let model = async {
//!     let mut run = Run::new(&config, &corpus, Device::Cpu).await?;
//!     while let Some(metrics) = run.step().await? {
//!         assert!(metrics.step <= 2);
//!     }
//!     run.model_file().await
//! };
//! let model = Model::from_bytes(pollster::block_on(model)?, Device::Cpu)?;
//! assert_eq!(model.config.context, 8);
//! # Ok::<(), volta::Error>(())
//! ```

pub mod config;
mod date;
mod epoch_math;
#[cfg(feature = "finetune")]
pub mod finetune;
mod fingerprint;
mod gpt2;
mod histogram;
mod memory_fit;
mod model_file;
mod optimizer;
mod plan;
mod prepare;
mod rank_memory;
mod run;
mod run_manifest;
mod sampling;

pub use config::{Config, ConfigError};
pub use date::now;
pub use epoch_math::EpochMath;
pub use fingerprint::fingerprint;
pub use histogram::{Histogram, WeightReport, weight_reports};
pub use memory_fit::StepMemory;
pub use model_file::{About, Model, TOKENIZER_NOTE, about, metadata, shape};
pub use optimizer::{optimizer, schedule, trainer_options, update};
pub use plan::StepPlan;
pub use prepare::{Prepared, Tokens};
pub use rank_memory::{RankMemory, StageMemory};
pub use run::{Run, RunCheckpoint, StepMetrics, batch_outcome};
pub use run_manifest::RunManifest;
pub use sampling::{Token, Writer, beginning, sample, sampler, write};
