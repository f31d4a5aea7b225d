//! The tensors of a file, whatever its format: what there is, and any of them when it is asked for.

use super::gguf::{self, Gguf, GgufType};
use super::names::NameMap;
#[cfg(feature = "pytorch")]
use super::pytorch;
use super::safetensors;
use super::source::Source;
use super::strided_copy::{View, row_major};
use super::types::FileType;
use crate::call::Call;
use crate::default_device::default_device;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::nn::{LoadReport, Module};
use crate::shape::Shape;
use crate::state::StateDict;
use crate::tensor::{Tensor, bytes_of};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The tensors of a safetensors, PyTorch or GGUF file, or of a model that is spread over several of them.
///
/// Opening reads the list of names only. The file is mapped into memory, and a tensor is copied once, from there to
/// its device, when it is asked for. Printed, it is a table of names, types, shapes and sizes.
///
/// ```
/// use volta::io::{Weights, to_safetensors};
/// use volta::{Device, Linear, Module};
///
/// let bytes = to_safetensors(&Linear::new(3, 2, true).state_dict(), &Default::default())?;
/// let weights = Weights::from_bytes(bytes)?; // or Weights::open("model.safetensors")?
/// assert_eq!(weights.entry("weight").unwrap().shape(), [2, 3]);
/// let bias = weights.tensor("bias", Device::Cpu)?;
/// assert_eq!(bias.shape()[..], [2]);
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone)]
pub struct Weights {
    label: String,
    entries: Vec<Entry>,
    places: HashMap<String, usize>,
    metadata: BTreeMap<String, String>,
}

/// A tensor of a file.
#[derive(Clone)]
pub struct Entry {
    name: String,
    dtype_name: String,
    dtype: Option<DType>,
    shape: Vec<usize>,
    bytes: usize,
    source: Arc<Source>,
    /// The first element's place in the file.
    start: usize,
    /// In elements; nothing if they lie in row-major order.
    strides: Option<Vec<usize>>,
    /// Blocks that are decoded when they are read.
    blocks: Option<GgufType>,
}

impl Entry {
    /// Elements in row-major order from `start` on; that the file is that long was checked.
    pub(super) fn new(
        source: &Arc<Source>,
        name: &str,
        dtype_name: &str,
        shape: Vec<usize>,
        (start, bytes): (usize, usize),
    ) -> Entry {
        Entry {
            name: name.to_string(),
            dtype_name: dtype_name.to_string(),
            dtype: FileType::named(dtype_name).and_then(|t| t.dtype),
            shape,
            bytes,
            source: source.clone(),
            start,
            strides: None,
            blocks: None,
        }
    }

    /// A tensor of a GGUF file, whose elements may be blocks.
    pub(super) fn of_blocks(
        source: &Arc<Source>,
        name: &str,
        kind: GgufType,
        shape: Vec<usize>,
        place: (usize, usize),
    ) -> Entry {
        let entry = Entry::new(source, name, kind.name(), shape, place);
        Entry { dtype: kind.dtype(), blocks: kind.decoder().map(|_| kind), ..entry }
    }

    /// The same with elements that lie otherwise; that the file is long enough was checked.
    pub(super) fn strided(mut self, strides: Vec<usize>) -> Entry {
        self.strides = Some(strides);
        self
    }

    /// The same with its first element elsewhere.
    #[cfg(feature = "pytorch")]
    pub(super) fn move_to(&mut self, start: usize) {
        self.start = start;
    }

    pub(super) fn called(mut self, name: &str) -> Entry {
        self.name = name.to_string();
        self
    }

    /// The matrix with its axes exchanged.
    pub(super) fn transposed(mut self) -> Result<Entry> {
        if self.shape.len() != 2 {
            return Err(
                self.wrong(&format!("it has shape {:?}, and only a matrix can be transposed", self.shape))
            );
        }
        let mut strides = self.strides.take().unwrap_or_else(|| row_major(&self.shape));
        strides.reverse();
        self.shape.reverse();
        Ok(self.strided(strides))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its element type as safetensors calls it: `F32`, `BF16`, `F8_E4M3`, …, or GGUF: `Q4_K`.
    pub fn dtype_name(&self) -> &str {
        &self.dtype_name
    }

    /// Its element type, if Volta has it; f32 for blocks, which are decoded.
    pub fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    /// The extents of its axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The size of its elements in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn wrong(&self, what: &str) -> Error {
        self.source.wrong(format!("tensor {:?}: {what}", self.name))
    }

