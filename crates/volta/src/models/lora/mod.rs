//! Adapters of low rank (Hu et al., 2021): what is trained of a large model.
//!
//! `files` reads and writes them as PEFT does, `switch` keeps several for one model.

#[cfg(not(target_arch = "wasm32"))]
mod files;
mod switch;

pub use switch::LoraSet;

use super::causal_lm::{Adapter, CausalLm, Weight, row_lengths};
use crate::autograd::no_grad;
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
    /// Whether the lengths of a weight's rows are trained beside their directions (DoRA; Liu et al., 2024).
    pub dora: bool,
}

impl Default for LoraOptions {
    /// Rank 8 for queries and values.
    fn default() -> LoraOptions {
        let targets = ["q_proj", "v_proj"].map(String::from).to_vec();
        LoraOptions { rank: 8, alpha: 16.0, dropout: 0.0, targets, rank_stabilized: false, dora: false }
    }
}

impl LoraOptions {
    /// The names of all layers of a model that can get an adapter.
    pub fn every_target(model: &mut CausalLm) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for (name, _) in model.projections() {
            let last = name.rsplit('.').next().unwrap_or(&name);
            if !all.iter().any(|known| known == last) {
                all.push(last.to_string());
            }
        }
        all
    }

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
                let known = LoraOptions::every_target(model);
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
            let (outputs, inputs) = (layer.weight.rows(), layer.weight.columns());
            let lengths = || no_grad(|| row_lengths(&layer.weight.floats()?));
            let magnitude =
                options.dora.then(lengths).transpose()?.map(|lengths| lengths.detach().variable());
            layer.adapter = Some(with_device(device, || Adapter {
                a: init::by_fan_in([rank, inputs], inputs),
                b: init::zeros([outputs, rank]),
                magnitude,
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

    /// Adds the adapters to the weights, and takes them off. Weights in blocks become floats.
    #[track_caller]
    pub fn merge(self, model: &mut CausalLm) -> Result<()> {
        let _call = Call::enter("Lora::merge");
        no_grad(|| {
            for (_, layer) in model.projections() {
                if let Some(merged) = layer.merged()? {
                    match &layer.weight {
                        Weight::Floats(weight) => weight.try_assign(&merged)?,
                        Weight::Blocks(_) => layer.weight = Weight::Floats(merged.variable()),
                    }
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
