//! Networks of others: what `transformers` computes with tiny models of each architecture, from the same files.
//!
//! `scripts/make-model-fixtures` makes the files, with its answers beside them.

mod batch;
mod bert;
mod blocks;
mod causal;
#[cfg(feature = "chat")]
mod chat;
mod configs;
mod files;
mod lora;
mod training;
mod vision;

volta_testing::main!();
