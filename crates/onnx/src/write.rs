//! Tensors and files on their way out.

use crate::element::ElementType;
use crate::protobuf::{Chunk, TensorProto};
use std::path::Path;
use volta::{DType, Device, Result, Tensor};

/// What files say they were made by.
pub(crate) const PRODUCER: &str = "volta";

/// A tensor as a file has it.
pub(crate) fn tensor(name: &str, x: &Tensor, kind: ElementType) -> Result<TensorProto> {
    let host = x.detach().try_to_device(Device::Cpu)?;
    macro_rules! bytes {
        ($held:ty) => {
            bytes!($held => $held)
        };
        ($held:ty => $written:ty) => {
            host.try_to_vec::<$held>()?.into_iter().flat_map(|x| (x as $written).to_le_bytes()).collect()
        };
    }
    let raw: Vec<u8> = match kind {
        ElementType::I8 => bytes!(i32 => i8),
        ElementType::I16 => bytes!(i32 => i16),
        ElementType::U16 => bytes!(i32 => u16),
        _ => match host.dtype() {
            DType::F32 => bytes!(f32),
            DType::F64 => bytes!(f64),
            DType::F16 => {
                host.try_to_vec::<half::f16>()?.into_iter().flat_map(half::f16::to_le_bytes).collect()
            }
            DType::BF16 => {
                host.try_to_vec::<half::bf16>()?.into_iter().flat_map(half::bf16::to_le_bytes).collect()
            }
            DType::I32 => bytes!(i32),
            DType::I64 => bytes!(i64),
            DType::U8 => bytes!(u8),
            DType::U32 => bytes!(u32),
            DType::Bool => host.try_to_vec::<bool>()?.into_iter().map(u8::from).collect(),
        },
    };
    let dims = host.shape().iter().map(|&extent| extent as i64).collect();
    Ok(TensorProto {
        name: name.to_string(),
        dims,
        data_type: kind.number(),
        raw: Some(Chunk::whole(raw)),
        ..TensorProto::default()
    })
}

/// Writes a file, whole or not at all.
pub(crate) fn file(path: &Path, bytes: &[u8]) -> Result<()> {
    volta::io::write_file(path, bytes)
}
