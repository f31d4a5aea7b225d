//! A folder as Hugging Face has it: `config.json`, weights, `tokenizer.json`, and what else says how the model is used.

use super::{Llm, Network, check};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Entry, NameMap, Weights};
use crate::models::config_json::Fields;
use crate::models::{CausalLm, CausalLmOptions, Gpt, WeightStorage};
use crate::state::StateDict;
use crate::tensor::QuantizedMatrix;
use crate::text::{SamplerOptions, Tokenizer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Texts of a model by the names of their files.
pub(in crate::models) struct Texts<'a>(pub &'a dyn Fn(&str) -> Result<Option<String>>);

impl Texts<'_> {
    pub fn get(&self, name: &str) -> Result<Option<String>> {
        (self.0)(name)
    }

    pub fn json(&self, name: &str) -> Result<Option<Value>> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        let wrong = |e| Error::new(ErrorKind::Data, format!("{name} is no JSON: {e}"));
        serde_json::from_str(&text).map(Some).map_err(wrong)
    }

    pub fn needed(&self, name: &str) -> Result<Value> {
        let missing = || Error::new(ErrorKind::Data, format!("{name} is missing"));
        self.json(name)?.ok_or_else(missing)
    }

    pub fn tokenizer(&self) -> Result<Tokenizer> {
        if let Some(json) = self.get("tokenizer.json")? {
            return Tokenizer::from_json(&json).map_err(|e| e.with_context("tokenizer.json"));
        }
        if let (Some(vocabulary), Some(merges)) = (self.get("vocab.json")?, self.get("merges.txt")?) {
            return Tokenizer::from_vocabulary_and_merges(&vocabulary, &merges);
        }
        let message = "tokenizer.json is missing, which transformers writes by \
                       AutoTokenizer.from_pretrained(…).save_pretrained(…)";
        Err(Error::new(ErrorKind::Data, message))
    }
}

impl Llm {
    #[track_caller]
    pub(super) fn of_folder(folder: &std::path::Path, storage: WeightStorage) -> Result<Llm> {
        let texts = |name: &str| read_text(&folder.join(name));
        let weights = || Weights::open(folder);
        assemble(&Texts(&texts), weights, storage).map_err(|e| e.with_context(&folder.display().to_string()))
    }
}

/// The text of a file, if it is there.
pub(in crate::models) fn read_text(path: &std::path::Path) -> Result<Option<String>> {
    use crate::regular_file::{MAX_HEADER_BYTES, read_text};
    match read_text(path, MAX_HEADER_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path, &e, "read a file of a model")),
    }
}

fn assemble(
    texts: &Texts<'_>,
    weights: impl FnOnce() -> Result<Weights>,
    storage: WeightStorage,
) -> Result<Llm> {
    let config = texts.needed("config.json")?;
    let network = match config["model_type"].as_str() {
        Some("gpt2") => Network::Gpt(Box::new(Gpt::try_from_gpt2(&weights()?, Some(gpt2_heads(&config)?))?)),
        _ => {
            let options = CausalLmOptions::from_json(&config)?;
            Network::Llama(Box::new(causal_lm(options, &weights()?, storage)?))
        }
    };
    let tokenizer = texts.tokenizer()?;
    let about = texts.json("tokenizer_config.json")?.unwrap_or_default();
    let generation = texts.json("generation_config.json")?.unwrap_or_default();
    let special = special_tokens(&[&about, &texts.json("special_tokens_map.json")?.unwrap_or_default()]);
    let mut stops = BTreeSet::new();
    stops.extend(ids(&config["eos_token_id"]));
    stops.extend(ids(&generation["eos_token_id"]));
    stops.extend(special.get("eos_token").and_then(|token| tokenizer.id(token)));
    let template = match texts.get("chat_template.jinja")? {
        Some(template) => Some(template),
        None => template(&about["chat_template"]),
    };
    let llm = Llm { network, tokenizer, sampling: sampling(&generation)?, stops, template, special };
    check(&llm.tokenizer, llm.vocabulary())?;
    Ok(llm)
}

