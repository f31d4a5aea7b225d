//! Adapters of low rank (Hu et al., 2021): what is trained of a large model, and PEFT's files of them.

use super::causal_lm::{Adapter, CausalLm};
#[cfg(not(target_arch = "wasm32"))]
use super::config_json::Fields;
use crate::call::Call;
use crate::default_device::with_device;
use crate::error::{Result, bail};
use crate::nn::{Dropout, Module, init};
use crate::state::StateDict;
use crate::tensor::Tensor;

/// What PEFT's names of tensors begin with.
const PREFIX: &str = "base_model.model.";

/// How adapters are made.
#[derive(Clone, Debug, PartialEq)]
pub struct LoraOptions {
    /// The rank of what is added to a weight.
    pub rank: usize,
    /// What is added is multiplied by this over the rank.
    pub alpha: f64,
    /// The probability of dropping an input of an adapter while training.
    pub dropout: f64,
    /// The layers that get one, by the last part of their names: `q_proj`, `down_proj`, …
    pub targets: Vec<String>,
    /// Whether alpha is divided by the root of the rank instead.
    pub rank_stabilized: bool,
}

impl Default for LoraOptions {
    /// Rank 8 for queries and values.
    fn default() -> LoraOptions {
        let targets = ["q_proj", "v_proj"].map(String::from).to_vec();
        LoraOptions { rank: 8, alpha: 16.0, dropout: 0.0, targets, rank_stabilized: false }
    }
}

impl LoraOptions {
    fn scale(&self) -> f64 {
        let rank = self.rank as f64;
        self.alpha / if self.rank_stabilized { rank.sqrt() } else { rank }
    }
}

/// Adapters of a model: they are trained, and its own weights are not.
///
/// ```
/// use volta::models::{CausalLm, CausalLmOptions, Lora, LoraOptions};
/// use volta::{Module, Tensor};
/// let mut model = CausalLm::new(CausalLmOptions { vocabulary: 40, ..CausalLmOptions::default() });
/// let tokens = Tensor::randint(0, 40, [1, 8]);
/// let before = model.forward(&tokens);
/// let lora = Lora::attach(&mut model, LoraOptions::default())?;
/// assert_eq!(lora.parameters(&model).len(), 2 * 2 * 2); // layers, targets, factors
/// assert_eq!(model.forward(&tokens).to_vec::<f32>(), before.to_vec::<f32>());
/// model.loss(&tokens, &tokens).backward();
/// lora.merge(&mut model)?;
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Lora {
    /// How they were made.
    pub options: LoraOptions,
}

impl Lora {
    /// Gives every layer that is named an adapter that changes nothing yet. All other parameters are frozen.
    ///
    /// # Errors
    /// Options that cannot be, a name that no layer has, a model that has adapters.
    #[track_caller]
    pub fn attach(model: &mut CausalLm, options: LoraOptions) -> Result<Lora> {
        let _call = Call::enter("Lora::attach");
        let LoraOptions { rank, alpha, dropout, .. } = options;
        if rank == 0 || !(alpha.is_finite() && alpha > 0.0) || !(0.0..1.0).contains(&dropout) {
            bail!(
                Argument,
                "a rank of {rank}, an alpha of {alpha} and a dropout of {dropout}: at least 1, more than 0, and a \
                 probability below 1 are needed"
            );
        }
        let device = model.device();
        let mut layers = model.projections();
        if layers.iter().any(|(_, layer)| layer.adapter.is_some()) {
            bail!(Argument, "the model has adapters: merge or detach them first");
        }
        let is_target = |name: &str, target: &str| name == target || name.ends_with(&format!(".{target}"));
        for target in &options.targets {
            if !layers.iter().any(|(name, _)| is_target(name, target)) {
                let mut known: Vec<&str> =
                    layers.iter().filter_map(|(name, _)| name.rsplit('.').next()).collect();
                known.sort_unstable();
                known.dedup();
                bail!(Argument, "no layer is called {target:?}: there are {}", known.join(", "));
            }
        }
        if options.targets.is_empty() {
            bail!(Argument, "no layer is named that would get an adapter");
        }
        for (name, layer) in &mut layers {
            if !options.targets.iter().any(|target| is_target(name, target)) {
                continue;
            }
            let (outputs, inputs) = (layer.weight.size(0), layer.weight.size(1));
            layer.adapter = Some(with_device(device, || Adapter {
                a: init::by_fan_in([rank, inputs], inputs),
                b: init::zeros([outputs, rank]),
                scale: options.scale(),
                dropout: Dropout::new(dropout),
            }));
        }
        model.set_requires_grad(false);
        let lora = Lora { options };
        lora.parameters(model).iter().for_each(|p| p.set_requires_grad(true));
        Ok(lora)
    }

    /// What is trained, as an optimizer takes it.
    pub fn parameters(&self, model: &CausalLm) -> Vec<Tensor> {
        self.state_dict(model).iter().map(|(_, t)| t.clone()).collect()
    }

    /// The adapters under PEFT's names.
    pub fn state_dict(&self, model: &CausalLm) -> StateDict {
        let all = model.state_dict();
        let own = all.iter().filter(|(name, _)| name.contains(".lora_"));
        own.map(|(name, t)| (format!("{PREFIX}{name}"), t.clone())).collect()
    }

    /// Adds the adapters to the weights, and takes them off.
    #[track_caller]
    pub fn merge(self, model: &mut CausalLm) -> Result<()> {
        let _call = Call::enter("Lora::merge");
        crate::autograd::no_grad(|| {
            for (_, layer) in model.projections() {
                if let Some(difference) = layer.difference()? {
                    let sum = layer.weight.try_add(&difference.try_to_dtype(layer.weight.dtype())?)?;
                    layer.weight.try_assign(&sum)?;
                    layer.adapter = None;
                }
            }
            Ok::<(), crate::Error>(())
        })?;
        model.set_requires_grad(true);
        Ok(())
    }

    /// Takes the adapters off: the model is what it was.
    pub fn detach(self, model: &mut CausalLm) {
        model.projections().into_iter().for_each(|(_, layer)| layer.adapter = None);
        model.set_requires_grad(true);
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod files {
    use super::{Call, CausalLm, Fields, Lora, LoraOptions, PREFIX, Result, StateDict, bail};
    use crate::io::{Metadata, NameMap, Weights, save_safetensors, write_file};
    use crate::regular_file::{MAX_HEADER_BYTES, read_text};
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
                "bias": "none", "fan_in_fan_out": false, "use_rslora": o.rank_stabilized, "use_dora": false,
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
            let text =
                read_text(&path, MAX_HEADER_BYTES).map_err(|e| Error::io(&path, &e, "read an adapter"))?;
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
            if let Some(missing) = own.iter().map(|(name, _)| name).find(|name| weights.entry(name).is_none())
            {
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
        };
        f.finish()?;
        Ok(options)
    }
}
