//! The vocabulary of a GGUF file as the `tokenizer.json` that says the same.

use super::{Tokenizer, data_error, pairs};
use crate::call::Call;
use crate::error::Result;
use crate::io::{GgufTokenKind, GgufVocabulary};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// A way to cut text before byte pairs are merged.
struct Cut {
    /// llama.cpp's names for it.
    names: &'static [&'static str],
    /// Pieces; those of GPT-2 unless given.
    pattern: Option<&'static str>,
    /// Whether every digit is a piece, before GPT-2's pieces are looked for.
    digits: bool,
    /// Whether characters are composed first.
    composed: bool,
    /// Whether a piece that is a token is not merged step by step.
    whole: bool,
    /// Whether texts get a token in front, where the file does not say.
    begins: bool,
}

const GPT_2: Cut =
    Cut { names: &["gpt-2"], pattern: None, digits: false, composed: false, whole: false, begins: false };

const CUTS: [Cut; 5] = [
    GPT_2,
    Cut { names: &["smollm", "starcoder", "refact", "command-r"], digits: true, ..GPT_2 },
    Cut {
        names: &["llama-bpe", "llama3", "llama-v3"],
        pattern: Some(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
        whole: true,
        begins: true,
        ..GPT_2
    },
    Cut {
        names: &["qwen2", "deepseek-r1-qwen"],
        pattern: Some(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
        composed: true,
        ..GPT_2
    },
    Cut {
        names: &["tekken"],
        pattern: Some(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
        whole: true,
        begins: true,
        ..GPT_2
    },
];

/// What SentencePiece writes for a space.
const SPACE: &str = "▁";

impl Tokenizer {
    /// The tokenizer of a GGUF file: byte pairs (`gpt2`) or SentencePiece's pieces (`llama`).
    ///
    /// # Errors
    /// An algorithm, or a way to cut text, that is not known; the message names the key.
    #[track_caller]
    pub fn from_gguf(vocabulary: &GgufVocabulary<'_>) -> Result<Tokenizer> {
        let _call = Call::enter("Tokenizer::from_gguf");
        let json = match vocabulary.model {
            "gpt2" => byte_pairs(vocabulary)?,
            "llama" => sentence_piece(vocabulary)?,
            other => {
                return Err(data_error(format!(
                    "tokenizer.ggml.model is {other:?}: Volta knows gpt2 and llama"
                )));
            }
        };
        pairs::read(&json).map(Tokenizer)
    }
}

fn byte_pairs(v: &GgufVocabulary<'_>) -> Result<Value> {
    let cut = match v.pre {
        Some(pre) => CUTS.iter().find(|cut| cut.names.contains(&pre)),
        None => None,
    };
    let Some(cut) = cut else {
        let known: Vec<&str> = CUTS.iter().flat_map(|cut| cut.names).copied().collect();
        return Err(data_error(format!(
            "tokenizer.ggml.pre is {:?}: Volta knows {}",
            v.pre.unwrap_or("missing"),
            known.join(", ")
        )));
    };
    let byte_level = |regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex});
    let mut steps = Vec::new();
    if cut.digits {
        steps.push(json!({"type": "Digits", "individual_digits": true}));
    }
    if let Some(pattern) = cut.pattern {
        let pattern = json!({"Regex": pattern});
        steps.push(json!({"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": false}));
    }
    steps.push(byte_level(cut.pattern.is_none()));
    let merges = v.merges.iter().map(|merge| match merge.split_once(' ') {
        Some((a, b)) => Ok(json!([a, b])),
        None => Err(data_error(format!("tokenizer.ggml.merges has {merge:?}, which is no pair"))),
    });
    let model = json!({
        "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": cut.whole,
        "vocab": ids(v)?, "merges": merges.collect::<Result<Vec<Value>>>()?,
    });
    let normalizer = if cut.composed { json!({"type": "NFC"}) } else { Value::Null };
    Ok(tokenizer(
        v,
        normalizer,
        json!({"type": "Sequence", "pretokenizers": steps}),
        byte_level(true),
        model,
        v.add_bos.unwrap_or(cut.begins),
    ))
}

fn sentence_piece(v: &GgufVocabulary<'_>) -> Result<Value> {
    let Some(scores) = v.scores else {
        return Err(data_error("tokenizer.ggml.scores is missing, and SentencePiece merges by them"));
    };
    let prefix = v.add_space_prefix.unwrap_or(true);
    let replace =
        |from: &str, to: &str| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
    let mut before = vec![replace(" ", SPACE)];
    let mut after = vec![replace(SPACE, " "), json!({"type": "ByteFallback"}), json!({"type": "Fuse"})];
    if prefix {
        before.insert(0, json!({"type": "Prepend", "prepend": SPACE}));
        after.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    let first_unknown = || v.kinds.iter().position(|kind| *kind == GgufTokenKind::Unknown);
    let unknown = v.unknown.map(|id| id as usize).or_else(first_unknown).and_then(|id| v.tokens.get(id));
    let model = json!({
        "type": "BPE", "dropout": null, "unk_token": unknown, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
        "vocab": ids(v)?, "merges": merges(v, scores),
    });
    Ok(tokenizer(
        v,
        json!({"type": "Sequence", "normalizers": before}),
        Value::Null,
        json!({"type": "Sequence", "decoders": after}),
        model,
        v.add_bos.unwrap_or(true),
    ))
}

/// Every way to make a piece of two, the piece with the best score first: SentencePiece merges whatever makes it.
fn merges(v: &GgufVocabulary<'_>, scores: &[f32]) -> Vec<Value> {
    use GgufTokenKind::{Normal, Unused, UserDefined};
    let pieces: HashMap<&str, usize> = v
        .tokens
        .iter()
        .enumerate()
        .filter(|(k, _)| matches!(v.kinds[*k], Normal | UserDefined | Unused))
        .map(|(k, token)| (token.as_str(), k))
        .collect();
    let mut found: Vec<(usize, usize, usize)> = Vec::new();
    for (&piece, &made) in &pieces {
        for (cut, _) in piece.char_indices().skip(1) {
            let (a, b) = piece.split_at(cut);
            if let (Some(&a), Some(&b)) = (pieces.get(a), pieces.get(b)) {
                found.push((made, a, b));
            }
        }
    }
    found.sort_unstable_by(|x, y| {
        scores[y.0].total_cmp(&scores[x.0]).then_with(|| (x.0, x.1, x.2).cmp(&(y.0, y.1, y.2)))
    });
    found.into_iter().map(|(_, a, b)| json!([v.tokens[a], v.tokens[b]])).collect()
}

/// Tokens with their numbers. Of tokens that are written alike the first counts.
fn ids(v: &GgufVocabulary<'_>) -> Result<Value> {
    let mut ids = Map::new();
    for (token, id) in v.tokens.iter().zip(0u32..) {
        if token.is_empty() {
            continue;
        }
        ids.entry(token.clone()).or_insert_with(|| id.into());
    }
    if ids.is_empty() {
        return Err(data_error("tokenizer.ggml.tokens has no token"));
    }
    Ok(Value::Object(ids))
}

fn tokenizer(
    v: &GgufVocabulary<'_>,
    normalizer: Value,
    pre_tokenizer: Value,
    decoder: Value,
    model: Value,
    begins: bool,
) -> Value {
    use GgufTokenKind::{Control, Unknown, UserDefined};
    let added: Vec<Value> = (0..v.tokens.len())
        .filter(|&k| matches!(v.kinds[k], Control | Unknown | UserDefined) && !v.tokens[k].is_empty())
        .map(|k| {
            json!({
                "id": k, "content": v.tokens[k], "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": v.kinds[k] != UserDefined,
            })
        })
        .collect();
    let named = |id: Option<u32>| Some((id?, v.tokens.get(id? as usize)?));
    let first = named(v.bos).filter(|_| begins);
    let last = named(v.eos).filter(|_| v.add_eos == Some(true));
    let around = |all: &[Option<Value>]| all.iter().flatten().cloned().collect::<Vec<Value>>();
    let special = |token: Option<(u32, &String)>, kind: u32| {
        token.map(|(_, text)| json!({"SpecialToken": {"id": text, "type_id": kind}}))
    };
    let text = |name: &str, kind: u32| Some(json!({"Sequence": {"id": name, "type_id": kind}}));
    let one = around(&[special(first, 0), text("A", 0), special(last, 0)]);
    let two = around(&[
        special(first, 0),
        text("A", 0),
        special(last, 0),
        special(first, 1),
        text("B", 1),
        special(last, 1),
    ]);
    let known: Map<String, Value> = [first, last]
        .into_iter()
        .flatten()
        .map(|(id, text)| (text.clone(), json!({"id": text, "ids": [id], "tokens": [text]})))
        .collect();
    let post_processor = match known.is_empty() {
        true => Value::Null,
        false => json!({"type": "TemplateProcessing", "single": one, "pair": two, "special_tokens": known}),
    };
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": post_processor,
        "decoder": decoder, "model": model,
    })
}
