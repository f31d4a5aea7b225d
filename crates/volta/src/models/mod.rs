//! Whole networks that are used again and again.

mod generate;
mod gpt;
mod gpt2;
mod gpt_block;
mod gpt_cache;

pub use generate::Generation;
pub use gpt::{Activation, Gpt, GptOptions, Norm, Positions};
pub use gpt_cache::GptCache;
