//! ONNX's element types, and in which of Volta's they are held.

use crate::protobuf::{Chunk, TensorProto};
use half::{bf16, f16};
use std::path::Path;
use volta::{DType, Device, Result, Shape, Tensor};
use volta_ir::bail;

macro_rules! types {
    ($($number:literal $name:ident $text:literal $bytes:literal $held:ident;)*) => {
        /// An element type of ONNX. Volta has no integers of 8 bits with a sign, of 16 bits, or of 64 without one: wider ones hold them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ElementType {
            $(#[doc = $text] $name,)*
        }

        impl ElementType {
            /// By its number in files.
            pub(crate) fn numbered(number: i64) -> Result<ElementType> {
                Ok(match number {
                    $($number => ElementType::$name,)*
                    other => bail!(DType, "elements are {}: Volta has floats of 16, 32 and 64 bits, integers of 8 to 64 bits and bool", name(other)),
                })
            }

            /// Its number in files.
            pub(crate) fn number(self) -> i64 {
                match self { $(ElementType::$name => $number,)* }
            }

            /// Its name in ONNX's documents.
            pub fn name(self) -> &'static str {
                match self { $(ElementType::$name => $text,)* }
            }

            /// Bytes of one element in a file.
            fn bytes(self) -> usize {
                match self { $(ElementType::$name => $bytes,)* }
            }

            /// The type that holds it.
            pub fn held_as(self) -> DType {
                match self { $(ElementType::$name => DType::$held,)* }
            }
        }

        /// What a number of an element type means.
        pub(crate) fn name(number: i64) -> String {
            match number {
                $($number => $text.to_string(),)*
                8 => "string".to_string(),
                14 => "complex64".to_string(),
                15 => "complex128".to_string(),
                17..=20 => "float8".to_string(),
                21 => "uint4".to_string(),
                22 => "int4".to_string(),
                23 => "float4e2m1".to_string(),
                24 => "float8e8m0".to_string(),
                25 => "uint2".to_string(),
                26 => "int2".to_string(),
                other => format!("of type {other}"),
            }
        }
    };
}

types! {
    1 F32 "float" 4 F32;
    2 U8 "uint8" 1 U8;
    3 I8 "int8" 1 I32;
    4 U16 "uint16" 2 I32;
    5 I16 "int16" 2 I32;
    6 I32 "int32" 4 I32;
    7 I64 "int64" 8 I64;
    9 Bool "bool" 1 Bool;
    10 F16 "float16" 2 F16;
    11 F64 "double" 8 F64;
    12 U32 "uint32" 4 U32;
    13 U64 "uint64" 8 I64;
    16 BF16 "bfloat16" 2 BF16;
}

impl ElementType {
    /// The one that a type of Volta's stands for.
    pub fn of(dtype: DType) -> ElementType {
        match dtype {
            DType::F32 => ElementType::F32,
            DType::F64 => ElementType::F64,
            DType::F16 => ElementType::F16,
            DType::BF16 => ElementType::BF16,
            DType::I32 => ElementType::I32,
            DType::I64 => ElementType::I64,
            DType::U8 => ElementType::U8,
            DType::U32 => ElementType::U32,
            DType::Bool => ElementType::Bool,
        }
    }

    /// Its least and largest number, of those that a wider type holds.
    fn range(self) -> Option<(i64, i64)> {
        match self {
            ElementType::I8 => Some((-128, 127)),
            ElementType::I16 => Some((-32768, 32767)),
            ElementType::U16 => Some((0, 65535)),
            _ => None,
        }
    }

    /// Its least and largest number.
    pub(crate) fn limits(self) -> (i64, i64) {
        match self {
            ElementType::U8 => (0, 255),
            ElementType::U32 => (0, i64::from(u32::MAX)),
            ElementType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            other => other.range().unwrap_or((i64::MIN, i64::MAX)),
        }
    }

    /// Numbers of the type that holds it as its own would have them: they wrap around.
    pub(crate) fn wrap(self, x: Tensor) -> Result<Tensor> {
        match self.range() {
            Some((least, most)) if x.dtype() == DType::I32 => {
                x.try_sub(least)?.try_remainder(most - least + 1)?.try_add(least)
            }
            _ => Ok(x),
        }
    }
}

/// The shape that extents of a file say.
fn shape(dims: &[i64]) -> Result<Shape> {
    let extents: Option<Vec<usize>> = dims.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    match extents {
        Some(extents) => Shape::new(&extents),
        None => bail!(Data, "a tensor has the shape {dims:?}"),
    }
}

/// The bytes of a tensor that lie in a file of their own, beside the model in `folder`.
fn external(keys: &[(String, String)], needed: usize, folder: Option<&Path>) -> Result<Chunk> {
    let get = |key: &str| keys.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
    let Some(name) = get("location") else { bail!(Data, "a tensor is in another file that has no name") };
    let is_inside = Path::new(name)
        .components()
        .all(|c| matches!(c, std::path::Component::Normal(_) | std::path::Component::CurDir));
    if !is_inside || name.is_empty() {
        bail!(Data, "a tensor is in {name:?}: only files in the model's own folder are read");
    }
    let Some(folder) = folder else {
        bail!(Data, "a tensor is in the file {name:?}: open the model by its path")
    };
    let number = |key: &str| match get(key).map(str::parse::<u64>) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => bail!(Data, "{key} of a tensor in {name:?} is {:?}", get(key)),
    };
    let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?.unwrap_or(needed as u64));
    if length != needed as u64 {
        bail!(Data, "a tensor of {needed} bytes has {length} in {name:?}");
    }
    crate::file::read_part(&folder.join(name), offset, needed).map(Chunk::whole)
}

