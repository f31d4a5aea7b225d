//! Dot products of packed nibbles with AVX-512: a permutation looks sixteen of them up in a table of floats, which takes the place of
//! masking and converting them.

use std::arch::x86_64::*;
use volta_ir::op::quantized::BLOCK;

/// Lanes of a vector, and bytes of a block.
const LANES: usize = BLOCK / 2;

/// Whether this processor has what it takes.
pub(super) fn is_supported() -> bool {
    is_x86_feature_detected!("avx512f")
}

/// Σ over blocks of scale · Σ q·x in sixteen lanes, for some packed rows and some rows of X.
///
/// # Safety
/// The processor has AVX-512. Rows have as many blocks of nibbles as they have scales, and so has X.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn together<const R: usize, const X: usize>(
    rows: [*const u8; R],
    scales: [&[f32]; R],
    x: [&[[f32; BLOCK]]; X],
) -> [[[f32; LANES]; X]; R] {
    let table =
        _mm512_setr_ps(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0);
    let mut total = [[_mm512_setzero_ps(); X]; R];
    for b in 0..scales[0].len() {
        let (mut first, mut second) = ([_mm512_setzero_ps(); X], [_mm512_setzero_ps(); X]);
        for i in 0..X {
            let x = x[i][b].as_ptr();
            // SAFETY: a block of x is two vectors.
            unsafe { (first[i], second[i]) = (_mm512_loadu_ps(x), _mm512_loadu_ps(x.add(LANES))) };
        }
        for r in 0..R {
            // SAFETY: b is a block of the row.
            let bytes = unsafe { _mm_loadu_si128(rows[r].add(b * LANES).cast()) };
            // Permutations look at the lowest four bits of a lane alone.
            let q = _mm512_cvtepu8_epi32(bytes);
            let low = _mm512_permutexvar_ps(q, table);
            let high = _mm512_permutexvar_ps(_mm512_srli_epi32::<4>(q), table);
            let scale = _mm512_set1_ps(scales[r][b]);
            for i in 0..X {
                let sum = _mm512_fmadd_ps(high, second[i], _mm512_mul_ps(low, first[i]));
                total[r][i] = _mm512_fmadd_ps(sum, scale, total[r][i]);
            }
        }
    }
    let mut lanes = [[[0.0; LANES]; X]; R];
    for r in 0..R {
        for i in 0..X {
            // SAFETY: it has as many lanes.
            unsafe { _mm512_storeu_ps(lanes[r][i].as_mut_ptr(), total[r][i]) };
        }
    }
    lanes
}
