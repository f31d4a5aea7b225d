//! A tokenizer and a template as a GGUF file says them.

use super::Llm;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{GgufTokenKind, GgufVocabulary, GgufWriter};
use crate::text::Tokenizer;
use serde_json::Value;
use std::collections::BTreeMap;

/// Texts that ways to cut text differ on.
const PROBES: [&str; 12] = [
    "The river runs to the sea.",
    " What's  the\n\n name of the town in 1984? ",
    "I'LL go\t12345678 times; we'Ve 3.14159",
    "naïve café 中文字 日本語のテキスト",
    "Ελληνικά русский текст العربية हिन्दी",
    "🙂🚀👩‍👩‍👧 e\u{301}",
    "fn main() {\n    let x_1 = a[0] + b.c();\r\n}\n",
    "\n \n  \n\t\ttwo   three",
    "camelCaseHTTPServer UPPER lower",
    "http://example.org/a?b=c&d=%20#e",
    "...!!! --- '' \"quoted\" (x) [y] {z}",
    "\u{0}\u{7f}\u{200b}",
];

/// llama.cpp's names for ways to cut text before byte pairs are merged.
const CUTS: [&str; 5] = ["gpt-2", "smollm", "llama-bpe", "qwen2", "tekken"];

/// The lists of a vocabulary.
struct Lists {
    tokens: Vec<String>,
    kinds: Vec<GgufTokenKind>,
    scores: Option<Vec<f32>>,
    merges: Vec<String>,
    unknown: Option<u32>,
}

/// What differs between ways to read the same lists.
#[derive(Clone, Copy)]
struct Reading {
    model: &'static str,
    pre: Option<&'static str>,
    space_prefix: Option<bool>,
}

impl Llm {
    /// Sets the keys of the vocabulary. `json` is the model's `tokenizer.json`.
    ///
    /// # Errors
    /// A tokenizer that llama.cpp has no name for.
    pub(super) fn describe_vocabulary(&self, json: &str, writer: &mut GgufWriter) -> Result<()> {
        let wrong = |e| Error::new(ErrorKind::Data, format!("tokenizer.json is no JSON: {e}"));
        let json: Value = serde_json::from_str(json).map_err(wrong)?;
        let lists = Lists::read(&json, self.vocabulary())
            .ok_or_else(|| unknown("it is not made of byte pairs or of SentencePiece's pieces"))?;
        let (plain, begun) =
            (self.tokenizer.try_encode("a")?, self.tokenizer.try_encode_with_special_tokens("a")?);
        let begins = begun.len() > plain.len() && begun.ends_with(&plain);
        let named = |name: &str| self.special.get(name).and_then(|token| self.tokenizer.id(token));
        let bos = if begins { begun.first().copied() } else { named("bos_token") };
        let (eos, padding) = (named("eos_token").or_else(|| self.end_token()), named("pad_token"));
        let Some(reading) = lists.reading(&self.tokenizer, begins, bos, eos)? else {
            return Err(unknown("llama.cpp has no name for how it cuts text"));
        };
        writer.set("tokenizer.ggml.model", reading.model);
        if let Some(pre) = reading.pre {
            writer.set("tokenizer.ggml.pre", pre);
        }
        if let Some(prefix) = reading.space_prefix {
            writer.set("tokenizer.ggml.add_space_prefix", prefix);
        }
        writer.set("tokenizer.ggml.tokens", lists.tokens);
        writer.set("tokenizer.ggml.token_type", lists.kinds.iter().map(|&k| k as i32).collect::<Vec<_>>());
        match lists.scores {
            Some(scores) => writer.set("tokenizer.ggml.scores", scores),
            None => writer.set("tokenizer.ggml.merges", lists.merges),
        }
        for (name, id) in [
            ("bos_token_id", bos),
            ("eos_token_id", eos),
            ("padding_token_id", padding),
            ("unknown_token_id", lists.unknown),
        ] {
            if let Some(id) = id {
                writer.set(format!("tokenizer.ggml.{name}"), id);
            }
        }
        writer.set("tokenizer.ggml.add_bos_token", begins);
        if let Some(template) = &self.template {
            writer.set("tokenizer.chat_template", template.as_str());
        }
        Ok(())
    }
}