fn numbers<const N: usize, T>(bytes: &[u8], from: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|b| from(b.try_into().expect("as many bytes"))).collect()
}

/// A file's tensor, on a device, and its type.
pub(crate) fn tensor(
    proto: &TensorProto,
    folder: Option<&Path>,
    device: Device,
) -> Result<(Tensor, ElementType)> {
    volta::with_device(device, || load(proto, folder))
        .map_err(|e| e.with_context(&format!("tensor {:?}", proto.name)))
}

/// A tensor of a `.pb` file, as the standard's tests have them: it comes to the default device.
#[track_caller]
pub fn read_tensor(bytes: Vec<u8>) -> Result<(Tensor, ElementType)> {
    let _call = volta_ir::call::Call::enter("read_tensor");
    tensor(&TensorProto::read(Chunk::whole(bytes))?, None, volta::default_device())
}

fn load(proto: &TensorProto, folder: Option<&Path>) -> Result<(Tensor, ElementType)> {
    let (kind, shape) = (ElementType::numbered(proto.data_type)?, shape(&proto.dims)?);
    let count = shape.numel();
    let Some(needed) = count.checked_mul(kind.bytes()) else { bail!(Data, "a tensor has the shape {shape}") };
    let raw = match (&proto.external, &proto.raw) {
        (Some(keys), _) => Some(external(keys, needed, folder)?),
        (None, raw) => raw.clone(),
    };
    if let Some(raw) = raw
        && !(raw.is_empty() && needed > 0 && !listed(proto).eq(&0))
    {
        if raw.len() != needed {
            bail!(Data, "{} bytes are no {} of shape {shape}, which has {needed}", raw.len(), kind.name());
        }
        return Ok((from_bytes(&raw, kind, shape)?, kind));
    }
    if listed(proto) != count {
        bail!(Data, "{} numbers are no {} of shape {shape}, which has {count}", listed(proto), kind.name());
    }
    let ints = &proto.ints;
    let tensor = match kind {
        ElementType::F32 => Tensor::try_from_slice(&proto.floats, shape)?,
        ElementType::F64 => Tensor::try_from_slice(&proto.doubles, shape)?,
        // Their bits.
        ElementType::F16 => {
            Tensor::try_from_vec(ints.iter().map(|&x| f16::from_bits(x as u16)).collect::<Vec<_>>(), shape)?
        }
        ElementType::BF16 => {
            Tensor::try_from_vec(ints.iter().map(|&x| bf16::from_bits(x as u16)).collect::<Vec<_>>(), shape)?
        }
        ElementType::I64 | ElementType::U64 => Tensor::try_from_slice(ints, shape)?,
        ElementType::U8 => Tensor::try_from_vec(ints.iter().map(|&x| x as u8).collect::<Vec<_>>(), shape)?,
        ElementType::U32 => Tensor::try_from_vec(ints.iter().map(|&x| x as u32).collect::<Vec<_>>(), shape)?,
        ElementType::Bool => Tensor::try_from_vec(ints.iter().map(|&x| x != 0).collect::<Vec<_>>(), shape)?,
        _ => Tensor::try_from_vec(ints.iter().map(|&x| x as i32).collect::<Vec<_>>(), shape)?,
    };
    Ok((tensor, kind))
}

/// How many numbers are listed one by one.
fn listed(proto: &TensorProto) -> usize {
    proto.floats.len() + proto.doubles.len() + proto.ints.len()
}

fn from_bytes(raw: &[u8], kind: ElementType, shape: Shape) -> Result<Tensor> {
    match kind {
        ElementType::F32 => Tensor::try_from_vec(numbers(raw, f32::from_le_bytes), shape),
        ElementType::F64 => Tensor::try_from_vec(numbers(raw, f64::from_le_bytes), shape),
        ElementType::F16 => Tensor::try_from_vec(numbers(raw, f16::from_le_bytes), shape),
        ElementType::BF16 => Tensor::try_from_vec(numbers(raw, bf16::from_le_bytes), shape),
        ElementType::U8 => Tensor::try_from_slice(raw, shape),
        ElementType::I8 => Tensor::try_from_vec(numbers(raw, |b| i32::from(i8::from_le_bytes(b))), shape),
        ElementType::U16 => Tensor::try_from_vec(numbers(raw, |b| i32::from(u16::from_le_bytes(b))), shape),
        ElementType::I16 => Tensor::try_from_vec(numbers(raw, |b| i32::from(i16::from_le_bytes(b))), shape),
        ElementType::I32 => Tensor::try_from_vec(numbers(raw, i32::from_le_bytes), shape),
        ElementType::I64 | ElementType::U64 => Tensor::try_from_vec(numbers(raw, i64::from_le_bytes), shape),
        ElementType::Bool => Tensor::try_from_vec(numbers(raw, |b: [u8; 1]| b[0] != 0), shape),
        ElementType::U32 => Tensor::try_from_vec(numbers(raw, u32::from_le_bytes), shape),
    }
}
