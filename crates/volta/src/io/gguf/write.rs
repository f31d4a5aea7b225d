//! Writing files: the header first, then each tensor's elements, read and encoded one after the other.

use super::metadata::{ALIGNMENT, GgufMetadata, check_key};
use super::value::write_text;
use super::{Gguf, GgufType, GgufValue, MAGIC, VERSIONS};
use crate::call::Call;
use crate::dtype::DType;
use crate::error::{Result, bail};
#[cfg(not(target_arch = "wasm32"))]
use crate::io::atomic;
use crate::io::source::Source;
use crate::tensor::{Tensor, readings};
use crate::wait::wait_for;
use half::{bf16, f16};
use std::collections::HashSet;
use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;

/// The largest number that f16 has: scales and minima of blocks are f16.
const LARGEST: f32 = 65504.0;

/// A GGUF file that is about to be written. What it says is set key by key; tensors are kept as they are until then.
#[derive(Default)]
pub struct GgufWriter {
    metadata: GgufMetadata,
    tensors: Vec<Given>,
    names: HashSet<String>,
}

struct Given {
    name: String,
    kind: GgufType,
    shape: Vec<usize>,
    bytes: usize,
    elements: Elements,
}

enum Elements {
    /// To be encoded.
    Tensor(Tensor),
    /// As they lie in another file.
    Copied(Arc<Source>, Range<usize>),
    Blocks(Vec<u8>),
}

impl GgufWriter {
    /// An empty file.
    pub fn new() -> GgufWriter {
        GgufWriter::default()
    }

    /// Gives a key its value.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<GgufValue>) {
        self.metadata.set(key, value);
    }

    /// Says everything that another file says, but its alignment.
    pub fn set_all(&mut self, metadata: &GgufMetadata) {
        for (key, value) in metadata.iter().filter(|(key, _)| *key != ALIGNMENT) {
            self.metadata.set(key, value.clone());
        }
    }

    /// Adds a tensor that is written as `kind`: F32, F16, BF16, Q8_0, Q4_0 or Q4_1. Blocks need rows whose length is a multiple of
    /// 32, and numbers that f16 reaches.
    #[track_caller]
    pub fn tensor(&mut self, name: impl Into<String>, tensor: &Tensor, kind: GgufType) -> Result<()> {
        let _call = Call::enter("GgufWriter::tensor");
        let name = name.into();
        if !kind.is_written() {
            bail!(
                Argument,
                "tensor {name:?}: {} is not written; F32, F16, BF16, Q8_0, Q4_0 and Q4_1 are",
                kind.name()
            );
        }
        if !tensor.dtype().is_float() {
            bail!(DType, "tensor {name:?}: {} is not written as {}", tensor.dtype(), kind.name());
        }
        self.add(name, kind, tensor.shape().to_vec(), Elements::Tensor(tensor.clone()))
    }

    /// Adds a tensor of another file, as it lies there, under a name of choice.
    #[track_caller]
    pub fn copy(&mut self, file: &Gguf, from: &str, name: impl Into<String>) -> Result<()> {
        let _call = Call::enter("GgufWriter::copy");
        let t = file.require_tensor(from)?;
        let elements = Elements::Copied(file.source.clone(), t.start..t.start + t.bytes());
        self.add(name.into(), t.kind(), t.shape().to_vec(), elements)
    }

    /// Adds a tensor of elements or blocks that are encoded already.
    #[track_caller]
    pub fn blocks(
        &mut self,
        name: impl Into<String>,
        kind: GgufType,
        shape: &[usize],
        blocks: Vec<u8>,
    ) -> Result<()> {
        let _call = Call::enter("GgufWriter::blocks");
        self.add(name.into(), kind, shape.to_vec(), Elements::Blocks(blocks))
    }

    #[track_caller]
    fn add(&mut self, name: String, kind: GgufType, shape: Vec<usize>, elements: Elements) -> Result<()> {
        if let Err(what) = check_key(&name) {
            bail!(Argument, "the name of a tensor {what}");
        }
        if shape.len() > 4 || shape.contains(&0) {
            bail!(
                Shape,
                "tensor {name:?}: GGUF has one to four axes that are not empty, not shape {shape:?}"
            );
        }
        let bytes = match kind.bytes(&shape) {
            Ok(bytes) => bytes,
            Err(what) => bail!(Shape, "tensor {name:?}: {what}"),
        };
        if let Elements::Blocks(blocks) = &elements
            && blocks.len() != bytes
        {
            bail!(
                Shape,
                "tensor {name:?}: {} {shape:?} takes {bytes} bytes, not {}",
                kind.name(),
                blocks.len()
            );
        }
        if !self.names.insert(name.clone()) {
            bail!(Argument, "two tensors are called {name:?}");
        }
        self.tensors.push(Given { name, kind, shape, bytes, elements });
        Ok(())
    }

    /// Everything before the elements, and what tensors' places are multiples of.
    fn header(&self) -> Result<(Vec<u8>, usize)> {
        let alignment = match self.metadata.alignment() {
            Ok(alignment) => alignment,
            Err(what) => bail!(Argument, "{what}"),
        };
        if let Some((key, Err(what))) =
            self.metadata.iter().map(|(key, _)| (key, check_key(key))).find(|(_, c)| c.is_err())
        {
            bail!(Argument, "the key {key:?} {what}");
        }
        let mut out = MAGIC.to_vec();
        out.extend(VERSIONS.end().to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        self.metadata.write(&mut out);
        let mut place = 0u64;
        for t in &self.tensors {
            write_text(&t.name, &mut out);
            out.extend((t.shape.len() as u32).to_le_bytes());
            out.extend(t.shape.iter().rev().flat_map(|&extent| (extent as u64).to_le_bytes()));
            out.extend(t.kind.id().to_le_bytes());
            out.extend(place.to_le_bytes());
            place += t.bytes.next_multiple_of(alignment) as u64;
        }
        out.resize(out.len().next_multiple_of(alignment), 0);
        Ok((out, alignment))
    }

    /// Gives the file to `sink`, piece by piece, as soon as the devices have answered.
    async fn emit(&self, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let (header, alignment) = self.header()?;
        sink(&header)?;
        let own =
            |t: &Given| if let Elements::Tensor(tensor) = &t.elements { Some(tensor.clone()) } else { None };
        let encoded: Vec<Tensor> = self.tensors.iter().filter_map(own).collect();
        let mut elements = readings(&encoded.iter().collect::<Vec<_>>())?;
        for t in &self.tensors {
            match &t.elements {
                Elements::Copied(source, range) => sink(&source[range.clone()])?,
                Elements::Blocks(blocks) => sink(blocks)?,
                Elements::Tensor(tensor) => {
                    let bytes = elements.next().expect("one for each tensor")?.await?;
                    sink(&encode(t, tensor.dtype(), &bytes)?)?;
                }
            }
            sink(&vec![0; t.bytes.next_multiple_of(alignment) - t.bytes])?;
        }
        Ok(())
    }

    /// Writes the file: whole, or not at all. Tensors are encoded one after the other.
    #[cfg(not(target_arch = "wasm32"))]
    #[track_caller]
    pub fn write(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        let _call = Call::enter("GgufWriter::write");
        atomic::write(path.as_ref(), |sink| wait_for(pin!(self.emit(sink))))
    }

    /// The file in memory.
    #[track_caller]
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let _call = Call::enter("GgufWriter::to_bytes");
        wait_for(pin!(self.collect()))
    }

    /// [`to_bytes`](Self::to_bytes) that waits for devices without blocking: the only way in a browser, if there are tensors
    /// on a GPU.
    pub fn to_bytes_async(&self) -> impl Future<Output = Result<Vec<u8>>> {
        self.collect()
    }

    async fn collect(&self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        self.emit(&mut |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })
        .await?;
        Ok(all)
    }
}

