//! Everything that a training needs to go on where it stopped, in one file.
//!
//! The file is safetensors, so that other programs can look into it. What is no tensor stands as JSON in its
//! metadata, beside the format's name and version.

use super::json::Json;
use super::safetensors::{self, Metadata};
use super::source::Source;
use super::values;
use super::weights::{Format, Weights};
use crate::call::Call;
use crate::device::Device;
use crate::error::{Error, Result, bail};
use crate::nn::Module;
use crate::state::{State, StateDict, Stateful, Value};
use crate::tensor::RngState;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

const FORMAT: &str = "volta-checkpoint";

/// Grows when files can no longer be read by the programs before. Files whose tensors are in shards beside them have the second one.
const VERSION: u64 = 2;
const VERSION_WITHOUT_SHARDS: u64 = 1;

/// The member that lists the files with the tensors.
#[cfg(not(target_arch = "wasm32"))]
pub(super) const SHARDS: &str = "shards";

/// The part that holds the random numbers.
const RNG: &str = "rng";

/// Parts of a training by name: models, optimizers, schedulers, loaders, the random numbers, and free values.
///
/// A part is kept as it is when it is added. Saving is all or nothing: whatever happens meanwhile, the file at the path
/// is the old one or the new one.
///
/// ```
/// use volta::{Checkpoint, Linear, Module};
///
/// # let folder = std::env::temp_dir().join(format!("volta-doc-checkpoint-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("last.safetensors");
/// let net = Linear::new(3, 2, true);
/// Checkpoint::new().with_module("model", &net).with_rng().with_value("epoch", 7).save(&path)?;
/// // Optimizers and whatever else is `Stateful` go in by `.with("optimizer", &adam)`,
/// // and get their state back by `.restore("optimizer", &mut adam)?`.
///
/// let other = Linear::new(3, 2, true);
/// let saved = Checkpoint::load(&path)?;
/// saved.restore_module("model", &other)?;
/// saved.restore_rng()?;
/// assert_eq!(saved.int("epoch")?, 7);
/// assert_eq!(net.parameters()[0].to_vec::<f32>(), other.parameters()[0].to_vec::<f32>());
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Checkpoint {
    parts: BTreeMap<String, State>,
    values: State,
    /// In which of several files a part is, where it does not matter how large they are.
    of_shard: BTreeMap<String, usize>,
    /// What messages call it.
    label: String,
}

impl Checkpoint {
    /// Nothing yet.
    pub fn new() -> Checkpoint {
        Checkpoint { label: "the checkpoint".to_string(), ..Checkpoint::default() }
    }

    /// With what `part` must remember.
    #[must_use]
    pub fn with(self, name: &str, part: &(impl Stateful + ?Sized)) -> Checkpoint {
        self.with_state(name, part.state())
    }

    /// With the parameters and buffers of a module; one that has two names comes once, under the first.
    #[must_use]
    pub fn with_module(self, name: &str, module: &(impl Module + ?Sized)) -> Checkpoint {
        self.with_state(name, State { tensors: super::once_each(&module.state_dict()), ..State::new() })
    }

    /// With the state of the random numbers.
    #[must_use]
    pub fn with_rng(self) -> Checkpoint {
        self.with(RNG, &RngState::save())
    }

    /// With a number or a text of your own.
    #[must_use]
    pub fn with_value(mut self, name: &str, value: impl Into<Value>) -> Checkpoint {
        self.values = self.values.with(name, value);
        self
    }

    pub(crate) fn with_state(mut self, name: &str, mut state: State) -> Checkpoint {
        // What is assigned to these tensors later is none of this checkpoint's business.
        state.tensors = state.tensors.iter().map(|(name, t)| (name.to_string(), t.detach())).collect();
        self.parts.insert(name.to_string(), state);
        self
    }

    /// With a part that one of several ranks has, and writes.
    pub(crate) fn with_state_of_shard(mut self, name: &str, state: State, shard: usize) -> Checkpoint {
        self.of_shard.insert(name.to_string(), shard);
        self.with_state(name, state)
    }

