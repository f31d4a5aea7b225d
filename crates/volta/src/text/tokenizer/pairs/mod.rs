//! Byte-pair encodings, trained here or read from a `tokenizer.json`.
//!
//! The `tokenizers` crate runs whatever a `tokenizer.json` describes. `train` finds the pairs of a text, and `encode` applies
//! such pairs, in a time and a memory that grow with the text; `pieces` cuts text for both.

mod encode;
mod pieces;
mod train;

use super::json::byte_level;
use super::{Decoder, Scheme, TokenizerKind, data_error};
use crate::error::Result;
use encode::Encoder;
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use tokenizers::tokenizer::Tokenizer;
use train::{Ended, Vocabulary};

/// How many tokens there are if nobody says.
const DEFAULT_SIZE: usize = 4096;
/// Pairs that occur less often are not worth a token.
const LEAST_FREQUENCY: u64 = 2;
/// Unicode's last code point, which no vocabulary has.
const UNSEEN: &str = "\u{10FFFF}";

pub(super) struct Pairs {
    tokenizer: Tokenizer,
    /// Encodes in its place where it can.
    plain: Option<Encoder>,
    size: usize,
    pad: Option<u32>,
    unknown: Option<u32>,
}

impl Pairs {
    /// Pairs over all 256 bytes, so that nothing is unknown and nothing is lost. `watch` hears how many tokens there are
    /// and how many there may be; nothing if it breaks off.
    pub fn train(
        text: &str,
        limit: Option<usize>,
        watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Option<Pairs>> {
        let most = limit.unwrap_or(DEFAULT_SIZE);
        let Vocabulary { tokens, merges } =
            match train::train(text, most, LEAST_FREQUENCY, &mut |count| watch(count, most)) {
                Ok(found) => found,
                Err(Ended::Stopped) => return Ok(None),
                Err(Ended::TooLong) => {
                    return Err(data_error(
                        "the text has more than 4 GB of different words: train byte pairs on a part of it",
                    ));
                }
            };
        let merges: Vec<[&str; 2]> =
            merges.iter().map(|&(a, b)| [&*tokens[a as usize], &*tokens[b as usize]]).collect();
        let vocabulary: Map<String, Value> =
            tokens.iter().zip(0u32..).map(|(token, id)| (token.clone(), id.into())).collect();
        let json = byte_level(vocabulary.into(), json!(merges));
        Ok(Some(Pairs { pad: None, unknown: None, ..Pairs::read(&json)? }))
    }

    pub fn read(json: &Value) -> Result<Pairs> {
        let mut tokenizer = Tokenizer::from_bytes(json.to_string())
            .map_err(|error| data_error(format!("this tokenizer.json cannot be used: {error}")))?;
        let pad = tokenizer.get_padding().map(|padding| padding.pad_id);
        // Sequences are cut and filled up elsewhere.
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|error| data_error(format!("this tokenizer.json cannot be used: {error}")))?;
        let pad = pad.or_else(|| ["<pad>", "[PAD]", "<|pad|>"].iter().find_map(|t| tokenizer.token_to_id(t)));
        let model = &json["model"];
        let unknown = match model["unk_id"].as_u64() {
            Some(id) => u32::try_from(id).ok(),
            None => model["unk_token"].as_str().and_then(|token| tokenizer.token_to_id(token)),
        };
        let pairs = Pairs { size: size(&tokenizer), tokenizer, plain: Encoder::of(json), pad, unknown };
        pairs.encode(UNSEEN).map_err(|error| {
            data_error(format!("this tokenizer.json cannot encode what it has not seen: {}", error.message()))
        })?;
        Ok(pairs)
    }
}

/// One more than the largest id; ids may have gaps.
fn size(tokenizer: &Tokenizer) -> usize {
    tokenizer.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1)
}

impl Scheme for Pairs {
    fn kind(&self) -> TokenizerKind {
        TokenizerKind::Bpe
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        if let Some(plain) = &self.plain {
            return Ok(plain.encode(text));
        }
        match self.tokenizer.encode_fast(text, false) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(error) => Err(data_error(format!("the text cannot be encoded: {error}"))),
        }
    }

    fn size(&self) -> usize {
        self.size
    }

    fn token(&self, id: u32) -> Option<String> {
        self.tokenizer.id_to_token(id)
    }

    fn id(&self, token: &str) -> Option<u32> {
        self.tokenizer.token_to_id(token)
    }

    fn pad(&self) -> Option<u32> {
        self.pad
    }

    fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    fn content(&self) -> (&'static str, Value) {
        // A tokenizer is plain data: writing it to a value cannot fail.
        ("tokenizer", serde_json::to_value(&self.tokenizer).expect("a tokenizer is plain data"))
    }

    fn decoder(&self) -> Box<dyn Decoder + '_> {
        Box::new(PairDecoder { pairs: self, ids: Vec::new(), shown: String::new() })
    }
}

/// Decodes the latest tokens again with each new one: what a token looks like may depend on those before it.
struct PairDecoder<'a> {
    pairs: &'a Pairs,
    /// The tokens of the last text shown, then those that wait.
    ids: Vec<u32>,
    /// The text of the former.
    shown: String,
}

impl PairDecoder<'_> {
    fn text(&self) -> String {
        self.pairs
            .tokenizer
            .decode(&self.ids, false)
            .unwrap_or_else(|error| panic!("the tokenizer cannot decode {:?}: {error}", self.ids))
    }

    /// What `text` says beyond what was shown.
    fn news(&self, text: &str) -> String {
        text.strip_prefix(&self.shown).unwrap_or_default().to_string()
    }
}

impl Decoder for PairDecoder<'_> {
    fn push(&mut self, id: u32) -> String {
        if self.pairs.pad == Some(id) {
            return String::new();
        }
        self.ids.push(id);
        let text = self.text();
        let news = self.news(&text);
        // A replacement character at the end may be half of a character.
        if news.is_empty() || news.ends_with(char::REPLACEMENT_CHARACTER) {
            return String::new();
        }
        // The next token needs the last one shown, and no more, as its context.
        self.ids.drain(..self.ids.len() - 1);
        self.shown = self.text();
        news
    }

    fn finish(&mut self) -> String {
        let news = self.news(&self.text());
        self.ids.clear();
        self.shown.clear();
        news
    }
}

#[cfg(test)]
mod tests;
