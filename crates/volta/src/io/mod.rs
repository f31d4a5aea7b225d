//! Files: weights in the formats that others use, and checkpoints of a training.
//!
//! ```no_run
//! use volta::{Checkpoint, Linear};
//!
//! let net = Linear::new(784, 10, true);
//! volta::save(&net, "net.safetensors")?;
//! volta::load(&net, "net.safetensors", true)?; // or a PyTorch file, or a folder from Hugging Face
//! println!("{}", volta::inspect("net.safetensors")?);
//! # Ok::<(), volta::Error>(())
//! ```
//!
//! `weights` holds what all formats have in common: tensors by name, copied when they are asked for; `safetensors`,
//! `pytorch` and `gguf` read a file's list of them and trust nothing in it; `sharded` opens paths; `names` translates names.
//! `checkpoint` saves a whole training, `folder` keeps the last few and passes over those that are damaged. `atomic`
//! writes files, whole or not at all.
//! Without files, in a browser, everything works with bytes.

pub(crate) mod atomic;
mod checkpoint;
#[cfg(not(target_arch = "wasm32"))]
mod folder;
mod gguf;
#[cfg(not(target_arch = "wasm32"))]
mod hub;
mod json;
mod names;
#[cfg(feature = "pytorch")]
mod pytorch;
mod safetensors;
#[cfg(not(target_arch = "wasm32"))]
mod sharded;
mod source;
mod strided_copy;
mod table;
mod types;
mod values;
mod weights;

#[cfg(not(target_arch = "wasm32"))]
pub use atomic::{clear_unfinished, write_file};
pub use checkpoint::Checkpoint;
#[cfg(not(target_arch = "wasm32"))]
pub use folder::{CheckpointFolder, Damaged};
pub use gguf::{
    FromGguf, Gguf, GgufList, GgufMetadata, GgufTensor, GgufTokenKind, GgufType, GgufValue, GgufVocabulary,
    GgufWriter, gguf_byte,
};
#[cfg(all(feature = "download", not(target_arch = "wasm32")))]
pub(crate) use hub::is_plain_path;
#[cfg(not(target_arch = "wasm32"))]
pub use hub::{Hub, HubRepo, Secret};
pub use names::NameMap;
pub use safetensors::Metadata;
pub use weights::{Entry, Weights};

use crate::call::Call;
use crate::error::Result;
use crate::state::StateDict;
use crate::wait::wait_for;
use safetensors::SafetensorsFile;
use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;

/// A safetensors file in memory.
#[track_caller]
pub fn to_safetensors(state: &StateDict, metadata: &Metadata) -> Result<Vec<u8>> {
    let _call = Call::enter("to_safetensors");
    let writing = SafetensorsFile::new(state, metadata)?;
    wait_for(pin!(writing.to_bytes()))
}

/// [`to_safetensors`] that waits for devices without blocking: the only way in a browser, if there are tensors on a
/// GPU. They are saved as they are now.
#[track_caller]
pub fn to_safetensors_async(
    state: &StateDict,
    metadata: &Metadata,
) -> impl Future<Output = Result<Vec<u8>>> + use<> {
    let _call = Call::enter("to_safetensors_async");
    let bytes = SafetensorsFile::new(state, metadata).map(|writing| writing.to_bytes());
    async move { bytes?.await }
}

/// Every tensor once, under its first name.
fn once_each(state: &StateDict) -> StateDict {
    let mut seen = HashSet::new();
    let first = state.iter().filter(|(_, t)| seen.insert(t.address()));
    first.map(|(name, t)| (name.to_string(), t.clone())).collect()
}

#[cfg(not(target_arch = "wasm32"))]
mod files {
    use super::{Gguf, Metadata, SafetensorsFile, Weights, atomic, once_each, safetensors, source::Source};
    use crate::call::Call;
    use crate::error::Result;
    use crate::nn::{LoadReport, Module};
    use crate::state::StateDict;
    use std::path::Path;
    use std::sync::Arc;

    /// Writes tensors, wherever they are, to a safetensors file: whole, or not at all. What is pending among them is
    /// computed in one plan.
    #[track_caller]
    pub fn save_safetensors(path: impl AsRef<Path>, state: &StateDict, metadata: &Metadata) -> Result<()> {
        let _call = Call::enter("save_safetensors");
        let writing = SafetensorsFile::new(state, metadata)?;
        atomic::write(path.as_ref(), |sink| writing.write(sink))
    }

    /// All tensors of a safetensors file, on the default device, and its metadata. [`Weights::open`] loads some of
    /// them, elsewhere, and from other formats.
    #[track_caller]
    pub fn load_safetensors(path: impl AsRef<Path>) -> Result<(StateDict, Metadata)> {
        let _call = Call::enter("load_safetensors");
        let weights = safetensors::read(Arc::new(Source::open(path.as_ref())?))?;
        Ok((weights.load()?, weights.metadata().clone()))
    }

    /// Writes the parameters and buffers of a module to a safetensors file: whole, or not at all. A tensor that has
    /// two names is written once, under the first.
    #[track_caller]
    pub fn save(module: &(impl Module + ?Sized), path: impl AsRef<Path>) -> Result<()> {
        let _call = Call::enter("save");
        save_with(module, path, &Metadata::new())
    }

    /// [`save`] with metadata.
    pub(crate) fn save_with(
        module: &(impl Module + ?Sized),
        path: impl AsRef<Path>,
        metadata: &Metadata,
    ) -> Result<()> {
        save_safetensors(path, &once_each(&module.state_dict()), metadata)
    }

    /// Gives a module the values of a file, of any format that [`Weights::open`] reads. If `strict`, names that are
    /// missing on either side are an error; shapes that differ always are. After an error nothing has changed.
    #[track_caller]
    pub fn load(module: &(impl Module + ?Sized), path: impl AsRef<Path>, strict: bool) -> Result<LoadReport> {
        let _call = Call::enter("load");
        Weights::open(path)?.load_into(module, strict)
    }

    /// A table of the tensors in a file: names, types, shapes and sizes. Of a GGUF file its metadata, too.
    #[track_caller]
    pub fn inspect(path: impl AsRef<Path>) -> Result<String> {
        let _call = Call::enter("inspect");
        let path = path.as_ref();
        match Gguf::open_if(path)? {
            Some(file) => Ok(file.to_string()),
            None => Ok(Weights::open(path)?.to_string()),
        }
    }
}
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use files::save_with;
#[cfg(not(target_arch = "wasm32"))]
pub use files::{inspect, load, load_safetensors, save, save_safetensors};