    /// The names of all parts.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.parts.keys().map(String::as_str)
    }

    /// What a part remembers; its tensors are on the CPU if it was loaded.
    #[track_caller]
    pub fn state(&self, name: &str) -> Result<&State> {
        match self.parts.get(name) {
            Some(state) => Ok(state),
            None => {
                let all: Vec<&str> = self.parts().collect();
                bail!(Data, "{} has no part {name:?}; it has {}", self.label, all.join(", "))
            }
        }
    }

    /// Lets `part` go on from what was saved of it. After an error it has not changed.
    #[track_caller]
    pub fn restore(&self, name: &str, part: &mut (impl Stateful + ?Sized)) -> Result<()> {
        let _call = Call::enter("Checkpoint::restore");
        part.load_state(self.state(name)?).map_err(|e| self.about(name, &e))
    }

    /// Gives a module the values that were saved of it. Names and shapes must be the same; after an error nothing
    /// has changed.
    #[track_caller]
    pub fn restore_module(&self, name: &str, module: &(impl Module + ?Sized)) -> Result<()> {
        let _call = Call::enter("Checkpoint::restore_module");
        let loaded = module.load_state_dict(&self.state(name)?.tensors, true);
        loaded.map(drop).map_err(|e| self.about(name, &e))
    }

    /// Lets the random numbers go on from where they were.
    #[track_caller]
    pub fn restore_rng(&self) -> Result<()> {
        let _call = Call::enter("Checkpoint::restore_rng");
        let mut rng = RngState::save();
        self.restore(RNG, &mut rng)?;
        rng.restore();
        Ok(())
    }

    #[track_caller]
    pub(crate) fn about(&self, part: &str, error: &Error) -> Error {
        Error::new(error.kind(), format!("{}: part {part:?}: {}", self.label, error.message()))
    }

    /// The whole number of a name.
    #[track_caller]
    pub fn int(&self, name: &str) -> Result<i64> {
        self.values.int(name)
    }

    /// The number of a name.
    #[track_caller]
    pub fn float(&self, name: &str) -> Result<f64> {
        self.values.float(name)
    }

    /// The text of a name.
    #[track_caller]
    pub fn text(&self, name: &str) -> Result<&str> {
        self.values.text(name)
    }

    /// Writes everything to a file: whole, or not at all.
    #[cfg(not(target_arch = "wasm32"))]
    #[track_caller]
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        let _call = Call::enter("Checkpoint::save");
        let (tensors, metadata) = self.contents()?;
        super::save_safetensors(path, &tensors, &metadata)
    }

    /// What a part remembers, to be changed.
    pub(crate) fn state_mut(&mut self, name: &str) -> Result<&mut State> {
        match self.parts.get_mut(name) {
            Some(state) => Ok(state),
            None => bail!(Data, "{} has no part {name:?}", self.label),
        }
    }

    /// The full names of the tensors in one of several shards: as many bytes as others have.
    pub(crate) fn names_of_shard(&self, (shard, count): (usize, usize)) -> BTreeSet<String> {
        let bytes = |t: &crate::Tensor| t.numel() * t.dtype().size();
        let (mut shared, mut own) = (Vec::new(), BTreeSet::new());
        for (part, state) in &self.parts {
            for (name, t) in state.tensors.iter() {
                let full = format!("{part}.{name}");
                match self.of_shard.get(part) {
                    None => shared.push((full, bytes(t))),
                    Some(known) if *known == shard => own.extend([full]),
                    Some(_) => {}
                }
            }
        }
        let all: usize = shared.iter().map(|(_, bytes)| bytes).sum();
        let mut before = 0;
        for (name, bytes) in shared {
            // By where it begins; what is empty behind all goes to the last.
            let place = (before as u128 * count as u128).checked_div(all as u128).unwrap_or(0) as usize;
            before += bytes;
            if place.min(count - 1) == shard {
                own.insert(name);
            }
        }
        own
    }

    /// Writes a part of the tensors to a file.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn save_shard(&self, path: impl AsRef<std::path::Path>, shard: (usize, usize)) -> Result<()> {
        let (own, (tensors, _)) = (self.names_of_shard(shard), self.contents()?);
        let own = tensors.renamed(|name| own.contains(name).then(|| name.to_string()));
        super::save_safetensors(path, &own, &Metadata::new())
    }

    /// Writes everything but the tensors, and in which files beside this one those are.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn save_shard_list(&self, path: impl AsRef<std::path::Path>, shards: &[String]) -> Result<()> {
        let (_, mut metadata) = self.contents()?;
        metadata.insert("version".to_string(), VERSION.to_string());
        let list = Json::List(shards.iter().map(|name| name.as_str().into()).collect());
        metadata.insert(SHARDS.to_string(), list.to_string());
        super::save_safetensors(path, &StateDict::new(), &metadata)
    }

    /// The file in memory.
    #[track_caller]
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let _call = Call::enter("Checkpoint::to_bytes");
        let (tensors, metadata) = self.contents()?;
        super::to_safetensors(&tensors, &metadata)
    }

    /// [`to_bytes`](Self::to_bytes) that waits for devices without blocking: the only way in a browser, if there are
    /// tensors on a GPU.
    #[track_caller]
    pub fn to_bytes_async(&self) -> impl Future<Output = Result<Vec<u8>>> + use<> {
        let _call = Call::enter("Checkpoint::to_bytes_async");
        let bytes =
            self.contents().map(|(tensors, metadata)| super::to_safetensors_async(&tensors, &metadata));
        async move { bytes?.await }
    }

    /// Reads a file that [`save`](Self::save) wrote; its tensors come to the CPU.
    #[cfg(not(target_arch = "wasm32"))]
    #[track_caller]
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Checkpoint> {
        let _call = Call::enter("Checkpoint::load");
        let (path, source) = (path.as_ref(), Arc::new(Source::open(path.as_ref())?));
        let weights = super::sharded::with_shards(Checkpoint::weights(&source)?, &source, path)?;
        Checkpoint::of(&source, &weights)
    }

    /// Whether a file is a checkpoint of a version that only later programs can read.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn is_newer(path: &std::path::Path) -> bool {
        let weights = Source::open(path).and_then(|source| safetensors::read(Arc::new(source)));
        weights.is_ok_and(|weights| version(&weights).is_some_and(|version| version > VERSION))
    }

    /// Reads what [`to_bytes`](Self::to_bytes) gave.
    #[track_caller]
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Checkpoint> {
        let _call = Call::enter("Checkpoint::from_bytes");
        let source = Arc::new(Source::held(bytes));
        Checkpoint::of(&source, &Checkpoint::weights(&source)?)
    }

    /// All tensors under their full names, and everything else.
    fn contents(&self) -> Result<(StateDict, Metadata)> {
        let mut tensors = StateDict::new();
        let mut parts = Vec::new();
        for (part, state) in &self.parts {
            let mut names = Vec::new();
            for (name, t) in state.tensors.iter() {
                let full = format!("{part}.{name}");
                if tensors.insert(full.clone(), t.clone()).is_some() {
                    bail!(Argument, "two parts have a tensor {full:?}: call one of them otherwise");
                }
                names.push(name.into());
            }
            let about = [("values", written(&state.values)), ("tensors", Json::List(names))];
            parts.push((part.clone(), about.into_iter().map(|(k, v)| (k.to_string(), v)).collect()));
        }
        let state = [("values", written(&self.values.values)), ("parts", Json::Object(parts))];
        let state: Json = state.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
        let version = VERSION_WITHOUT_SHARDS.to_string();
        let metadata = [("format", FORMAT.to_string()), ("version", version), ("state", state.to_string())];
        Ok((tensors, metadata.into_iter().map(|(k, v)| (k.to_string(), v)).collect()))
    }

    fn weights(source: &Arc<Source>) -> Result<Weights> {
        match Format::of(source) {
            Format::Safetensors => safetensors::read(source.clone()),
            Format::PyTorch => Err(source.wrong(
                "it is a PyTorch weight file, but no checkpoint: open it with Weights::open, or load",
            )),
            Format::Gguf => {
                Err(source.wrong("it is a GGUF file, but no checkpoint: open it with Gguf::open, or load"))
            }
            Format::Other(why) => Err(source.wrong(why)),
        }
    }

    fn of(source: &Source, weights: &Weights) -> Result<Checkpoint> {
        let state = described(weights).map_err(|what| source.wrong(what))?;
        let damaged = |what: &str| source.wrong(format!("the checkpoint is damaged: {what}"));
        let mut checkpoint = Checkpoint { label: source.label().to_string(), ..Checkpoint::default() };
        checkpoint.values.values = state.member("values", read).map_err(|e| damaged(&e))?;
        for (part, about) in state.member("parts", Json::object).map_err(|e| damaged(&e))? {
            let mut restored = State::new();
            restored.values =
                about.member("values", read).map_err(|e| damaged(&format!("part {part:?}: {e}")))?;
            let names =
                about.member("tensors", Json::list).map_err(|e| damaged(&format!("part {part:?}: {e}")))?;
            for name in names {
                let name =
                    name.text().ok_or_else(|| damaged(&format!("part {part:?}: {name} is no name")))?;
                restored.tensors.insert(name, weights.tensor(&format!("{part}.{name}"), Device::Cpu)?);
            }
            checkpoint.parts.insert(part.clone(), restored);
        }
        Ok(checkpoint)
    }
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<&str> = self.parts().collect();
        write!(f, "Checkpoint({}: {})", self.label, parts.join(", "))
    }
}

