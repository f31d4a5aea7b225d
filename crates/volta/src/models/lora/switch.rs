//! Several adapters for one model, which computes with one of them, or with none.

use super::Lora;
use crate::call::Call;
use crate::error::{Result, bail};
use crate::models::CausalLm;
use crate::models::causal_lm::Adapter;
use std::collections::BTreeMap;

/// Adapters by their names. Switching moves no numbers.
///
/// ```
/// use volta::models::{CausalLm, CausalLmOptions, Lora, LoraOptions, LoraSet};
/// let mut model = CausalLm::new(CausalLmOptions { vocabulary: 40, ..CausalLmOptions::default() });
/// let mut adapters = LoraSet::new();
/// for name in ["French", "German"] {
///     let lora = Lora::attach(&mut model, LoraOptions::default())?; // or `adapters.load(&mut model, name, folder)`
///     adapters.add(&mut model, name, lora)?;
/// }
/// adapters.select(&mut model, Some("French"))?;
/// assert_eq!(adapters.selected(), Some("French"));
/// adapters.select(&mut model, None)?; // the model is what it was
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Default)]
pub struct LoraSet {
    kept: BTreeMap<String, Kept>,
    selected: Option<String>,
}

struct Kept {
    lora: Lora,
    /// By the names of layers; none while the model has them.
    layers: Vec<(String, Adapter)>,
}

impl LoraSet {
    /// Without adapters.
    pub fn new() -> LoraSet {
        LoraSet::default()
    }

    /// Takes adapters off the model that they are attached to, and keeps them under a name.
    ///
    /// # Errors
    /// A name that is taken.
    #[track_caller]
    pub fn add(&mut self, model: &mut CausalLm, name: &str, lora: Lora) -> Result<()> {
        let _call = Call::enter("LoraSet::add");
        self.check_free(name)?;
        let layers = taken_off(model);
        if layers.is_empty() {
            bail!(Argument, "the model has no adapters that could be kept as {name:?}");
        }
        self.selected = None;
        self.kept.insert(name.to_string(), Kept { lora, layers });
        Ok(())
    }

    /// Reads PEFT's files under a name, without switching to them.
    ///
    /// # Errors
    /// Those of [`Lora::load`], and a name that is taken.
    #[cfg(not(target_arch = "wasm32"))]
    #[track_caller]
    pub fn load(
        &mut self,
        model: &mut CausalLm,
        name: &str,
        folder: impl AsRef<std::path::Path>,
    ) -> Result<()> {
        let _call = Call::enter("LoraSet::load");
        self.check_free(name)?;
        let before = self.selected.clone();
        self.select(model, None)?;
        let loaded = Lora::load(model, folder).and_then(|lora| self.add(model, name, lora));
        self.select(model, before.as_deref())?;
        loaded
    }

    fn check_free(&self, name: &str) -> Result<()> {
        if self.kept.contains_key(name) {
            bail!(Argument, "there are adapters called {name:?} already");
        }
        Ok(())
    }

    /// Has the model compute with these adapters from here on, or with none.
    ///
    /// # Errors
    /// A name that is not there, and a model that the adapters do not belong to.
    #[track_caller]
    pub fn select(&mut self, model: &mut CausalLm, name: Option<&str>) -> Result<()> {
        let _call = Call::enter("LoraSet::select");
        if let Some(name) = name.filter(|&name| !self.kept.contains_key(name)) {
            let known: Vec<&str> = self.names().collect();
            bail!(Argument, "no adapters are called {name:?}: there are {}", known.join(", "));
        }
        if self.selected.as_deref() == name {
            return Ok(());
        }
        if let Some(kept) = self.selected.take().and_then(|name| self.kept.get_mut(&name)) {
            kept.layers = taken_off(model);
        }
        let Some((name, kept)) = name.and_then(|name| Some((name, self.kept.get_mut(name)?))) else {
            return Ok(());
        };
        let mut projections: BTreeMap<_, _> = model.projections().into_iter().collect();
        if let Some((layer, _)) = kept.layers.iter().find(|(layer, adapter)| {
            projections.get(layer).is_none_or(|p| {
                p.adapter.is_some()
                    || (p.weight.rows(), p.weight.columns()) != (adapter.b.size(0), adapter.a.size(1))
            })
        }) {
            bail!(
                Argument,
                "{layer} cannot get its adapter of {name:?}: it has another, another shape, or is not there"
            );
        }
        for (layer, adapter) in kept.layers.drain(..) {
            if let Some(projection) = projections.get_mut(&layer) {
                projection.adapter = Some(adapter);
            }
        }
        self.selected = Some(name.to_string());
        Ok(())
    }

    /// What the model computes with.
    pub fn selected(&self) -> Option<&str> {
        self.selected.as_deref()
    }

    /// All names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kept.keys().map(String::as_str)
    }

    /// Adapters by their name: to train, save or merge them while they are selected.
    pub fn get(&self, name: &str) -> Option<&Lora> {
        self.kept.get(name).map(|kept| &kept.lora)
    }
}

/// The adapters of a model, which it has no longer.
fn taken_off(model: &mut CausalLm) -> Vec<(String, Adapter)> {
    let layers = model.projections().into_iter();
    layers.filter_map(|(name, layer)| Some((name, layer.adapter.take()?))).collect()
}
