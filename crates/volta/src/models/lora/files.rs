//! PEFT's files of adapters: `adapter_config.json` and `adapter_model.safetensors`.

use super::{Lora, LoraOptions, PREFIX};
use crate::call::Call;
use crate::error::{Result, bail};
use crate::io::{Metadata, NameMap, Weights, save_safetensors, write_file};
use crate::models::CausalLm;
use crate::models::config_json::Fields;
use crate::regular_file::{MAX_HEADER_BYTES, read_text};
use crate::state::StateDict;
use crate::{Error, ErrorKind};
use serde_json::{Value, json};
use std::path::Path;

const CONFIG: &str = "adapter_config.json";
const WEIGHTS: &str = "adapter_model.safetensors";

/// Fields of PEFT that change nothing that is computed.
const HARMLESS: [&str; 9] = [
    "base_model_name_or_path",
    "inference_mode",
    "init_lora_weights",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "task_type",
    "megatron_core",
];

impl Lora {
    /// Writes PEFT's files into a folder, which is made if need be. `base` is what the model that was adapted is called.
    #[track_caller]
    pub fn save(&self, model: &CausalLm, folder: impl AsRef<Path>, base: &str) -> Result<()> {
        let _call = Call::enter("Lora::save");
        let (folder, o) = (folder.as_ref(), &self.options);
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, &e, "make the folder"))?;
        let config = json!({
            "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base, "inference_mode": true,
            "r": o.rank, "lora_alpha": o.alpha, "lora_dropout": o.dropout, "target_modules": o.targets,
            "bias": "none", "fan_in_fan_out": false, "use_rslora": o.rank_stabilized, "use_dora": o.dora,
            "modules_to_save": null, "init_lora_weights": true,
        });
        save_safetensors(folder.join(WEIGHTS), &self.state_dict(model), &Metadata::new())?;
        write_file(folder.join(CONFIG), format!("{config:#}\n"))
    }

    /// Attaches what PEFT or [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// Files that cannot be read, a field that is not understood, tensors that do not fit.
    #[track_caller]
    pub fn load(model: &mut CausalLm, folder: impl AsRef<Path>) -> Result<Lora> {
        let _call = Call::enter("Lora::load");
        let folder = folder.as_ref();
        let path = folder.join(CONFIG);
        let text = read_text(&path, MAX_HEADER_BYTES).map_err(|e| Error::io(&path, &e, "read an adapter"))?;
        let wrong = |e| Error::new(ErrorKind::Data, format!("{}: it is no JSON: {e}", path.display()));
        let config: Value = serde_json::from_str(&text).map_err(wrong)?;
        let options = options(&config).map_err(|e| e.with_context(&folder.display().to_string()))?;
        let weights = Weights::open(folder.join(WEIGHTS))?.renamed(&NameMap::new().strip(PREFIX))?;
        let lora = Lora::attach(model, options)?;
        let loaded = lora.fill(model, &weights);
        if loaded.is_err() {
            lora.clone().detach(model);
        }
        loaded.map(|()| lora)
    }

    fn fill(&self, model: &CausalLm, weights: &Weights) -> Result<()> {
        let own: StateDict = self
            .state_dict(model)
            .iter()
            .map(|(name, t)| (name.trim_start_matches(PREFIX).to_string(), t.clone()))
            .collect();
        if let Some(missing) = own.iter().map(|(name, _)| name).find(|name| weights.entry(name).is_none()) {
            bail!(Data, "{WEIGHTS} has no {PREFIX}{missing}");
        }
        if let Some(other) = weights.names().find(|name| own.get(name).is_none()) {
            bail!(Data, "{WEIGHTS} has {PREFIX}{other}, which is no adapter that {CONFIG} asks for");
        }
        weights.load_into(model, false).map(drop)
    }
}

fn options(config: &Value) -> Result<LoraOptions> {
    let f = Fields::of(CONFIG, config)?;
    if f.text("peft_type")? != "LORA" {
        return Err(f.wrong("peft_type", "Volta knows LORA"));
    }
    if f.text_if("bias")?.is_some_and(|bias| bias != "none") {
        return Err(f.wrong("bias", "Volta trains no biases beside adapters"));
    }
    let targets = f.get("target_modules").and_then(Value::as_array).and_then(|all| {
        all.iter().map(|name| name.as_str().map(String::from)).collect::<Option<Vec<String>>>()
    });
    let Some(mut targets) = targets else {
        return Err(f.wrong("target_modules", "a list of names is needed"));
    };
    targets.sort();
    for name in HARMLESS {
        f.get(name);
    }
    let options = LoraOptions {
        rank: f.size("r")?,
        alpha: f.number("lora_alpha")?,
        dropout: f.number_if("lora_dropout")?.unwrap_or(0.0),
        targets,
        rank_stabilized: f.switch("use_rslora")?,
        dora: f.switch("use_dora")?,
    };
    f.finish()?;
    Ok(options)
}