/// Elements of a type as the file has them.
fn encode(t: &Given, dtype: DType, bytes: &[u8]) -> Result<Vec<u8>> {
    let same = matches!(
        (dtype, t.kind),
        (DType::F32, GgufType::F32) | (DType::F16, GgufType::F16) | (DType::BF16, GgufType::BF16)
    );
    if same {
        return Ok(bytes.to_vec());
    }
    let (elements, block) = t.kind.block();
    let encode = t.kind.encoder().expect("checked when it was given");
    let mut out = Vec::with_capacity(t.bytes);
    let size = dtype.size();
    // Some thousand at a time.
    for piece in bytes.chunks(elements * size * 1024) {
        let values: Vec<f32> = piece.chunks_exact(size).map(|one| float(dtype, one)).collect();
        if block > 4 && values.iter().any(|x| !x.is_finite() || x.abs() > LARGEST) {
            bail!(
                Data,
                "tensor {:?}: {} holds numbers up to {LARGEST}, and there is one that is larger, or none",
                t.name,
                t.kind.name()
            );
        }
        encode(&values, &mut out);
    }
    Ok(out)
}

fn float(dtype: DType, bytes: &[u8]) -> f32 {
    let whole = "as many bytes as an element has";
    match dtype {
        DType::F32 => f32::from_le_bytes(bytes.try_into().expect(whole)),
        DType::F16 => f16::from_le_bytes(bytes.try_into().expect(whole)).to_f32(),
        DType::BF16 => bf16::from_le_bytes(bytes.try_into().expect(whole)).to_f32(),
        _ => f64::from_le_bytes(bytes.try_into().expect(whole)) as f32,
    }
}
