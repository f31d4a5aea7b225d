//! GPT-2 from the files that Hugging Face has of it.

use crate::config::Config;
use crate::model_file::Model;
use std::collections::BTreeMap;
use volta::io::Weights;
use volta::models::Gpt;
use volta::text::Tokenizer;
use volta::{Device, Error, ErrorKind, Module, Result, with_device};

/// The names that the weights may have.
const WEIGHTS: [&str; 2] = ["model.safetensors", "pytorch_model.bin"];

impl Model {
    /// GPT-2 from the contents of its files by their names: `model.safetensors` or `pytorch_model.bin`; `tokenizer.json`, or `vocab.json`
    /// and `merges.txt`; and `config.json`, if the heads are not 64 wide.
    pub fn from_gpt2(mut files: BTreeMap<String, Vec<u8>>, device: Device) -> Result<Model> {
        let tokenizer = tokenizer(&files)?;
        let heads = match text(&files, "config.json")? {
            Some(config) => heads(config)?,
            None => None,
        };
        let weights = WEIGHTS
            .iter()
            .find_map(|name| files.remove(*name))
            .ok_or_else(|| missing("weights", &WEIGHTS))?;
        let weights = Weights::from_bytes(weights)?;
        let gpt = with_device(device, || Gpt::try_from_gpt2(&weights, heads))?;
        gpt.eval();
        let o = gpt.options;
        if o.vocabulary < tokenizer.vocabulary_size() {
            let message = format!(
                "the tokenizer has {} tokens, and the model knows {}: they do not belong together",
                tokenizer.vocabulary_size(),
                o.vocabulary
            );
            return Err(Error::new(ErrorKind::Data, message));
        }
        let sizes = [("context", o.context), ("layers", o.layers), ("heads", o.heads), ("width", o.width)];
        let sizes = sizes.map(|(key, size)| (key, size.to_string()));
        let mut values: Vec<(&str, &str)> = sizes.iter().map(|(key, size)| (*key, size.as_str())).collect();
        values.push(("tokenizer", "bpe"));
        Ok(Model { gpt, tokenizer, config: Config::given(&values)? })
    }
}

fn tokenizer(files: &BTreeMap<String, Vec<u8>>) -> Result<Tokenizer> {
    if let Some(json) = text(files, "tokenizer.json")? {
        return Tokenizer::from_json(json);
    }
    match (text(files, "vocab.json")?, text(files, "merges.txt")?) {
        (Some(vocabulary), Some(merges)) => Tokenizer::from_vocabulary_and_merges(vocabulary, merges),
        _ => Err(missing("tokenizer", &["tokenizer.json", "vocab.json with merges.txt"])),
    }
}

/// The number of heads, if a `config.json` says it.
fn heads(config: &str) -> Result<Option<usize>> {
    // One number of a flat object: nothing else in it is needed.
    let Some((_, rest)) = config.split_once("\"n_head\"") else { return Ok(None) };
    let digits: String = rest
        .trim_start_matches([':', ' ', '\t', '\r', '\n'])
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let wrong = |_| Error::new(ErrorKind::Data, "config.json: n_head is no whole number");
    digits.parse().map(Some).map_err(wrong)
}

fn text<'f>(files: &'f BTreeMap<String, Vec<u8>>, name: &str) -> Result<Option<&'f str>> {
    let Some(bytes) = files.get(name) else { return Ok(None) };
    let wrong = |_| Error::new(ErrorKind::Data, format!("{name} is not UTF-8: it is damaged, or no text"));
    std::str::from_utf8(bytes).map(Some).map_err(wrong)
}

fn missing(what: &str, names: &[&str]) -> Error {
    let names = names.join(" or ");
    Error::new(
        ErrorKind::Data,
        format!("the {what} of GPT-2 is missing: give {names}, as Hugging Face has it"),
    )
}
