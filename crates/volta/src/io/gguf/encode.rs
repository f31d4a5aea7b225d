//! Writing f32 as plain numbers and as blocks, rounded to the bit as ggml's reference does.

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

/// Weights of a block.
const BLOCK: usize = 32;

/// 1/x, and 0 for 0.
fn inverse(x: f32) -> f32 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

fn half(x: f32, out: &mut Vec<u8>) {
    out.extend(f16::from_f32(x).to_le_bytes());
}

fn nibbles(q: impl Fn(usize) -> u8, out: &mut Vec<u8>) {
    out.extend((0..BLOCK / 2).map(|k| q(k) | q(k + BLOCK / 2) << 4));
}

/// The largest magnitude gets the number -8, so that its sign has one more step than the other.
pub(super) fn q4_0(values: &[f32], out: &mut Vec<u8>) {
    for block in values.as_chunks::<BLOCK>().0 {
        let largest = block.iter().fold(0.0f32, |most, &x| if x.abs() > most.abs() { x } else { most });
        let scale = largest / -8.0;
        let inverse = inverse(scale);
        half(scale, out);
        nibbles(|k| ((block[k] * inverse + 8.5) as u8).min(15), out);
    }
}

pub(super) fn q4_1(values: &[f32], out: &mut Vec<u8>) {
    for block in values.as_chunks::<BLOCK>().0 {
        let least = block.iter().copied().fold(f32::INFINITY, f32::min);
        let most = block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let scale = (most - least) / 15.0;
        let inverse = inverse(scale);
        half(scale, out);
        half(least, out);
        nibbles(|k| (((block[k] - least) * inverse + 0.5) as u8).min(15), out);
    }
}

pub(super) fn q8_0(values: &[f32], out: &mut Vec<u8>) {
    for block in values.as_chunks::<BLOCK>().0 {
        let scale = block.iter().fold(0.0f32, |most, x| most.max(x.abs())) / 127.0;
        let inverse = inverse(scale);
        half(scale, out);
        out.extend(block.iter().map(|x| (x * inverse).round() as i8 as u8));
    }
}
