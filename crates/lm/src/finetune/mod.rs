//! Fine-tuning of language models of others: what data says, what is learnt of it, and how.
//!
//! `examples` reads JSON lines, `tokenized` makes tokens of them and tells which are learnt, `packing` puts several into a row, and
//! `preferences` are pairs for DPO. `learner` is what of a model is trained.

mod examples;
mod learner;
mod packing;
mod preferences;
mod tokenized;

pub use examples::{Example, Said, read_examples};
pub use learner::Learner;
pub use packing::PackedRows;
pub use preferences::{Preferences, dpo_outcome};
pub use tokenized::{Tokenized, Tokens, tokenize};

use volta::models::{IGNORED, Llm};
use volta::train::Outcome;
use volta::{Error, ErrorKind, Result, Tensor, no_grad};

/// What a batch of [`PackedRows`] comes to.
pub fn packed_outcome(llm: &Llm, x: &Tensor, y: &Tensor) -> Result<Outcome> {
    let (tokens, segments) = (x.try_select(1, 0)?, x.try_select(1, 1)?);
    let loss = causal(llm)?.try_packed_loss(&tokens, &segments, y)?;
    let learnt = no_grad(|| y.try_ne(IGNORED)?.try_to_dtype(volta::DType::F32)?.try_sum())?;
    Ok(Outcome::from(loss).with_perplexity().with_counted(&learnt).with_units("tokens", tokens.numel()))
}

/// The network, which must be one of Llama's family.
fn causal(llm: &Llm) -> Result<&volta::models::CausalLm> {
    let refused =
        || Error::new(ErrorKind::Argument, "only models of Llama's family are fine-tuned, and this is GPT-2");
    llm.causal_lm().ok_or_else(refused)
}
