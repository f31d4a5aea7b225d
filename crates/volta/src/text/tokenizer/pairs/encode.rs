//! Encoding with byte pairs that are merged inside of GPT-2's pieces and nothing else: what training here makes. Text takes
//! little more memory than its tokens, also where it is a single piece without spaces.

use super::pieces::{char_of, pieces};
use super::train::Pair;
use serde_json::Value;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// No token.
const NONE: u32 = u32::MAX;
/// Longer pieces hardly ever come again.
const MAX_REMEMBERED_BYTES: usize = 64;
/// In longer pieces the next merge is not looked for.
const MAX_SCANNED_TOKENS: usize = 48;

fn is_none(value: &Value) -> bool {
    value.is_null() || value == "" || value == false || value == 0.0
}

/// The merges of a vocabulary.
pub(super) struct Encoder {
    byte_ids: [u32; 256],
    /// The rank of a merge, and the token that it makes.
    merges: HashMap<Pair, (u32, u32)>,
    /// Whether each pair is there once, and what is merged again was made before, as training writes them.
    is_ordered: bool,
}

impl Encoder {
    /// Of a `tokenizer.json` that asks for nothing else.
    pub fn of(json: &Value) -> Option<Encoder> {
        let is_plain = ["normalizer", "post_processor"].iter().all(|name| is_none(&json[name]))
            && json["added_tokens"].as_array().is_none_or(Vec::is_empty);
        if is_plain { Encoder::of_pairs(json).filter(|encoder| encoder.is_ordered) } else { None }
    }

    /// Of the pairs of a `tokenizer.json` that cuts text as GPT-2 does.
    pub fn of_pairs(json: &Value) -> Option<Encoder> {
        let (model, before) = (&json["model"], &json["pre_tokenizer"]);
        let is_plain = before["type"] == "ByteLevel"
            && before["add_prefix_space"] == false
            && before["use_regex"] != false
            && (model["type"] == "BPE" || model["type"].is_null())
            && [
                "dropout",
                "continuing_subword_prefix",
                "end_of_word_suffix",
                "ignore_merges",
                "byte_fallback",
            ]
            .iter()
            .all(|name| is_none(&model[name]));
        if !is_plain {
            return None;
        }
        let vocabulary = model["vocab"].as_object()?;
        let id = |token: &str| u32::try_from(vocabulary.get(token)?.as_u64()?).ok().filter(|&id| id != NONE);
        let mut byte_ids = [0; 256];
        for byte in 0..=255u8 {
            byte_ids[usize::from(byte)] = id(char_of(byte).encode_utf8(&mut [0; 4]))?;
        }
        let mut merges = HashMap::new();
        let mut used: HashSet<u32> = HashSet::new();
        let mut is_ordered = true;
        for (merge, rank) in model["merges"].as_array()?.iter().zip(0..) {
            let (a, b) = match merge {
                Value::String(pair) => pair.split_once(' ')?,
                pair => (pair[0].as_str()?, pair[1].as_str()?),
            };
            let (pair, made) = ((id(a)?, id(b)?), id(&format!("{a}{b}"))?);
            used.extend([pair.0, pair.1]);
            is_ordered &= !used.contains(&made);
            match merges.entry(pair) {
                Entry::Vacant(place) => drop(place.insert((rank, made))),
                Entry::Occupied(_) => is_ordered = false,
            }
        }
        Some(Encoder { byte_ids, merges, is_ordered })
    }

    /// The tokens of a text.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut tokens: Vec<u32> = Vec::new();
        // Where the tokens of a piece stand already.
        let mut known: HashMap<&str, Range<usize>> = HashMap::new();
        for piece in pieces(text) {
            if let Some(place) = known.get(piece) {
                tokens.extend_from_within(place.clone());
                continue;
            }
            let start = tokens.len();
            tokens.extend(piece.bytes().map(|byte| self.byte_ids[usize::from(byte)]));
            let length = if tokens.len() - start <= MAX_SCANNED_TOKENS || !self.is_ordered {
                self.merge_short(&mut tokens[start..])
            } else {
                self.merge_long(&mut tokens[start..])
            };
            tokens.truncate(start + length);
            if piece.len() <= MAX_REMEMBERED_BYTES {
                known.insert(piece, start..tokens.len());
            }
        }
        tokens
    }

    /// Merges the pair of the lowest rank, and of those the first, until there is none. Gives how many tokens are left,
    /// at the beginning.
    fn merge_short(&self, tokens: &mut [u32]) -> usize {
        let mut length = tokens.len();
        loop {
            let merge = |k: usize| Some((self.merges.get(&(tokens[k], tokens[k + 1]))?, k));
            let Some((&(_, id), k)) = (0..length.saturating_sub(1)).filter_map(merge).min() else {
                return length;
            };
            tokens[k] = id;
            tokens.copy_within(k + 2..length, k + 1);
            length -= 1;
        }
    }

    /// The same with the places of each merge in a list, and tokens as a linked list.
    fn merge_long(&self, tokens: &mut [u32]) -> usize {
        let count = tokens.len() as u32;
        let mut next: Vec<u32> = (1..count).chain([NONE]).collect();
        let mut previous: Vec<u32> = std::iter::once(NONE).chain(0..count - 1).collect();
        // The rank of the merge of two tokens, and what it makes.
        let merge = |tokens: &[u32], a: u32, b: u32| {
            self.merges.get(&(tokens[a as usize], tokens[b as usize])).copied()
        };
        let mut queue: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for place in 0..count - 1 {
            if let Some((rank, _)) = merge(tokens, place, place + 1) {
                queue.entry(rank).or_default().push(place);
            }
        }
        // What a merge makes is only merged again by later ones.
        while let Some((rank, mut places)) = queue.pop_first() {
            places.sort_unstable();
            for place in places {
                let k = place as usize;
                let after = next[k];
                if tokens[k] == NONE || after == NONE {
                    continue;
                }
                // Meanwhile one of the two may have become a part of another token.
                let Some((_, id)) = merge(tokens, place, after).filter(|&(now, _)| now == rank) else {
                    continue;
                };
                tokens[k] = id;
                tokens[after as usize] = NONE;
                next[k] = next[after as usize];
                if next[k] != NONE {
                    previous[next[k] as usize] = place;
                    if let Some((rank, _)) = merge(tokens, place, next[k]) {
                        queue.entry(rank).or_default().push(place);
                    }
                }
                if previous[k] != NONE
                    && let Some((rank, _)) = merge(tokens, previous[k], place)
                {
                    queue.entry(rank).or_default().push(previous[k]);
                }
            }
        }
        let mut length = 0;
        for k in 0..tokens.len() {
            if tokens[k] != NONE {
                tokens[length] = tokens[k];
                length += 1;
            }
        }
        length
    }
}