    pub(super) fn tensor(&self, device: Device) -> Result<Tensor> {
        let Some(dtype) = self.dtype else {
            let known = DType::ALL.map(|d| FileType::of(d).name).join(", ");
            return Err(self.wrong(&format!(
                "its elements are {}, which Volta does not have: convert them to one of {known}",
                self.dtype_name
            )));
        };
        let shape = Shape::new(&self.shape).map_err(|e| self.wrong(e.message()))?;
        let made = |bytes: &[u8], shape: Shape| -> Result<Tensor> {
            // Elsewhere a truth value that is neither 0 nor 1 would be undefined behaviour.
            if dtype == DType::Bool && bytes.iter().any(|&b| b > 1) {
                return Err(self.wrong("it should hold truth values, and has a byte that is neither 0 nor 1"));
            }
            Tensor::from_bytes(dtype, bytes, shape, device).map_err(|e| {
                Error::new(
                    e.kind(),
                    format!("{}: tensor {:?}: {}", self.source.label(), self.name, e.message()),
                )
            })
        };
        let element = dtype.size();
        let decoded = match self.blocks {
            Some(kind) => gguf::decoded(&self.source[self.start..self.start + self.bytes], kind)?,
            None => Vec::new(),
        };
        let (bytes, start) = match self.blocks {
            Some(_) => (bytes_of(&decoded), 0),
            None => (&self.source[..], self.start),
        };
        let Some(strides) = &self.strides else {
            let t = made(&bytes[start..start + shape.numel() * element], shape)?;
            return Ok(Tensor::variable_of(t.node()));
        };
        // What a stride of 0 repeats is copied once and repeated by the engine.
        let once: Vec<usize> =
            self.shape.iter().zip(strides).map(|(&e, &s)| if s == 0 { e.min(1) } else { e }).collect();
        let view = View { start, shape: &once, strides, element };
        let t = if view.is_contiguous() {
            let count = once.iter().product::<usize>();
            made(&bytes[start..start + count * element], Shape::of(&once))?
        } else {
            let Some(bytes) = view.copy(bytes) else {
                bail!(Memory, "{}: tensor {:?}: memory does not suffice", self.source.label(), self.name);
            };
            made(&bytes, Shape::of(&once))?
        };
        Ok(Tensor::variable_of(t.expand_to(shape)?.node()))
    }
}

/// What a file is by its first bytes.
pub(super) enum Format {
    Safetensors,
    PyTorch,
    Gguf,
    /// Nothing that can be read, and why.
    Other(&'static str),
}

impl Format {
    pub(super) fn of(bytes: &[u8]) -> Format {
        let begins = |with: &[u8]| bytes.starts_with(with);
        // As the length of a header it would be more than a gigabyte, which no file of another format has.
        if begins(gguf::MAGIC) {
            return Format::Gguf;
        }
        // Before others, as the length of a header may begin with any bytes; in other formats this one is never a brace.
        if bytes.get(8) == Some(&b'{') {
            return Format::Safetensors;
        }
        if begins(b"PK") {
            return Format::PyTorch;
        }
        Format::Other(if begins(&[0x80]) || bytes.get(257..262) == Some(b"ustar") {
            "it was saved by PyTorch before 1.6, or with _use_new_zipfile_serialization=False: load it with PyTorch \
             and save it again"
        } else if begins(b"version https://git-lfs") {
            "it only says where Git LFS keeps the file: fetch it with `git lfs pull`"
        } else {
            "it is neither a safetensors nor a PyTorch nor a GGUF file, or only a part of one"
        })
    }
}

impl Weights {
    pub(super) fn new(
        label: &str,
        entries: impl IntoIterator<Item = Entry>,
        metadata: BTreeMap<String, String>,
    ) -> Result<Weights> {
        let mut weights =
            Weights { label: label.to_string(), entries: Vec::new(), places: HashMap::new(), metadata };
        for entry in entries {
            if weights.places.insert(entry.name.clone(), weights.entries.len()).is_some() {
                bail!(Data, "{label}: two tensors are called {:?}", entry.name);
            }
            weights.entries.push(entry);
        }
        Ok(weights)
    }

    /// Opens a file, whatever its format: safetensors, PyTorch's (`.pt`, `.pth`, `.bin`, as saved since PyTorch 1.6), GGUF,
    /// an index of several files (`model.safetensors.index.json`), or a folder that holds one of these under the
    /// name that Hugging Face gives it.
    #[cfg(not(target_arch = "wasm32"))]
    #[track_caller]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Weights> {
        let _call = Call::enter("Weights::open");
        super::sharded::open(path.as_ref())
    }

    /// The tensors of a safetensors, PyTorch or GGUF file that was read already.
    #[track_caller]
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Weights> {
        let _call = Call::enter("Weights::from_bytes");
        Weights::of(Arc::new(Source::held(bytes)))
    }

