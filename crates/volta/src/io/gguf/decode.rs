//! Blocks of 32 weights with a scale, and maybe a minimum, in f16: what llama.cpp calls the legacy formats.

use half::f16;

pub(super) fn half(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

/// Calls `decode` with every block and the place of its elements.
pub(super) fn each<const BYTES: usize, const ELEMENTS: usize>(
    blocks: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES], &mut [f32; ELEMENTS]),
) {
    let (blocks, _) = blocks.as_chunks::<BYTES>();
    let (out, _) = out.as_chunks_mut::<ELEMENTS>();
    blocks.iter().zip(out).for_each(|(block, out)| decode(block, out));
}

/// Two elements a byte: the low nibbles are the first half of a block.
fn nibbles(bytes: &[u8], out: &mut [f32; 32], value: impl Fn(usize, u8) -> f32) {
    let (low, high) = out.split_at_mut(16);
    for (k, &byte) in bytes[..16].iter().enumerate() {
        low[k] = value(k, byte & 15);
        high[k] = value(k + 16, byte >> 4);
    }
}

/// scale · (q - 8): scale, 16 bytes of q.
pub(super) fn q4_0(blocks: &[u8], out: &mut [f32]) {
    each(blocks, out, |block: &[u8; 18], out| {
        let scale = half(block, 0);
        nibbles(&block[2..], out, |_, q| (f32::from(q) - 8.0) * scale);
    });
}

/// scale · q + minimum: scale, minimum, 16 bytes of q.
pub(super) fn q4_1(blocks: &[u8], out: &mut [f32]) {
    each(blocks, out, |block: &[u8; 20], out| {
        let (scale, minimum) = (half(block, 0), half(block, 2));
        nibbles(&block[4..], out, |_, q| f32::from(q) * scale + minimum);
    });
}

/// The fifth bit of element `k`, where it belongs.
fn fifth(bits: u32, k: usize) -> u8 {
    (bits >> k & 1) as u8 * 16
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// scale · (q - 16): scale, the fifth bits of all q, 16 bytes of their nibbles.
pub(super) fn q5_0(blocks: &[u8], out: &mut [f32]) {
    each(blocks, out, |block: &[u8; 22], out| {
        let (scale, bits) = (half(block, 0), word(block, 2));
        nibbles(&block[6..], out, |k, q| (f32::from(q | fifth(bits, k)) - 16.0) * scale);
    });
}

/// scale · q + minimum: scale, minimum, the fifth bits of all q, 16 bytes of their nibbles.
pub(super) fn q5_1(blocks: &[u8], out: &mut [f32]) {
    each(blocks, out, |block: &[u8; 24], out| {
        let (scale, minimum, bits) = (half(block, 0), half(block, 2), word(block, 4));
        nibbles(&block[8..], out, |k, q| f32::from(q | fifth(bits, k)) * scale + minimum);
    });
}

/// scale · q: scale, 32 signed bytes.
pub(super) fn q8_0(blocks: &[u8], out: &mut [f32]) {
    each(blocks, out, |block: &[u8; 34], out: &mut [f32; 32]| {
        let scale = half(block, 0);
        for (x, &q) in out.iter_mut().zip(&block[2..]) {
            *x = f32::from(q as i8) * scale;
        }
    });
}
