//! Tokenizers as JSON: `{"format": "volta tokenizer", "version": 1, "kind": …, …}`, and Hugging Face's format.

use super::{Scheme, TokenizerKind, bytes, chars, data_error, pairs, words};
use crate::error::Result;
use serde_json::{Map, Value, json};
use std::sync::Arc;

const FORMAT: &str = "volta tokenizer";
const VERSION: u64 = 1;

pub(super) fn write(scheme: &dyn Scheme) -> String {
    let (name, content) = scheme.content();
    let fields: [(&str, Value); 4] = [
        ("format", FORMAT.into()),
        ("version", VERSION.into()),
        ("kind", scheme.kind().name().into()),
        (name, content),
    ];
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()).to_string()
}

pub(super) fn read(text: &str) -> Result<Arc<dyn Scheme>> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| data_error(format!("a tokenizer must be JSON; this is not: {error}")))?;
    let fields = value.as_object().ok_or_else(|| data_error("a tokenizer must be a JSON object"))?;
    if fields.get("format").and_then(Value::as_str) == Some(FORMAT) {
        return read_own(fields);
    }
    if fields.contains_key("model") {
        return pairs::read(&value);
    }
    Err(data_error(format!(
        "this JSON is no tokenizer: neither {FORMAT:?} as its \"format\", nor a \"model\" as in a tokenizer.json"
    )))
}

fn read_own(fields: &Map<String, Value>) -> Result<Arc<dyn Scheme>> {
    match fields.get("version").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(version) => {
            return Err(data_error(format!(
                "this tokenizer has version {version}; this program reads version {VERSION}: \
                 a newer Volta wrote it"
            )));
        }
        None => return Err(data_error("the tokenizer's \"version\" must be a number")),
    }
    let kind: TokenizerKind = match fields.get("kind").and_then(Value::as_str) {
        Some(name) => {
            name.parse().map_err(|_| data_error(format!("no tokenizer is of the kind {name:?}")))?
        }
        None => return Err(data_error("the tokenizer's \"kind\" must be a string")),
    };
    let content = |name: &str| {
        fields.get(name).ok_or_else(|| data_error(format!("the tokenizer of {kind} has no {name:?}")))
    };
    Ok(match kind {
        TokenizerKind::Words => Arc::new(words::Words::read(content("tokens")?)?),
        TokenizerKind::Chars => Arc::new(chars::Chars::read(content("characters")?)?),
        TokenizerKind::Bytes => Arc::new(bytes::Bytes),
        TokenizerKind::Bpe => pairs::read(content("tokenizer")?)?,
    })
}

/// A vocabulary and merges as GPT-2 has them in two files.
pub(super) fn read_gpt2(vocabulary: &str, merges: &str) -> Result<Arc<dyn Scheme>> {
    let vocabulary: Value = serde_json::from_str(vocabulary)
        .map_err(|error| data_error(format!("a vocabulary must be JSON; this is not: {error}")))?;
    // A comment with the format's version stands first.
    let lines = merges.lines().filter(|line| !line.is_empty() && !line.starts_with("#version"));
    let merges: Value = lines.map(Value::from).collect();
    pairs::read(&byte_level(vocabulary, merges))
}

/// The `tokenizer.json` of byte pairs in GPT-2's manner.
pub(super) fn byte_level(vocabulary: Value, merges: Value) -> Value {
    let byte_level = |prefix: bool| json!({"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": true, "use_regex": true});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": byte_level(false), "post_processor": null, "decoder": byte_level(true),
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocabulary, "merges": merges,
        },
    })
}
