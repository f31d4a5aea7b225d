//! Byte-pair encodings in GPT-2's manner, trained here or read from a `tokenizer.json`.
//!
//! `train` finds the pairs of a text, and `encode` applies them, in a time and a memory that grow with the text; `pieces` cuts text for
//! both, with what `letters` takes for one. What a `tokenizer.json` may ask for besides is `foreign`.

mod encode;
#[cfg(feature = "tokenizers")]
mod foreign;
mod letters;
mod pieces;
mod train;

use super::bytes::ByteDecoder;
use super::json::byte_level;
use super::{Decoder, Scheme, TokenizerKind, data_error};
use crate::error::Result;
use encode::Encoder;
#[cfg(feature = "tokenizers")]
use foreign::Foreign;
use pieces::byte_of;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use train::{Ended, Vocabulary};

/// How many tokens there are if nobody says.
const DEFAULT_SIZE: usize = 4096;
/// Pairs that occur less often are not worth a token.
const LEAST_FREQUENCY: u64 = 2;
/// What a token that fills up short sequences may be called.
const PADS: [&str; 3] = ["<pad>", "[PAD]", "<|pad|>"];

pub(super) struct Pairs {
    encoder: Encoder,
    /// Tokens that stand for a text of their own wherever that occurs.
    special: Vec<(String, u32)>,
    /// In GPT-2's spelling of bytes.
    tokens: HashMap<u32, String>,
    ids: HashMap<String, u32>,
    /// One more than the largest id; there may be gaps.
    size: usize,
    pad: Option<u32>,
    json: Value,
}

