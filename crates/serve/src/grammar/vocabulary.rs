//! The tokens of a tokenizer as bytes, in the order of these: which may come next is found in one walk.

use super::Matcher;
use volta::text::Tokenizer;

/// All tokens that add bytes to a text.
pub struct Vocabulary {
    /// In the order of their bytes: a token, where its bytes begin and end, and how many it shares with the one before.
    rows: Vec<Row>,
    bytes: Vec<u8>,
}

struct Row {
    token: u32,
    from: u32,
    to: u32,
    shared: u32,
}

impl Vocabulary {
    pub fn new(tokenizer: &Tokenizer) -> Vocabulary {
        let tokens = (0..tokenizer.vocabulary_size() as u32)
            .filter_map(|token| Some((tokenizer.token_bytes(token)?, token)));
        Vocabulary::of(tokens.filter(|(bytes, _)| !bytes.is_empty()).collect())
    }

    fn of(mut tokens: Vec<(Vec<u8>, u32)>) -> Vocabulary {
        tokens.sort();
        let (mut rows, mut bytes, mut last) = (Vec::with_capacity(tokens.len()), Vec::new(), Vec::new());
        for (own, token) in tokens {
            let shared = own.iter().zip(&last).take_while(|(a, b): &(&u8, &u8)| a == b).count() as u32;
            let from = bytes.len() as u32;
            bytes.extend(&own);
            rows.push(Row { token, from, to: bytes.len() as u32, shared });
            last = own;
        }
        Vocabulary { rows, bytes }
    }

    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Calls `found` with every token that may come next.
    pub fn allowed(&self, matcher: &mut Matcher, mut found: impl FnMut(u32)) {
        // Where each beginning of the last token leads, as far as it may come.
        let mut path = vec![matcher.now()];
        for row in &self.rows {
            let shared = row.shared as usize;
            if path.len() <= shared {
                continue;
            }
            path.truncate(shared + 1);
            let own = &self.bytes[row.from as usize..row.to as usize];
            for &byte in &own[shared..] {
                match matcher.step(path[path.len() - 1], byte) {
                    Some(next) => path.push(next),
                    None => break,
                }
            }
            if path.len() == own.len() + 1 {
                found(row.token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::any_object;
    use super::{Matcher, Vocabulary};

    #[test]
    fn the_tokens_that_may_come_are_those_that_can_be_pushed() {
        let words = [
            "{",
            "{\"",
            "{\"a\": 1",
            "{\"a\":1}x",
            "{}",
            "{}{",
            "}",
            "\"",
            "\"b\"",
            " {",
            ",",
            ":",
            "é",
            "1",
            "\\",
            "\\u",
        ];
        let tokens: Vec<(Vec<u8>, u32)> =
            words.iter().zip(0..).map(|(w, k)| (w.as_bytes().to_vec(), k)).collect();
        let vocabulary = Vocabulary::of(tokens);
        for begun in ["", "{", "{\"", "{\"é", "{\"a\":1", "{\"a\":[1", "{\"a\":\"", "{}"] {
            let mut matcher = Matcher::new(any_object().into());
            assert!(matcher.push(begun.as_bytes()), "{begun}");
            let mut found = Vec::new();
            vocabulary.allowed(&mut matcher, |token| found.push(token));
            found.sort_unstable();
            let expected: Vec<u32> = (0..words.len() as u32)
                .filter(|&k| {
                    let mut other = Matcher::new(any_object().into());
                    other.push(begun.as_bytes()) && other.push(words[k as usize].as_bytes())
                })
                .collect();
            assert_eq!(found, expected, "{begun}");
        }
    }
}