/// What a file says beside its tensors, if it is a checkpoint that can be read here.
fn described(weights: &Weights) -> Result<Json, String> {
    let text = |name: &str| weights.metadata().get(name).map(String::as_str);
    if text("format") != Some(FORMAT) {
        return Err(
            "it is a safetensors file, but no checkpoint: open it with Weights::open, or load".to_string()
        );
    }
    match version(weights) {
        Some(1..=VERSION) => {}
        Some(newer) if newer > VERSION => {
            return Err(format!(
                "it was written by a newer Volta: its format has version {newer}, and this one reads up to {VERSION}. \
                 Update Volta"
            ));
        }
        _ => return Err("the checkpoint is damaged: it has no version".to_string()),
    }
    let state = text("state").ok_or("the checkpoint is damaged: it has no \"state\"")?;
    Json::parse(state).map_err(|e| format!("the checkpoint is damaged: {e}"))
}

fn version(weights: &Weights) -> Option<u64> {
    weights.metadata().get("version")?.parse().ok()
}

fn written(all: &BTreeMap<String, Value>) -> Json {
    all.iter().map(|(name, value)| (name.clone(), values::to_json(value))).collect()
}

fn read(json: &Json) -> Option<BTreeMap<String, Value>> {
    json.object()?.iter().map(|(name, value)| Some((name.clone(), values::from_json(value)?))).collect()
}