fn causal_lm(options: CausalLmOptions, weights: &Weights, storage: WeightStorage) -> Result<CausalLm> {
    let mut names = NameMap::new().drop("model.layers.{}.self_attn.rotary_emb.inv_freq");
    if options.tied {
        names = names.drop("lm_head.weight");
    }
    let mut model = CausalLm::try_new(options)?;
    let weights = weights.renamed(&names)?;
    let layers =
        |entry: &&Entry| entry.name().contains(".layers.") && entry.dtype().is_some_and(DType::is_float);
    let mut blocks = BTreeMap::new();
    for entry in weights.entries().iter().filter(layers) {
        if let Some(format) = storage.format_of(entry.shape()) {
            let floats = weights.tensor(entry.name(), Device::Cpu)?;
            blocks.insert(entry.name().to_string(), QuantizedMatrix::quantize(&floats, format)?);
        }
    }
    if blocks.is_empty() {
        weights.load_into(&model, true)?;
        return Ok(model);
    }
    let mut state = StateDict::new();
    for entry in weights.entries().iter().filter(|entry| !blocks.contains_key(entry.name())) {
        state.insert(entry.name(), weights.tensor(entry.name(), Device::Cpu)?);
    }
    model.fill(state, blocks)?;
    Ok(model)
}

/// The heads of a GPT-2 that computes what Volta's does.
fn gpt2_heads(config: &Value) -> Result<usize> {
    let f = Fields::of("config.json", config)?;
    for name in ["vocab_size", "n_positions", "n_ctx", "n_embd", "n_layer"] {
        f.get(name);
    }
    for name in ["summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type"] {
        f.get(name);
    }
    for name in ["summary_use_proj", "attn_pdrop", "task_specific_params", "scale_attn_weights"] {
        f.get(name);
    }
    f.get("tie_word_embeddings");
    if f.switch_if("scale_attn_weights")? == Some(false) {
        return Err(f.wrong("scale_attn_weights", "Volta has no such model"));
    }
    if f.text_if("activation_function")?.is_some_and(|name| name != "gelu_new" && name != "gelu_pytorch_tanh")
    {
        return Err(f.wrong("activation_function", "Volta's GPT-2 has gelu_new"));
    }
    if f.number_if("layer_norm_epsilon")?.is_some_and(|eps| eps != 1e-5) {
        return Err(f.wrong("layer_norm_epsilon", "Volta's GPT-2 has 1e-5"));
    }
    let heads = f.size("n_head")?;
    f.get("model_type");
    f.finish()?;
    Ok(heads)
}

/// One number, or several.
fn ids(value: &Value) -> Vec<u32> {
    let id = |value: &Value| u32::try_from(value.as_u64()?).ok();
    match value.as_array() {
        Some(all) => all.iter().filter_map(id).collect(),
        None => id(value).into_iter().collect(),
    }
}

/// Special tokens by their names, the first that says one.
fn special_tokens(sources: &[&Value]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, value) in sources.iter().filter_map(|s| s.as_object()).flatten() {
        let text = value.as_str().or_else(|| value["content"].as_str());
        if let Some(text) = text.filter(|_| name.ends_with("_token")) {
            found.entry(name.clone()).or_insert_with(|| text.to_string());
        }
    }
    found
}

/// A template, or the default one of several.
fn template(value: &Value) -> Option<String> {
    let source = match value.as_array() {
        Some(all) => &all.iter().find(|t| t["name"] == "default")?["template"],
        None => value,
    };
    source.as_str().map(String::from)
}

/// What a `generation_config.json` says; greedy without one, as `transformers` has it.
fn sampling(config: &Value) -> Result<SamplerOptions> {
    let greedy = SamplerOptions { temperature: 0.0, ..SamplerOptions::default() };
    if config.is_null() {
        return Ok(greedy);
    }
    let f = Fields::of("generation_config.json", config)?;
    let penalty = f.number_if("repetition_penalty")?.unwrap_or(1.0) as f32;
    if !f.switch("do_sample")? {
        return Ok(SamplerOptions { repetition_penalty: penalty, ..greedy });
    }
    /// What `transformers` considers unless told otherwise.
    const TOP_K: usize = 50;
    Ok(SamplerOptions {
        temperature: f.number_if("temperature")?.unwrap_or(1.0) as f32,
        top_k: f.size_if("top_k")?.unwrap_or(TOP_K),
        top_p: f.number_if("top_p")?.unwrap_or(1.0) as f32,
        repetition_penalty: penalty,
        ..SamplerOptions::default()
    })
}
