//! Blocks of 256 weights whose parts have scales of a few bits, and a scale of these in f16: llama.cpp's K formats.

use super::decode::{each, half};

/// scale · q - minimum in parts of 16: 16 bytes with a scale and a minimum of four bits each, 64 bytes of four q each, the scale
/// of scales and that of minima.
pub(super) fn q2_k(blocks: &[u8], out: &mut [f32]) {
    each(blocks, out, |block: &[u8; 84], out: &mut [f32; 256]| {
        let (scales, qs) = (&block[..16], &block[16..80]);
        let (scale, minimum) = (half(block, 80), half(block, 82));
        for (part, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let s = scales[part];
            let (scale, minimum) = (scale * f32::from(s & 15), minimum * f32::from(s >> 4));
            // Eight parts share 32 bytes: two bits of each for a pair of parts.
            let (first, shift) = (part / 8 * 32 + part % 2 * 16, part % 8 / 2 * 2);
            for (x, &q) in out.iter_mut().zip(&qs[first..]) {
                *x = scale * f32::from(q >> shift & 3) - minimum;
            }
        }
    });
}

/// The sixteen scales of six bits, as they lie in twelve bytes.
fn scales_of_six(packed: &[u8]) -> [i8; 16] {
    std::array::from_fn(|k| {
        let low = packed[k % 8] >> (k / 8 * 4) & 15;
        let high = packed[8 + k % 4] >> (k / 4 * 2) & 3;
        (low | high << 4) as i8 - 32
    })
}

/// scale · (q - 4) in parts of 16: 32 bytes with the third bit of eight q each, 64 bytes with two bits of four q each, scales of
/// six bits, the scale of scales.
pub(super) fn q3_k(blocks: &[u8], out: &mut [f32]) {
    each(blocks, out, |block: &[u8; 110], out: &mut [f32; 256]| {
        let (high, low) = (&block[..32], &block[32..96]);
        let (scales, scale) = (scales_of_six(&block[96..108]), half(block, 108));
        for (part, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let scale = scale * f32::from(scales[part]);
            let (half, shift) = (part % 2 * 16, part % 8 / 2 * 2);
            let low = &low[part / 8 * 32 + half..];
            for ((x, &q), &bits) in out.iter_mut().zip(low).zip(&high[half..]) {
                let third = bits >> (part / 2) & 1;
                *x = scale * (f32::from((q >> shift & 3) | third << 2) - 4.0);
            }
        }
    });
}

/// A scale and a minimum of six bits each, for part `k` of eight, of the twelve bytes that hold all.
fn scale_and_minimum(packed: &[u8], k: usize) -> (f32, f32) {
    let (scale, minimum) = if k < 4 {
        (packed[k] & 63, packed[k + 4] & 63)
    } else {
        let both = packed[k + 4];
        (both & 15 | packed[k - 4] >> 6 << 4, both >> 4 | packed[k] >> 6 << 4)
    };
    (f32::from(scale), f32::from(minimum))
}

/// scale · q - minimum in parts of 32: the scales of scales and of minima, twelve bytes of these, 128 bytes of two q each.
pub(super) fn q4_k(blocks: &[u8], out: &mut [f32]) {
    each(blocks, out, |block: &[u8; 144], out: &mut [f32; 256]| {
        let (scale, minimum) = (half(block, 0), half(block, 2));
        for (part, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (s, m) = scale_and_minimum(&block[4..16], part);
            let (scale, minimum, shift) = (scale * s, minimum * m, part % 2 * 4);
            for (x, &q) in out.iter_mut().zip(&block[16 + part / 2 * 32..]) {
                *x = scale * f32::from(q >> shift & 15) - minimum;
            }
        }
    });
}

/// The same with a fifth bit: 32 bytes with that of eight q each before the nibbles.
pub(super) fn q5_k(blocks: &[u8], out: &mut [f32]) {
    each(blocks, out, |block: &[u8; 176], out: &mut [f32; 256]| {
        let (scale, minimum) = (half(block, 0), half(block, 2));
        let high = &block[16..48];
        for (part, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (s, m) = scale_and_minimum(&block[4..16], part);
            let (scale, minimum, shift) = (scale * s, minimum * m, part % 2 * 4);
            let low = &block[48 + part / 2 * 32..];
            for ((x, &q), &bits) in out.iter_mut().zip(low).zip(high) {
                let fifth = bits >> part & 1;
                *x = scale * f32::from(q >> shift & 15 | fifth << 4) - minimum;
            }
        }
    });
}

/// scale · (q - 32) in parts of 16: 128 bytes of two nibbles each, 64 bytes with two high bits of four q each, sixteen signed
/// scales, the scale of scales.
pub(super) fn q6_k(blocks: &[u8], out: &mut [f32]) {
    each(blocks, out, |block: &[u8; 210], out: &mut [f32; 256]| {
        let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
        let scale = half(block, 208);
        for (part, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let scale = scale * f32::from(scales[part] as i8);
            // Half of a block has 128 elements: four groups of 32, the first two in low nibbles, the others in high ones.
            let (side, group, half) = (part / 8, part % 8 / 2, part % 2 * 16);
            let low = &low[side * 64 + group % 2 * 32 + half..];
            let high = &high[side * 32 + half..];
            for ((x, &q), &bits) in out.iter_mut().zip(low).zip(high) {
                let q = q >> (group / 2 * 4) & 15 | (bits >> (group * 2) & 3) << 4;
                *x = scale * (f32::from(q) - 32.0);
            }
        }
    });
}
