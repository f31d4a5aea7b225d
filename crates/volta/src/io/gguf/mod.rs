//! GGUF, the format of llama.cpp: metadata by keys, a table of tensors, and their elements, many of them as blocks that
//! share scales.
//!
//! `cursor` reads a header front to back and trusts nothing in it. `value` and `metadata` hold what a file says beside its
//! tensors, `vocabulary` the tokenizer in it; `tensors` is the table. `types` lists the element types: `decode` and
//! `decode_k` make f32 of blocks, `encode` makes blocks of f32. `write` makes files.

mod cursor;
mod decode;
mod decode_k;
mod encode;
mod metadata;
mod tensors;
mod types;
mod value;
mod vocabulary;
mod write;

pub use metadata::GgufMetadata;
pub use tensors::GgufTensor;
pub use types::GgufType;
pub use value::{FromGguf, GgufList, GgufValue};
pub use vocabulary::{GgufTokenKind, GgufVocabulary, gguf_byte};
pub use write::GgufWriter;

use super::source::Source;
use super::weights::{Entry, Weights};
use crate::call::Call;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::printable::{printable_cell, printable_line};
use crate::tensor::Tensor;
use cursor::Cursor;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// What a file begins with.
pub(super) const MAGIC: &[u8] = b"GGUF";
/// The versions that are read; the last is written.
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=3;
/// How much a printed value shows.
const MAX_VALUE_CHARS: usize = 120;
const MAX_KEY_CHARS: usize = 80;

/// A GGUF file: what it says, and its tensors.
///
/// Opening reads the header. The file is mapped into memory, and a tensor's elements are read when they are asked for.
///
/// ```
/// use volta::io::{Gguf, GgufType, GgufWriter};
/// use volta::{Device, Tensor};
///
/// let mut file = GgufWriter::new();
/// file.set("general.architecture", "llama");
/// file.set("llama.block_count", 2u32);
/// file.tensor("output.weight", &Tensor::rand([4, 64]), GgufType::Q8_0)?;
///
/// let file = Gguf::from_bytes(file.to_bytes()?)?; // or Gguf::open("model.gguf")?
/// assert_eq!(file.require::<usize>("llama.block_count")?, 2);
/// assert_eq!(file.get::<f32>("llama.rope.freq_base")?, None);
/// let weight = file.tensor("output.weight", Device::Cpu)?; // f32
/// assert_eq!(weight.shape()[..], [4, 64]);
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone)]
pub struct Gguf {
    source: Arc<Source>,
    version: u32,
    metadata: GgufMetadata,
    tensors: Vec<GgufTensor>,
    places: HashMap<String, usize>,
}

impl Gguf {
    /// Opens a file.
    #[cfg(not(target_arch = "wasm32"))]
    #[track_caller]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Gguf> {
        let _call = Call::enter("Gguf::open");
        Gguf::of(Arc::new(Source::open(path.as_ref())?))
    }

    /// Opens a file if it is one in this format.
    #[cfg(not(target_arch = "wasm32"))]
    #[track_caller]
    pub fn open_if(path: impl AsRef<std::path::Path>) -> Result<Option<Gguf>> {
        let _call = Call::enter("Gguf::open_if");
        let path = path.as_ref();
        if path.is_dir() {
            return Ok(None);
        }
        let source = Source::open(path)?;
        if source.starts_with(MAGIC) { Gguf::of(Arc::new(source)).map(Some) } else { Ok(None) }
    }

    /// A file that was read already.
    #[track_caller]
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Gguf> {
        let _call = Call::enter("Gguf::from_bytes");
        Gguf::of(Arc::new(Source::held(bytes)))
    }

    pub(super) fn of(source: Arc<Source>) -> Result<Gguf> {
        let (version, metadata, tensors) = parse(&source).map_err(|what| source.wrong(what))?;
        let places = tensors::by_name(&tensors).map_err(|what| source.wrong(what))?;
        Ok(Gguf { source, version, metadata, tensors, places })
    }

    /// The path, or what else the file is called in messages.
    pub fn label(&self) -> &str {
        self.source.label()
    }

    /// The version of the format.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Everything that it says beside its tensors.
    pub fn metadata(&self) -> &GgufMetadata {
        &self.metadata
    }

    /// The value of a key, if there is one; an error if it is of another type. Integers may be of any width.
    #[track_caller]
    pub fn get<'a, T: FromGguf<'a>>(&'a self, key: &str) -> Result<Option<T>> {
        self.metadata.get(key).map_err(|what| self.source.wrong(what))
    }

    /// The value of a key that must be there.
    #[track_caller]
    pub fn require<'a, T: FromGguf<'a>>(&'a self, key: &str) -> Result<T> {
        match self.get(key)? {
            Some(value) => Ok(value),
            None => {
                Err(self.source.wrong(format!("its metadata has no {key:?}, which should be {}", T::WANTED)))
            }
        }
    }

    /// An error that says what is wrong with this file.
    #[track_caller]
    pub fn wrong(&self, what: impl AsRef<str>) -> Error {
        self.source.wrong(what)
    }

    /// All tensors, in the order of the file.
    pub fn tensors(&self) -> &[GgufTensor] {
        &self.tensors
    }

    /// What the file says of a tensor, if it has one of this name.
    pub fn find(&self, name: &str) -> Option<&GgufTensor> {
        self.places.get(name).map(|&k| &self.tensors[k])
    }

    /// What the file says of a tensor that must be there.
    #[track_caller]
    pub fn require_tensor(&self, name: &str) -> Result<&GgufTensor> {
        let missing =
            || self.source.wrong(format!("it has no tensor {name:?} among its {}", self.tensors.len()));
        self.find(name).ok_or_else(missing)
    }

    /// The bytes of a tensor's elements or blocks.
    #[track_caller]
    pub fn blocks(&self, name: &str) -> Result<&[u8]> {
        let t = self.require_tensor(name)?;
        Ok(&self.source[t.start..t.start + t.bytes()])
    }

    /// Copies a tensor to a device: plain numbers in their own type, blocks as f32.
    #[track_caller]
    pub fn tensor(&self, name: &str, device: Device) -> Result<Tensor> {
        let _call = Call::enter("Gguf::tensor");
        self.entry(self.require_tensor(name)?).tensor(device)
    }

    /// The tensors as [`Weights`], for which blocks are f32, and the metadata as texts.
    #[track_caller]
    pub fn weights(&self) -> Result<Weights> {
        let _call = Call::enter("Gguf::weights");
        let entries: Vec<Entry> = self.tensors.iter().map(|t| self.entry(t)).collect();
        let texts: BTreeMap<String, String> =
            self.metadata.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Weights::new(self.source.label(), entries, texts)
    }

    fn entry(&self, t: &GgufTensor) -> Entry {
        Entry::of_blocks(&self.source, t.name(), t.kind(), t.shape().to_vec(), (t.start, t.bytes()))
    }
}

