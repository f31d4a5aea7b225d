//! Words with `<pad>` and `<unk>`.

use super::join::Joiner;
use super::split::pieces;
use super::{Decoder, Scheme, TokenizerKind, data_error};
use crate::error::Result;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::HashMap;

const PAD: u32 = 0;
const UNKNOWN: u32 = 1;
/// What stands before the words.
const RESERVED: [&str; 2] = ["<pad>", "<unk>"];

pub(super) struct Words {
    tokens: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Words {
    /// The words of a text, the most frequent first; those as frequent in the order of their appearance.
    pub fn train(text: &str, limit: Option<usize>) -> Words {
        let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
        for (place, word) in pieces(text).enumerate().filter(|(_, word)| !RESERVED.contains(word)) {
            counts.entry(word).or_insert((0, place)).0 += 1;
        }
        let mut words: Vec<_> = counts.into_iter().collect();
        words.sort_unstable_by_key(|&(_, (count, place))| (Reverse(count), place));
        words.truncate(limit.map_or(usize::MAX, |limit| limit - RESERVED.len()));
        Words::new(
            RESERVED.into_iter().chain(words.into_iter().map(|(word, _)| word)).map(String::from).collect(),
        )
    }

    fn new(tokens: Vec<String>) -> Words {
        let ids = tokens.iter().enumerate().map(|(id, token)| (token.clone(), id as u32)).collect();
        Words { tokens, ids }
    }

    pub fn read(content: &Value) -> Result<Words> {
        let strings = |list: &Vec<Value>| list.iter().map(|v| v.as_str().map(String::from)).collect();
        let tokens: Option<Vec<String>> = content.as_array().and_then(strings);
        let tokens = tokens.ok_or_else(|| data_error("\"tokens\" must be a list of strings"))?;
        if !tokens.iter().map(String::as_str).take(2).eq(RESERVED) {
            return Err(data_error("\"tokens\" must begin with \"<pad>\" and \"<unk>\""));
        }
        let words = Words::new(tokens);
        match words.tokens.iter().enumerate().find(|&(id, token)| words.ids[token] != id as u32) {
            Some((_, twice)) => Err(data_error(format!("the token {twice:?} is there twice"))),
            None => Ok(words),
        }
    }
}

impl Scheme for Words {
    fn kind(&self) -> TokenizerKind {
        TokenizerKind::Words
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(pieces(text).map(|word| self.id(word).unwrap_or(UNKNOWN)).collect())
    }

    fn size(&self) -> usize {
        self.tokens.len()
    }

    fn token(&self, id: u32) -> Option<String> {
        self.tokens.get(id as usize).cloned()
    }

    fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }

    fn pad(&self) -> Option<u32> {
        Some(PAD)
    }

    fn unknown(&self) -> Option<u32> {
        Some(UNKNOWN)
    }

    fn content(&self) -> (&'static str, Value) {
        ("tokens", self.tokens.clone().into())
    }

    fn decoder(&self) -> Box<dyn Decoder + '_> {
        Box::new(WordDecoder { tokens: &self.tokens, joiner: Joiner::new() })
    }
}

struct WordDecoder<'a> {
    tokens: &'a [String],
    joiner: Joiner,
}

impl Decoder for WordDecoder<'_> {
    fn push(&mut self, id: u32) -> String {
        match self.tokens.get(id as usize) {
            Some(token) if id != PAD => self.joiner.push(token),
            _ => String::new(),
        }
    }

    fn finish(&mut self) -> String {
        String::new()
    }
}
