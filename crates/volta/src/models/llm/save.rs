//! A model of others in the files that it came in, with the weights that it has now.

use super::{Llm, Network};
use crate::call::Call;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::io::{Gguf, GgufType, Metadata, save_safetensors, write_file};
use crate::models::{CausalLm, CausalLmOptions};
use crate::nn::Module;
use crate::regular_file::{MAX_HEADER_BYTES, read_text};
use crate::state::StateDict;
use serde_json::Value;
use std::path::Path;

/// What a folder has besides its weights.
const BESIDES: [&str; 9] = [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "generation_config.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
];

impl Llm {
    /// Writes the model into a folder as Hugging Face has it, which is made if need be: its weights as `dtype`, and everything else as the
    /// folder says that it was read from.
    ///
    /// # Errors
    /// Weights in blocks ([`WeightStorage::Floats`](crate::models::WeightStorage) is needed), adapters that are not merged, files.
    #[track_caller]
    pub fn save_folder(&self, from: impl AsRef<Path>, to: impl AsRef<Path>, dtype: DType) -> Result<()> {
        let _call = Call::enter("Llm::save_folder");
        let (from, to) = (from.as_ref(), to.as_ref());
        let state = whole(self.written()?)?;
        refuse_same(from, to)?;
        std::fs::create_dir_all(to).map_err(|e| Error::io(to, &e, "make the folder"))?;
        for name in BESIDES {
            let path = from.join(name);
            let text = match read_text(&path, MAX_HEADER_BYTES) {
                Ok(text) => text,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(Error::io(&path, &e, "read a file of the model")),
            };
            let text = if name == "config.json" { with_dtype(&text, dtype)? } else { text };
            write_file(to.join(name), text)?;
        }
        let converted = state.iter().map(|(name, t)| Ok((name.to_string(), t.detach().try_to_dtype(dtype)?)));
        let mut metadata = Metadata::new();
        metadata.insert("format".into(), "pt".into());
        save_safetensors(to.join("model.safetensors"), &converted.collect::<Result<_>>()?, &metadata)
    }

    /// Writes the model as a GGUF file: its matrices as `kind`, or as F16 where their rows are no whole blocks, and everything else as the
    /// file or folder says that it was read from.
    ///
    /// # Errors
    /// Those of [`save_folder`](Self::save_folder), and a model or tokenizer of a folder that llama.cpp has no name for.
    #[track_caller]
    pub fn save_gguf(&self, from: impl AsRef<Path>, to: impl AsRef<Path>, kind: GgufType) -> Result<()> {
        let _call = Call::enter("Llm::save_gguf");
        let (from, to) = (from.as_ref(), to.as_ref());
        let model = self.written()?;
        let state = whole(model)?;
        refuse_same(from, to)?;
        if !from.is_dir() {
            return model.gguf(&Gguf::open(from)?, &state, kind)?.write(to);
        }
        let read = |name: &str| {
            let path = from.join(name);
            read_text(&path, MAX_HEADER_BYTES).map_err(|e| Error::io(&path, &e, "read a file of the model"))
        };
        let wrong = |e| Error::new(ErrorKind::Data, format!("config.json is no JSON: {e}"));
        let config: Value = serde_json::from_str(&read("config.json")?).map_err(wrong)?;
        let mut writer = model.new_gguf(config["model_type"].as_str().unwrap_or(""), &state, kind)?;
        self.describe_vocabulary(&read("tokenizer.json")?, &mut writer)?;
        writer.write(to)?;
        // What the file says is read as anybody will read it.
        let described = CausalLmOptions::from_gguf(&Gguf::open(to)?);
        if described.as_ref().is_ok_and(|described| model.options.is_described_by(described)) {
            return Ok(());
        }
        let _ = std::fs::remove_file(to);
        let why = described.err().map_or(String::new(), |e| format!(": {}", e.message()));
        bail!(Argument, "GGUF files cannot say all that this model computes{why}: write a folder instead")
    }

    fn written(&self) -> Result<&CausalLm> {
        match &self.network {
            Network::Llama(model) => Ok(model),
            Network::Gpt(_) => {
                bail!(Argument, "models of Llama's family are written, and this is GPT-2")
            }
        }
    }
}

/// All weights, which must be floats without adapters.
fn whole(model: &CausalLm) -> Result<StateDict> {
    let state = model.state_dict();
    if state.names().any(|name| name.contains(".lora_")) {
        bail!(Argument, "the model has adapters: merge them first");
    }
    if state.names().any(|name| name.ends_with(".weight.words")) {
        bail!(Argument, "the model's weights are in blocks: load it with WeightStorage::Floats to write it");
    }
    Ok(state)
}

/// A file that is mapped must not be written over.
fn refuse_same(from: &Path, to: &Path) -> Result<()> {
    if let (Ok(from), Ok(there)) = (from.canonicalize(), to.canonicalize())
        && from == there
    {
        bail!(Argument, "{} is where the model was read from: write it elsewhere", to.display());
    }
    Ok(())
}

/// A `config.json` that says what its weights are.
fn with_dtype(text: &str, dtype: DType) -> Result<String> {
    let wrong = |e| Error::new(ErrorKind::Data, format!("config.json is no JSON: {e}"));
    let mut config: Value = serde_json::from_str(text).map_err(wrong)?;
    let name = match dtype {
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        _ => "float32",
    };
    let key = if config.get("dtype").is_some() { "dtype" } else { "torch_dtype" };
    config[key] = Value::from(name);
    Ok(format!("{config:#}\n"))
}