    /// The tensors of a single file, whose format its first bytes tell.
    pub(super) fn of(source: Arc<Source>) -> Result<Weights> {
        match Format::of(&source) {
            Format::Safetensors => safetensors::read(source),
            Format::Gguf => Gguf::of(source)?.weights(),
            #[cfg(feature = "pytorch")]
            Format::PyTorch => pytorch::read(source),
            #[cfg(not(feature = "pytorch"))]
            Format::PyTorch => Err(source.wrong(
                "it is a PyTorch file, and Volta was built without the feature `pytorch`: save it as safetensors",
            )),
            Format::Other(why) => Err(source.wrong(why)),
        }
    }

    /// All tensors, in the order of the file.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The tensor of a name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.places.get(name).map(|&k| &self.entries[k])
    }

    /// All names, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(Entry::name)
    }

    /// What the file says beside its tensors; of a PyTorch file, numbers and texts by their names.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Copies a tensor to a device.
    #[track_caller]
    pub fn tensor(&self, name: &str, device: Device) -> Result<Tensor> {
        let _call = Call::enter("Weights::tensor");
        match self.entry(name) {
            Some(entry) => entry.tensor(device),
            None => {
                let near: Vec<&str> = self.names().take(4).collect();
                bail!(
                    Data,
                    "{}: there is no tensor {name:?} among its {} ({}, …)",
                    self.label,
                    self.entries.len(),
                    near.join(", ")
                )
            }
        }
    }

    /// Copies all tensors to the default device.
    #[track_caller]
    pub fn load(&self) -> Result<StateDict> {
        let _call = Call::enter("Weights::load");
        volta_ir::environment::check()?;
        let device = default_device();
        self.entries.iter().map(|e| Ok((e.name.clone(), e.tensor(device)?))).collect()
    }

    /// Only the tensors whose names begin with `prefix` and a dot, without these: many PyTorch files hold a model
    /// under `model` or `state_dict`.
    #[track_caller]
    pub fn under(&self, prefix: &str) -> Result<Weights> {
        let _call = Call::enter("Weights::under");
        let inner = |name: &str| name.strip_prefix(prefix)?.strip_prefix('.').map(String::from);
        let entries: Vec<Entry> =
            self.entries.iter().filter_map(|e| Some(e.clone().called(&inner(&e.name)?))).collect();
        if entries.is_empty() {
            bail!(Data, "{}: no tensor's name begins with \"{prefix}.\"", self.label);
        }
        let metadata = self.metadata.iter().filter_map(|(k, v)| Some((inner(k)?, v.clone()))).collect();
        Weights::new(&self.label, entries, metadata)
    }

    /// The same tensors under other names, some of them transposed.
    #[track_caller]
    pub fn renamed(&self, map: &NameMap) -> Result<Weights> {
        let _call = Call::enter("Weights::renamed");
        let mut entries = Vec::new();
        for entry in &self.entries {
            if let Some(new) = map.find(&entry.name)? {
                let moved = if new.transposed { entry.clone().transposed()? } else { entry.clone() };
                entries.push(moved.called(&new.name));
            }
        }
        Weights::new(&self.label, entries, self.metadata.clone())
    }

    /// Gives a module the values it has a name for, as [`Module::load_state_dict`] does. Only these are copied, each
    /// straight to its device.
    #[track_caller]
    pub fn load_into(&self, module: &(impl Module + ?Sized), strict: bool) -> Result<LoadReport> {
        let _call = Call::enter("Weights::load_into");
        let own = module.state_dict();
        let mut given = StateDict::new();
        for entry in &self.entries {
            let tensor = match own.get(&entry.name) {
                Some(t) if t.shape()[..] == entry.shape && entry.dtype == Some(t.dtype()) => {
                    entry.tensor(t.device())?
                }
                // The device of the module need not have the type of the file.
                Some(t) if t.shape()[..] == entry.shape => {
                    entry.tensor(Device::Cpu)?.try_to_dtype(t.dtype())?
                }
                // Its shape will be named, its values are not needed.
                Some(_) => {
                    Tensor::try_zeros(Shape::new(&entry.shape).map_err(|e| entry.wrong(e.message()))?)?
                }
                None => Tensor::scalar(0.0),
            };
            given.insert(entry.name.clone(), tensor);
        }
        module
            .load_state_dict(&given, strict)
            .map_err(|e| Error::new(ErrorKind::Data, format!("{}: {}", self.label, e.message())))
    }
}

impl std::fmt::Display for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        super::table::write(f, &self.entries)
    }
}

impl std::fmt::Debug for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Weights({}: {} tensors)", self.label, self.entries.len())
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entry({:?} {} {:?})", self.name, self.dtype_name, self.shape)
    }
}
