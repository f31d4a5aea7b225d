//! Writing f32 as plain numbers; blocks are made where quantised matrices are.

pub(super) use crate::tensor::quantized::{q4_0, q4_1, q8_0};
use half::{bf16, f16};

pub(super) fn f32s(values: &[f32], out: &mut Vec<u8>) {
    out.extend(values.iter().flat_map(|x| x.to_le_bytes()));
}

pub(super) fn f16s(values: &[f32], out: &mut Vec<u8>) {
    out.extend(values.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()));
}

pub(super) fn bf16s(values: &[f32], out: &mut Vec<u8>) {
    out.extend(values.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes()));
}
