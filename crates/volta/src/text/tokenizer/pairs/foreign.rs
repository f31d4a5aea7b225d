//! Whatever else a `tokenizer.json` describes: the `tokenizers` crate runs it.

use super::{Encoder, spelled_bytes};
use crate::error::Result;
use crate::text::tokenizer::{Decoder, Scheme, TokenizerKind, data_error};
use serde_json::Value;
use tokenizers::tokenizer::Tokenizer;

/// Unicode's last code point, which no vocabulary has.
const UNSEEN: &str = "\u{10FFFF}";

pub(in crate::text::tokenizer) struct Foreign {
    tokenizer: Tokenizer,
    /// Encodes in its place where it can.
    plain: Option<Encoder>,
    size: usize,
    pad: Option<u32>,
    unknown: Option<u32>,
    spelling: Spelling,
}

/// How tokens spell bytes.
#[derive(Clone, Copy)]
enum Spelling {
    /// A letter a byte, as GPT-2 does.
    Letters,
    /// `▁` for a space, and `<0x41>` for what no token has.
    SentencePiece,
    /// In a way that depends on what is around them.
    Other,
}

impl Spelling {
    fn of(json: &Value) -> Spelling {
        let decoder = &json["decoder"];
        let steps: Vec<&str> = match decoder["decoders"].as_array() {
            Some(steps) => steps.iter().filter_map(|step| step["type"].as_str()).collect(),
            None => decoder["type"].as_str().into_iter().collect(),
        };
        match steps[..] {
            ["ByteLevel"] => Spelling::Letters,
            ["Replace", "ByteFallback", "Fuse"] | ["Replace", "ByteFallback", "Fuse", "Strip"] => {
                Spelling::SentencePiece
            }
            _ => Spelling::Other,
        }
    }

    fn bytes(self, token: &str) -> Option<Vec<u8>> {
        match self {
            Spelling::Letters => spelled_bytes(token),
            Spelling::SentencePiece => {
                let byte = token.strip_prefix("<0x").and_then(|token| token.strip_suffix('>'));
                match byte.filter(|digits| digits.len() == 2).map(|digits| u8::from_str_radix(digits, 16)) {
                    Some(Ok(byte)) => Some(vec![byte]),
                    _ => Some(token.replace('▁', " ").into_bytes()),
                }
            }
            Spelling::Other => None,
        }
    }
}

impl Foreign {
    pub fn read(json: &Value) -> Result<Foreign> {
        let mut tokenizer = Tokenizer::from_bytes(json.to_string())
            .map_err(|error| data_error(format!("this tokenizer.json cannot be used: {error}")))?;
        let pad = tokenizer.get_padding().map(|padding| padding.pad_id);
        // Sequences are cut and filled up elsewhere.
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|error| data_error(format!("this tokenizer.json cannot be used: {error}")))?;
        let pad = pad.or_else(|| super::PADS.iter().find_map(|t| tokenizer.token_to_id(t)));
        let model = &json["model"];
        let unknown = match model["unk_id"].as_u64() {
            Some(id) => u32::try_from(id).ok(),
            None => model["unk_token"].as_str().and_then(|token| tokenizer.token_to_id(token)),
        };
        let (size, plain, spelling) = (size(&tokenizer), Encoder::of(json), Spelling::of(json));
        let pairs = Foreign { tokenizer, plain, size, pad, unknown, spelling };
        pairs.encode(UNSEEN).map_err(|error| {
            data_error(format!("this tokenizer.json cannot encode what it has not seen: {}", error.message()))
        })?;
        Ok(pairs)
    }
}

impl Foreign {
    fn ids(&self, text: &str, with_special_tokens: bool) -> Result<Vec<u32>> {
        match self.tokenizer.encode_fast(text, with_special_tokens) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(error) => Err(data_error(format!("the text cannot be encoded: {error}"))),
        }
    }
}

/// One more than the largest id; ids may have gaps.
fn size(tokenizer: &Tokenizer) -> usize {
    tokenizer.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1)
}

impl Scheme for Foreign {
    fn kind(&self) -> TokenizerKind {
        TokenizerKind::Bpe
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        if let Some(plain) = &self.plain {
            return Ok(plain.encode(text));
        }
        self.ids(text, false)
    }

    fn encode_with_special_tokens(&self, text: &str) -> Result<Vec<u32>> {
        if self.plain.is_some() { self.encode(text) } else { self.ids(text, true) }
    }

    fn size(&self) -> usize {
        self.size
    }

    fn token(&self, id: u32) -> Option<String> {
        self.tokenizer.id_to_token(id)
    }

    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let is_added = self.tokenizer.get_added_tokens_decoder().contains_key(&id);
        if is_added || self.pad == Some(id) {
            return None;
        }
        self.spelling.bytes(&self.tokenizer.id_to_token(id)?)
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
        Box::new(ForeignDecoder { pairs: self, ids: Vec::new(), known: 0, shown: String::new() })
    }
}

/// Decodes the latest tokens again with each new one: what a token looks like may depend on those before it.
struct ForeignDecoder<'a> {
    pairs: &'a Foreign,
    /// The tokens of the last text shown, then those that wait.
    ids: Vec<u32>,
    /// How many the former are: what they begin with is whole, while a single byte of a character would be none by itself.
    known: usize,
    /// The text of the former.
    shown: String,
}

impl ForeignDecoder<'_> {
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

impl Decoder for ForeignDecoder<'_> {
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
        // The next token needs those of this text, and no more, as its context.
        self.ids.drain(..self.known);
        self.known = self.ids.len();
        self.shown = self.text();
        news
    }

    fn finish(&mut self) -> String {
        let news = self.news(&self.text());
        self.ids.clear();
        self.known = 0;
        self.shown.clear();
        news
    }
}
