//! Packing by transposition of f32 with AVX-512.

use std::arch::x86_64::*;

/// See [`super::kernel::Transpose`].
///
/// # Safety
/// The CPU has AVX-512, `lanes` rows of `k` elements are readable at `src`, and `k * width`
/// writable at `dst`.
pub(super) unsafe fn run(
    src: *const f32,
    lane_stride: isize,
    lanes: usize,
    k: usize,
    dst: *mut f32,
    width: usize,
) {
    let mut first = 0;
    while first < width {
        let group = (width - first).min(16);
        let present = lanes.saturating_sub(first).min(16);
        // SAFETY: passed on from the caller; the group lies inside the panel.
        unsafe {
            let from = src.offset((first.min(lanes)) as isize * lane_stride);
            lanes16(from, lane_stride, present, k, dst.add(first), width, group);
        }
        first += group;
    }
}

/// Transposes up to 16 lanes, writing `group` of them (zeros beyond `present`).
///
/// Each lane is read a whole cache line at a time, because lanes a power of two apart compete for
/// the same few lines of the cache and would not stay there for a second visit.
#[target_feature(enable = "avx512f")]
unsafe fn lanes16(
    src: *const f32,
    stride: isize,
    present: usize,
    k: usize,
    dst: *mut f32,
    width: usize,
    group: usize,
) {
    let written = ((1u32 << group) - 1) as __mmask16;
    for p in (0..k).step_by(16) {
        let depth = (k - p).min(16);
        let read = ((1u32 << depth) - 1) as __mmask16;
        let mut rows = [_mm512_setzero_ps(); 16];
        // SAFETY: lanes below `present` have `depth` more elements; dst has `group` columns.
        unsafe {
            if present == 16 {
                for (lane, row) in rows.iter_mut().enumerate() {
                    let at = src.offset(lane as isize * stride).add(p);
                    *row = _mm512_maskz_loadu_ps(read, at);
                }
            } else {
                for (lane, row) in rows.iter_mut().enumerate().take(present) {
                    let at = src.offset(lane as isize * stride).add(p);
                    *row = _mm512_maskz_loadu_ps(read, at);
                }
            }
            let columns = square(rows);
            let to = dst.add(p * width);
            if depth == 16 {
                for (i, &column) in columns.iter().enumerate() {
                    _mm512_mask_storeu_ps(to.add(i * width), written, column);
                }
            } else {
                for (i, &column) in columns.iter().enumerate().take(depth) {
                    _mm512_mask_storeu_ps(to.add(i * width), written, column);
                }
            }
        }
    }
}

/// Transposes 16 by 16 elements: pairs and quadruples are interleaved inside the quarters of the
/// vectors, then the quarters change places.
#[inline]
#[target_feature(enable = "avx512f")]
fn square(r: [__m512; 16]) -> [__m512; 16] {
    let mut pairs = r;
    for i in 0..8 {
        pairs[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        pairs[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    // quads[4 * g + c]: in quarter q, the elements at column 4 * q + c of rows 4 * g to 4 * g + 3.
    let mut quads = pairs;
    for g in 0..4 {
        for h in 0..2 {
            let low = _mm512_castps_pd(pairs[4 * g + h]);
            let high = _mm512_castps_pd(pairs[4 * g + 2 + h]);
            quads[4 * g + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
            quads[4 * g + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
        }
    }
    let mut columns = quads;
    for c in 0..4 {
        let (a, b, e, f) = (quads[c], quads[4 + c], quads[8 + c], quads[12 + c]);
        let ab_even = _mm512_shuffle_f32x4::<0b10_00_10_00>(a, b);
        let ab_odd = _mm512_shuffle_f32x4::<0b11_01_11_01>(a, b);
        let ef_even = _mm512_shuffle_f32x4::<0b10_00_10_00>(e, f);
        let ef_odd = _mm512_shuffle_f32x4::<0b11_01_11_01>(e, f);
        columns[c] = _mm512_shuffle_f32x4::<0b10_00_10_00>(ab_even, ef_even);
        columns[8 + c] = _mm512_shuffle_f32x4::<0b11_01_11_01>(ab_even, ef_even);
        columns[4 + c] = _mm512_shuffle_f32x4::<0b10_00_10_00>(ab_odd, ef_odd);
        columns[12 + c] = _mm512_shuffle_f32x4::<0b11_01_11_01>(ab_odd, ef_odd);
    }
    columns
}
