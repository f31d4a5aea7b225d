//! Decoding: packed weights as f32, by loops that become vectors at every level of instructions.

use super::Matrix;
use super::levels::leveled;
use crate::gemm::Element;
use half::f16;
use volta_ir::op::quantized::{BLOCK, BlockFormat};

/// scale · q + minimum, for numbers q of a block that are not negative, but for bytes.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub scale: f32,
    pub minimum: f32,
}

#[inline(always)]
unsafe fn half(halves: *const u16, k: usize) -> f32 {
    // SAFETY: passed on from the caller.
    f16::from_bits(unsafe { halves.add(k).read_unaligned() }).widen()
}

/// The scale of the block whose halves these are.
///
/// # Safety
/// `halves` can be read.
#[inline(always)]
pub(super) unsafe fn scale(format: BlockFormat, halves: *const u16) -> Scale {
    // SAFETY: passed on from the caller.
    let scale = unsafe { half(halves, 0) };
    let minimum = match format {
        BlockFormat::Int8 => 0.0,
        BlockFormat::Int4 => -8.0 * scale,
        // SAFETY: as above.
        BlockFormat::Int4Min => unsafe { half(halves, 1) },
    };
    Scale { scale, minimum }
}

/// The scales of blocks, one after the other, and their minima.
///
/// # Safety
/// `halves` has as many blocks.
#[inline(always)]
pub(super) unsafe fn scales(format: BlockFormat, halves: *const u16, scale: &mut [f32], minimum: &mut [f32]) {
    let step = if format.has_minimum() { 2 } else { 1 };
    for (block, scale) in scale.iter_mut().enumerate() {
        // SAFETY: passed on from the caller.
        *scale = unsafe { half(halves, step * block) };
    }
    for (block, (minimum, scale)) in minimum.iter_mut().zip(scale).enumerate() {
        *minimum = match format {
            BlockFormat::Int8 => 0.0,
            BlockFormat::Int4 => -8.0 * *scale,
            // SAFETY: passed on from the caller.
            BlockFormat::Int4Min => unsafe { half(halves, 2 * block + 1) },
        };
    }
}

/// The numbers q of a block, still without their scale.
///
/// # Safety
/// `bytes` is a block of the format: 32 bytes if it is of `BYTES`, else 16.
#[inline(always)]
pub(super) unsafe fn numbers<const BYTES: bool>(bytes: *const u8) -> [f32; BLOCK] {
    let mut q = [0.0; BLOCK];
    if BYTES {
        // SAFETY: passed on from the caller.
        let bytes = unsafe { bytes.cast::<[i8; BLOCK]>().read_unaligned() };
        for (q, byte) in q.iter_mut().zip(bytes) {
            *q = f32::from(byte);
        }
    } else {
        // SAFETY: passed on from the caller.
        let bytes = unsafe { bytes.cast::<[u8; BLOCK / 2]>().read_unaligned() };
        for (k, byte) in bytes.into_iter().enumerate() {
            q[k] = i32::from(byte & 15) as f32;
            q[k + BLOCK / 2] = i32::from(byte >> 4) as f32;
        }
    }
    q
}

/// The weights of a block.
///
/// # Safety
/// `bytes` is a block of the format.
#[inline(always)]
pub(super) unsafe fn decode(format: BlockFormat, bytes: *const u8, s: Scale, out: &mut [f32; BLOCK]) {
    // SAFETY: passed on from the caller.
    let q = unsafe {
        match format {
            BlockFormat::Int8 => numbers::<true>(bytes),
            BlockFormat::Int4 | BlockFormat::Int4Min => numbers::<false>(bytes),
        }
    };
    // Rounded as in GGUF's own formulas: 8 is taken off before the scale is applied.
    let (less, plus) = if format == BlockFormat::Int4 { (8.0, 0.0) } else { (0.0, s.minimum) };
    for (out, q) in out.iter_mut().zip(q) {
        *out = (q - less) * s.scale + plus;
    }
}

leveled! {
    /// Whole blocks of a row from a block on.
    ///
    /// # Safety
    /// The row has them.
    pub(super) unsafe fn decode_row[](w: &Matrix, row: usize, first: usize, out: &mut [f32]) {
        for (k, out) in out.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
            // SAFETY: passed on from the caller.
            unsafe {
                let scale = scale(w.format, w.halves(row, first + k));
                decode(w.format, w.bytes(row, first + k), scale, out);
            }
        }
    }
}

leveled! {
    /// One block of each of some rows.
    ///
    /// # Safety
    /// The rows have it.
    pub(super) unsafe fn decode_column[](w: &Matrix, first: usize, block: usize, out: &mut [[f32; BLOCK]]) {
        for (k, out) in out.iter_mut().enumerate() {
            // SAFETY: passed on from the caller.
            unsafe {
                let scale = scale(w.format, w.halves(first + k, block));
                decode(w.format, w.bytes(first + k, block), scale, out);
            }
        }
    }
}