/// Pairs over all 256 bytes, so that nothing is unknown and nothing is lost. `watch` hears how many tokens there are
/// and how many there may be; nothing if it breaks off.
pub(super) fn train(
    text: &str,
    limit: Option<usize>,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Option<Arc<dyn Scheme>>> {
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
    read(&byte_level(vocabulary.into(), json!(merges))).map(Some)
}

/// What a `tokenizer.json` describes.
pub(super) fn read(json: &Value) -> Result<Arc<dyn Scheme>> {
    if let Some(pairs) = Pairs::of(json) {
        return Ok(Arc::new(pairs));
    }
    #[cfg(feature = "tokenizers")]
    return Ok(Arc::new(Foreign::read(json)?));
    #[cfg(not(feature = "tokenizers"))]
    match Pairs::with_special_tokens(json) {
        Some(pairs) => Ok(Arc::new(pairs)),
        None => Err(data_error(
            "this tokenizer.json asks for more than byte pairs in GPT-2's manner; for that, build Volta with the cargo feature \
             `tokenizers`",
        )),
    }
}

impl Pairs {
    /// Of a `tokenizer.json` that says nothing but what training here writes.
    fn of(json: &Value) -> Option<Pairs> {
        let (encoder, merges) = (Encoder::of(json)?, json["model"]["merges"].as_array()?);
        let pairs = merges.iter().map(|merge| match merge {
            Value::String(pair) => pair.split_once(' ').map(|(a, b)| json!([a, b])),
            pair => Some(pair.clone()),
        });
        let own = byte_level(json["model"]["vocab"].clone(), pairs.collect::<Option<Value>>()?);
        let is_same = |part: &str| own[part] == json[part];
        let is_own = ["pre_tokenizer", "decoder"].iter().all(|part| is_same(part));
        if is_own { Pairs::new(encoder, Vec::new(), own) } else { None }
    }

    /// Of GPT-2's own `tokenizer.json`, and others that only add special tokens.
    #[cfg(any(test, not(feature = "tokenizers")))]
    fn with_special_tokens(json: &Value) -> Option<Pairs> {
        let is_plain = json["normalizer"].is_null()
            && json["decoder"]["type"] == "ByteLevel"
            && (json["post_processor"].is_null() || json["post_processor"]["type"] == "ByteLevel");
        let added = json["added_tokens"].as_array().map_or(&[][..], Vec::as_slice);
        let special = added.iter().map(|token| {
            let is_literal = ["lstrip", "rstrip", "single_word"].iter().all(|rule| token[rule] != true);
            let id = u32::try_from(token["id"].as_u64()?).ok()?;
            let content = token["content"].as_str().filter(|content| is_literal && !content.is_empty())?;
            Some((content.to_string(), id))
        });
        let special = special.collect::<Option<Vec<_>>>().filter(|_| is_plain)?;
        Pairs::new(Encoder::of_pairs(json)?, special, json.clone())
    }

    fn new(encoder: Encoder, special: Vec<(String, u32)>, json: Value) -> Option<Pairs> {
        let mut ids = HashMap::new();
        for (token, id) in json["model"]["vocab"].as_object()? {
            ids.insert(token.clone(), u32::try_from(id.as_u64()?).ok()?);
        }
        ids.extend(special.iter().cloned());
        let tokens: HashMap<u32, String> = ids.iter().map(|(token, &id)| (id, token.clone())).collect();
        let size = tokens.keys().max().map_or(0, |&id| id as usize + 1);
        let pad = PADS.iter().find_map(|pad| ids.get(*pad).copied());
        Some(Pairs { encoder, special, tokens, ids, size, pad, json })
    }

    /// The special token that comes next in a text, and where.
    fn next_special(&self, text: &str) -> Option<(usize, &str, u32)> {
        let found =
            self.special.iter().filter_map(|(token, id)| Some((text.find(token)?, token.as_str(), *id)));
        found.min_by_key(|&(place, token, _)| (place, std::cmp::Reverse(token.len())))
    }
}

impl Scheme for Pairs {
    fn kind(&self) -> TokenizerKind {
        TokenizerKind::Bpe
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let (mut tokens, mut left) = (Vec::new(), text);
        while let Some((place, token, id)) = self.next_special(left) {
            tokens.extend(self.encoder.encode(&left[..place]));
            tokens.push(id);
            left = &left[place + token.len()..];
        }
        tokens.extend(self.encoder.encode(left));
        Ok(tokens)
    }

    fn size(&self) -> usize {
        self.size
    }

    fn token(&self, id: u32) -> Option<String> {
        self.tokens.get(&id).cloned()
    }

    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let token = self.tokens.get(&id).filter(|_| self.pad() != Some(id))?;
        let is_special = self.special.iter().any(|(_, special)| *special == id);
        if is_special { None } else { spelled_bytes(token) }
    }

    fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }

    fn pad(&self) -> Option<u32> {
        self.pad
    }

    fn unknown(&self) -> Option<u32> {
        None
    }

    fn content(&self) -> (&'static str, Value) {
        ("tokenizer", self.json.clone())
    }

    fn decoder(&self) -> Box<dyn Decoder + '_> {
        Box::new(PairDecoder { pairs: self, bytes: ByteDecoder::default() })
    }
}

/// The bytes that a token spells in GPT-2's manner.
fn spelled_bytes(token: &str) -> Option<Vec<u8>> {
    token.chars().map(byte_of).collect()
}

/// Characters from the bytes of tokens.
struct PairDecoder<'a> {
    pairs: &'a Pairs,
    bytes: ByteDecoder,
}

impl Decoder for PairDecoder<'_> {
    fn push(&mut self, id: u32) -> String {
        let token = self.pairs.tokens.get(&id);
        let Some(token) = token.filter(|_| self.pairs.pad != Some(id)) else { return String::new() };
        // What is no spelling of bytes stands for itself.
        match spelled_bytes(token) {
            Some(bytes) => self.bytes.push_bytes(&bytes),
            None => self.bytes.push_bytes(token.as_bytes()),
        }
    }

    fn finish(&mut self) -> String {
        self.bytes.finish()
    }
}

#[cfg(all(test, feature = "tokenizers"))]
mod tests;
