//! X · Wᵀ for few rows of X: every result is a dot product of a packed row with one in f32. Memory is read once, as packed as it
//! is, and the processor has time to decode it meanwhile.
//!
//! Of scale · q + minimum, blocks are summed as scale · Σ q·x, and minimum · Σ x is added at the end: the sums of x are the same for
//! all rows of W.

use super::block::{numbers, scales};
use super::levels::leveled;
use super::{Matrix, TASK};
use crate::gemm::buffer::with_scratch;
use crate::gemm::share::{Shared, part};
use crate::threads;
use std::ops::Range;
use volta_ir::op::quantized::{BLOCK, BlockFormat};

/// Lanes of a sum: a vector of AVX-512, and a half of a block.
const LANES: usize = BLOCK / 2;
/// Rows of W that share what is read of one row of X.
const ROWS: usize = 4;

/// Computes the product.
///
/// # Safety
/// As for [`super::multiply`]; X has rows of W's columns, one after the other.
pub(super) unsafe fn run(
    w: &Matrix,
    x: &[f32],
    c: *mut f32,
    done: &(dyn Fn(Range<usize>, Range<usize>) + Sync),
) {
    let m = x.len() / w.columns;
    let sums: Vec<f32> = x.as_chunks::<BLOCK>().0.iter().map(|block| block.iter().sum()).collect();
    let c = Shared(c);
    let tasks = (w.rows * w.columns / TASK).clamp(1, 8 * threads::count()).min(w.rows.div_ceil(ROWS));
    threads::parallel_for(tasks, &|index| {
        let own = part(w.rows, ROWS, tasks, index);
        with_scratch::<f32, _>(2 * ROWS * w.blocks(), |scratch| {
            for first in own.clone().step_by(ROWS) {
                let count = ROWS.min(own.end - first);
                let to = c.at(first);
                // SAFETY: the rows lie inside W, the scratch holds their scales, and the results lie inside C.
                unsafe {
                    match w.format {
                        BlockFormat::Int8 => rows::<true>(w, first, count, x, &sums, scratch, to),
                        BlockFormat::Int4 | BlockFormat::Int4Min => {
                            rows::<false>(w, first, count, x, &sums, scratch, to);
                        }
                    }
                }
            }
        });
        done(0..m, own);
    });
}

leveled! {
    /// The products of up to four rows of W with all of X.
    ///
    /// # Safety
    /// As for [`run`]; `scratch` takes the scales and minima of four rows.
    unsafe fn rows[const BYTES: bool](
        w: &Matrix,
        first: usize,
        count: usize,
        x: &[f32],
        sums: &[f32],
        scratch: *mut f32,
        to: *mut f32,
    ) {
        let blocks = w.blocks();
        // SAFETY: passed on from the caller.
        let all = unsafe {
            scratch.write_bytes(0, 2 * count * blocks);
            std::slice::from_raw_parts_mut(scratch, 2 * count * blocks)
        };
        let (scale, minimum) = all.split_at_mut(count * blocks);
        for (r, (scale, minimum)) in
            scale.chunks_exact_mut(blocks).zip(minimum.chunks_exact_mut(blocks)).enumerate()
        {
            // SAFETY: the row has as many blocks.
            unsafe { scales(w.format, w.halves(first + r, 0), scale, minimum) };
        }
        let own = |r: usize| &scale[r * blocks..(r + 1) * blocks];
        let minima = |r: usize, i: usize| {
            dot(&minimum[r * blocks..(r + 1) * blocks], &sums[i * blocks..(i + 1) * blocks])
        };
        let m = x.len() / w.columns;
        let row = |i: usize| &x[i * w.columns..(i + 1) * w.columns];
        let put = |r: usize, i: usize, sum: f32| {
            let minimum = if BYTES { 0.0 } else { minima(r, i) };
            // SAFETY: C has a row of W's rows for each row of X.
            unsafe { *to.add(i * w.rows + r) = sum + minimum };
        };
        if m == 1 && count == ROWS {
            // SAFETY: the rows lie inside W.
            let dots = unsafe {
                let bytes = [0, 1, 2, 3].map(|r| w.bytes(first + r, 0));
                together::<BYTES, ROWS, 1>(bytes, [own(0), own(1), own(2), own(3)], [row(0)])
            };
            (0..ROWS).for_each(|r| put(r, 0, dots[r][0]));
            return;
        }
        for r in 0..count {
            let (bytes, own) = ([w.bytes(first + r, 0)], [own(r)]);
            let mut i = 0;
            while i < m {
                // SAFETY: the row lies inside W.
                unsafe {
                    if m - i >= 4 {
                        let x = [row(i), row(i + 1), row(i + 2), row(i + 3)];
                        let [dots] = together::<BYTES, 1, 4>(bytes, own, x);
                        (0..4).for_each(|k| put(r, i + k, dots[k]));
                        i += 4;
                    } else {
                        let [dots] = together::<BYTES, 1, 1>(bytes, own, [row(i)]);
                        put(r, i, dots[0]);
                        i += 1;
                    }
                }
            }
        }
    }
}

/// Σ over blocks of scale · Σ q·x, for some packed rows and some rows of X.
///
/// # Safety
/// Rows have as many blocks as they have scales, and X as many elements.
#[inline(always)]
unsafe fn together<const BYTES: bool, const R: usize, const X: usize>(
    rows: [*const u8; R],
    scales: [&[f32]; R],
    x: [&[f32]; X],
) -> [[f32; X]; R] {
    let block_bytes = if BYTES { BLOCK } else { BLOCK / 2 };
    let blocks = scales[0].len();
    let x = x.map(|x| &x.as_chunks::<BLOCK>().0[..blocks]);
    let scales = scales.map(|s| &s[..blocks]);
    #[cfg(target_arch = "x86_64")]
    if !BYTES && super::dots_avx512::is_supported() {
        // SAFETY: the processor has it; the rest is passed on from the caller.
        return unsafe { super::dots_avx512::together(rows, scales, x) }.map(|rows| rows.map(folded));
    }
    let mut total = [[[0.0f32; LANES]; X]; R];
    for b in 0..blocks {
        for r in 0..R {
            // SAFETY: b is a block of the row.
            let q = unsafe { numbers::<BYTES>(rows[r].add(b * block_bytes)) };
            let scale = scales[r][b];
            for i in 0..X {
                let x = &x[i][b];
                for l in 0..LANES {
                    let sum = q[l] * x[l] + q[l + LANES] * x[l + LANES];
                    total[r][i][l] += scale * sum;
                }
            }
        }
    }
    total.map(|rows| rows.map(folded))
}

/// The sum of lanes, by halves.
#[inline(always)]
fn folded(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
    }
    lanes[0]
}

#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, last_a), (b, last_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for l in 0..LANES {
            lanes[l] += a[l] * b[l];
        }
    }
    for (l, (a, b)) in last_a.iter().zip(last_b).enumerate() {
        lanes[l] += a * b;
    }
    folded(lanes)
}