fn parse(source: &Source) -> Result<(u32, GgufMetadata, Vec<GgufTensor>), String> {
    if !source.starts_with(MAGIC) {
        return Err("it is no GGUF file: it does not begin with \"GGUF\"".to_string());
    }
    let mut cursor = Cursor::new(&source[MAGIC.len()..]);
    let version: u32 = cursor.number("its version")?;
    if VERSIONS.contains(&version.swap_bytes()) {
        return Err(
            "its numbers are big-endian: convert it to little-endian with gguf_convert_endian.py".to_string()
        );
    }
    if !VERSIONS.contains(&version) {
        return Err(format!(
            "it is of version {version}; {} and {} are read: convert it anew",
            VERSIONS.start(),
            VERSIONS.end()
        ));
    }
    let tensors = cursor.count(tensors::LEAST_BYTES, "its number of tensors")?;
    let values = cursor.count(metadata::LEAST_BYTES, "its number of keys")?;
    let metadata = GgufMetadata::read(&mut cursor, values)?;
    let alignment = metadata.alignment()?;
    let mut tensors = tensors::read(&mut cursor, tensors, alignment)?;
    let end = MAGIC.len() + cursor.at();
    let first = end.checked_next_multiple_of(alignment).ok_or("its alignment is larger than any file")?;
    tensors::place(&mut tensors, first, source.len())?;
    Ok((version, metadata, tensors))
}

/// Blocks of a type as f32, by all threads; an error if there is no memory for them.
pub(super) fn decoded(blocks: &[u8], kind: GgufType) -> Result<Vec<f32>> {
    let Some(decode) = kind.decoder() else {
        return Err(Error::new(ErrorKind::DType, format!("{} is not decoded", kind.name())));
    };
    /// Elements that a thread decodes at a time.
    const TASK: usize = 1 << 16;
    let (elements, bytes) = kind.block();
    let count = blocks.len() / bytes * elements;
    let mut out: Vec<f32> = Vec::new();
    if out.try_reserve_exact(count).is_err() {
        return Err(Error::new(ErrorKind::Memory, format!("there is no memory for {count} f32")));
    }
    out.resize(count, 0.0);
    let tasks: Vec<_> = blocks
        .chunks(TASK / elements * bytes)
        .zip(out.chunks_mut(TASK))
        .map(|(blocks, out)| std::sync::Mutex::new((blocks, out)))
        .collect();
    volta_cpu::parallel_for(tasks.len(), &|k| {
        let mut task = tasks[k].lock().expect("each task is taken once");
        let (blocks, out) = &mut *task;
        decode(blocks, out);
    });
    drop(tasks);
    Ok(out)
}

/// What `volta inspect` prints: metadata, then tensors.
impl fmt::Display for Gguf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "GGUF version {}", self.version)?;
        for (key, value) in self.metadata.iter() {
            let (key, value) = (printable_cell(key, MAX_KEY_CHARS), value.to_string());
            writeln!(f, "{key} = {}", printable_cell(&value, MAX_VALUE_CHARS))?;
        }
        let entries: Vec<Entry> = self.tensors.iter().map(|t| self.entry(t)).collect();
        super::table::write(f, &entries)
    }
}

impl fmt::Debug for Gguf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = printable_line(self.source.label());
        write!(f, "Gguf({label}: {} keys, {} tensors)", self.metadata.len(), self.tensors.len())
    }
}
