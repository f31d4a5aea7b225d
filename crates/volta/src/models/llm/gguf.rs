//! A GGUF file as a whole language model.

use super::{Llm, Network, check};
use crate::call::Call;
use crate::error::Result;
use crate::io::{Gguf, GgufTokenKind, GgufVocabulary};
use crate::models::{CausalLm, WeightStorage};
use crate::text::{SamplerOptions, Tokenizer};
use std::collections::{BTreeMap, BTreeSet};

/// Marks of the end of a turn. Files name one end at most, and models of several families write these.
const ENDS: [&str; 7] =
    ["<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>", "<EOT>"];

impl Llm {
    /// The model of a GGUF file that is open already, on the default device.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    #[track_caller]
    pub fn of_gguf(file: &Gguf) -> Result<Llm> {
        Llm::of_gguf_with(file, WeightStorage::default())
    }

    /// [`of_gguf`](Self::of_gguf) with a choice of what matrices are in memory.
    #[track_caller]
    pub fn of_gguf_with(file: &Gguf, storage: WeightStorage) -> Result<Llm> {
        let _call = Call::enter("Llm::of_gguf");
        let vocabulary = file.vocabulary()?;
        let tokenizer = Tokenizer::from_gguf(&vocabulary).map_err(|e| e.with_context(file.label()))?;
        let model = CausalLm::try_from_gguf_with(file, storage)?;
        check(&tokenizer, model.options.vocabulary).map_err(|e| e.with_context(file.label()))?;
        let named =
            [("bos_token", vocabulary.bos), ("eos_token", vocabulary.eos), ("pad_token", vocabulary.padding)];
        let text = |id: u32| vocabulary.tokens.get(id as usize).cloned();
        let special: BTreeMap<String, String> =
            named.iter().filter_map(|(name, id)| Some((name.to_string(), text((*id)?)?))).collect();
        Ok(Llm {
            network: Network::Llama(Box::new(model)),
            tokenizer,
            // Nothing in the file says how to sample.
            sampling: SamplerOptions { temperature: 0.0, ..SamplerOptions::default() },
            stops: stops(&vocabulary),
            template: vocabulary.chat_template.map(String::from),
            special,
        })
    }
}

fn stops(vocabulary: &GgufVocabulary<'_>) -> BTreeSet<u32> {
    let marks = vocabulary
        .tokens
        .iter()
        .zip(&vocabulary.kinds)
        .zip(0u32..)
        .filter(|((token, kind), _)| **kind == GgufTokenKind::Control && ENDS.contains(&token.as_str()));
    marks.map(|(_, id)| id).chain(vocabulary.eos).chain(vocabulary.eot).collect()
}