fn unknown(why: &str) -> Error {
    Error::new(ErrorKind::Data, format!("the tokenizer cannot be written into a GGUF file: {why}"))
}

impl Lists {
    /// What a `tokenizer.json` has, filled up to the size of the model's table.
    fn read(json: &Value, size: usize) -> Option<Lists> {
        let model = &json["model"];
        if model["type"] != "BPE" {
            return None;
        }
        let mut names: BTreeMap<u64, (String, GgufTokenKind)> = BTreeMap::new();
        let pieces = model["byte_fallback"] == true;
        let unknown = model["unk_token"].as_str();
        for (token, id) in model["vocab"].as_object()? {
            let kind = match () {
                () if pieces && crate::io::gguf_byte(token).is_some() => GgufTokenKind::Byte,
                () if unknown == Some(token) => GgufTokenKind::Unknown,
                () => GgufTokenKind::Normal,
            };
            names.insert(id.as_u64()?, (token.clone(), kind));
        }
        for added in json["added_tokens"].as_array().into_iter().flatten() {
            let (id, token) = (added["id"].as_u64()?, added["content"].as_str()?);
            let kind = match () {
                () if unknown == Some(token) => GgufTokenKind::Unknown,
                () if added["special"] == true => GgufTokenKind::Control,
                () => GgufTokenKind::UserDefined,
            };
            names.insert(id, (token.to_string(), kind));
        }
        let (mut tokens, mut kinds) = (Vec::new(), Vec::new());
        for id in 0..size as u64 {
            let (token, kind) =
                names.remove(&id).unwrap_or_else(|| (format!("[PAD{id}]"), GgufTokenKind::Unused));
            tokens.push(token);
            kinds.push(kind);
        }
        let merge = |merge: &Value| match merge.as_array() {
            Some(pair) => Some(format!("{} {}", pair.first()?.as_str()?, pair.get(1)?.as_str()?)),
            None => merge.as_str().map(String::from),
        };
        let merges = model["merges"].as_array()?.iter().map(merge).collect::<Option<Vec<_>>>()?;
        let score = |(k, kind): (usize, &GgufTokenKind)| {
            if *kind == GgufTokenKind::Normal { -(k as f32) } else { 0.0 }
        };
        let scores = pieces.then(|| kinds.iter().enumerate().map(score).collect());
        let unknown = kinds.iter().position(|kind| *kind == GgufTokenKind::Unknown).map(|k| k as u32);
        names.is_empty().then_some(Lists { tokens, kinds, scores, merges, unknown })
    }

    /// The way to read them that gives the tokens of `tokenizer`.
    fn reading(
        &self,
        tokenizer: &Tokenizer,
        add_bos: bool,
        bos: Option<u32>,
        eos: Option<u32>,
    ) -> Result<Option<Reading>> {
        let readings: Vec<Reading> = match self.scores {
            Some(_) => [true, false]
                .map(|prefix| Reading { model: "llama", pre: Some("default"), space_prefix: Some(prefix) })
                .to_vec(),
            None => CUTS.map(|pre| Reading { model: "gpt2", pre: Some(pre), space_prefix: None }).to_vec(),
        };
        let wanted: Vec<Vec<u32>> = PROBES
            .iter()
            .map(|text| tokenizer.try_encode_with_special_tokens(text))
            .collect::<Result<_>>()?;
        for reading in readings {
            let vocabulary = GgufVocabulary {
                model: reading.model,
                pre: reading.pre,
                tokens: &self.tokens,
                scores: self.scores.as_deref(),
                kinds: self.kinds.clone(),
                merges: &self.merges,
                bos,
                eos,
                eot: None,
                unknown: self.unknown,
                padding: None,
                add_bos: Some(add_bos),
                add_eos: None,
                add_space_prefix: reading.space_prefix,
                chat_template: None,
            };
            let Ok(read) = Tokenizer::from_gguf(&vocabulary) else { continue };
            let mut pairs = PROBES.iter().zip(&wanted);
            if pairs.all(|(text, wanted)| {
                read.try_encode_with_special_tokens(text).is_ok_and(|found| found == *wanted)
            }) {
                return Ok(Some(reading));
            }
        }
        Ok(None)
    }
}
