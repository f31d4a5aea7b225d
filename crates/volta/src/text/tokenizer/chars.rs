//! Characters, with `<unk>` for those that training did not see.

use super::{Decoder, Scheme, TokenizerKind, data_error};
use crate::error::Result;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::HashMap;

const UNKNOWN: u32 = 0;
const UNKNOWN_NAME: &str = "<unk>";

pub(super) struct Chars {
    /// In the order of their code points; the first has the id 1.
    chars: Vec<char>,
    ids: HashMap<char, u32>,
}

impl Chars {
    /// The characters of a text; with a limit, the most frequent of them.
    pub fn train(text: &str, limit: Option<usize>) -> Chars {
        let mut counts: HashMap<char, usize> = HashMap::new();
        for c in text.chars() {
            *counts.entry(c).or_default() += 1;
        }
        let mut found: Vec<_> = counts.into_iter().collect();
        found.sort_unstable_by_key(|&(c, count)| (Reverse(count), c));
        found.truncate(limit.map_or(usize::MAX, |limit| limit - 1));
        let mut chars: Vec<char> = found.into_iter().map(|(c, _)| c).collect();
        chars.sort_unstable();
        Chars::new(chars)
    }

    fn new(chars: Vec<char>) -> Chars {
        let ids = chars.iter().zip(1..).map(|(&c, id)| (c, id)).collect();
        Chars { chars, ids }
    }

    pub fn read(content: &Value) -> Result<Chars> {
        let text = content.as_str().ok_or_else(|| data_error("\"characters\" must be a string"))?;
        let chars: Vec<char> = text.chars().collect();
        if !chars.is_sorted_by(|a, b| a < b) {
            return Err(data_error("\"characters\" must be in order, each once"));
        }
        Ok(Chars::new(chars))
    }

    fn char(&self, id: u32) -> Option<char> {
        self.chars.get((id as usize).checked_sub(1)?).copied()
    }
}

impl Scheme for Chars {
    fn kind(&self) -> TokenizerKind {
        TokenizerKind::Chars
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(text.chars().map(|c| self.ids.get(&c).copied().unwrap_or(UNKNOWN)).collect())
    }

    fn size(&self) -> usize {
        self.chars.len() + 1
    }

    fn token(&self, id: u32) -> Option<String> {
        if id == UNKNOWN { Some(UNKNOWN_NAME.into()) } else { self.char(id).map(String::from) }
    }

    fn id(&self, token: &str) -> Option<u32> {
        let mut chars = token.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => self.ids.get(&c).copied(),
            _ => (token == UNKNOWN_NAME).then_some(UNKNOWN),
        }
    }

    fn pad(&self) -> Option<u32> {
        None
    }

    fn unknown(&self) -> Option<u32> {
        Some(UNKNOWN)
    }

    fn content(&self) -> (&'static str, Value) {
        ("characters", self.chars.iter().collect::<String>().into())
    }

    fn decoder(&self) -> Box<dyn Decoder + '_> {
        Box::new(CharDecoder(self))
    }
}

struct CharDecoder<'a>(&'a Chars);

impl Decoder for CharDecoder<'_> {
    fn push(&mut self, id: u32) -> String {
        let unknown = (id == UNKNOWN).then_some(char::REPLACEMENT_CHARACTER);
        unknown.or(self.0.char(id)).map_or_else(String::new, String::from)
    }

    fn finish(&mut self) -> String {
        String::new()
    }
}
