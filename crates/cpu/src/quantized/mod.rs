//! Products with quantised matrices, which are decoded as they are read: a block of 32 weights is in registers or in the first
//! cache when it is multiplied, and nowhere else.
//!
//! `block` decodes; `dots` multiplies few rows (a token's) by dot products with packed rows; `sums` is its transpose, for
//! gradients; `lanes` packs decoded panels for the blocked product of many rows; `levels` compiles
//! all of them for what the processor has.

mod block;
mod dots;
#[cfg(target_arch = "x86_64")]
mod dots_avx512;
mod lanes;
mod levels;
mod sums;
#[cfg(test)]
mod tests;

use super::gemm::blocked::Job;
use super::gemm::buffer::with_scratch;
use super::gemm::pack::Strided;
use super::gemm::panels::Upcoming;
use super::gemm::{Accumulator, Mat};
use super::threads;
use block::decode_row;
use lanes::{ColumnLanes, RowLanes};
use std::ops::Range;
use volta_ir::op::quantized::{BLOCK, BlockFormat};

/// Rows of x up to which decoding again for every few of them is cheaper than packing decoded panels.
const MAX_DIRECT_ROWS: usize = 8;
/// Weights that are worth a task.
const TASK: usize = 1 << 16;

/// A quantised matrix in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    pub format: BlockFormat,
    pub rows: usize,
    pub columns: usize,
    pub words: *const u32,
    pub scales: *const u32,
    /// From one row to the next, in words.
    pub word_stride: isize,
    pub scale_stride: isize,
}

// SAFETY: only ever read.
unsafe impl Sync for Matrix {}
// SAFETY: as above.
unsafe impl Send for Matrix {}

impl Matrix {
    /// The packed weights of a row from a block on, as bytes.
    fn bytes(&self, row: usize, block: usize) -> *const u8 {
        let start = row as isize * self.word_stride;
        self.words.wrapping_offset(start).wrapping_add(block * self.format.block_words()).cast()
    }

    /// The f16 scales, and minima, of a row from a block on.
    fn halves(&self, row: usize, block: usize) -> *const u16 {
        let start = self.scales.wrapping_offset(row as isize * self.scale_stride).cast::<u16>();
        start.wrapping_add(if self.format.has_minimum() { 2 * block } else { block })
    }

    fn blocks(&self) -> usize {
        self.columns / BLOCK
    }
}

/// C = X · Wᵀ, or X · W if `by_rows`, for `m` rows of X; C is row-major. `done` is called once for every finished region of C.
///
/// # Safety
/// X has `m` rows of as many columns as the product needs, W and X are readable, C is writable and overlaps neither.
pub(crate) unsafe fn multiply(
    w: &Matrix,
    by_rows: bool,
    m: usize,
    x: Mat<f32>,
    c: *mut f32,
    done: &(dyn Fn(Range<usize>, Range<usize>) + Sync),
) {
    let (k, n) = if by_rows { (w.rows, w.columns) } else { (w.columns, w.rows) };
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        // SAFETY: C has m · n elements.
        unsafe { std::slice::from_raw_parts_mut(c, m * n).fill(0.0) };
        return done(0..m, 0..n);
    }
    if m > MAX_DIRECT_ROWS {
        let a = Strided { data: x.data, lane_stride: x.row_stride, k_stride: x.col_stride };
        let (kernel, threads) = (f32::kernel(), threads::count());
        let (ldc, accumulate, upcoming) = (n, false, Upcoming::NONE);
        // SAFETY: passed on from the caller.
        unsafe {
            if by_rows {
                let b = ColumnLanes(*w);
                Job { kernel, m, n, k, a, b, c, ldc, accumulate, threads, upcoming }.run(done);
            } else {
                let b = RowLanes(*w);
                Job { kernel, m, n, k, a, b, c, ldc, accumulate, threads, upcoming }.run(done);
            }
        }
        return;
    }
    with_scratch::<f32, _>(m * k, |rows| {
        for i in 0..m {
            for p in 0..k {
                // SAFETY: the scratch has m · k elements, and so has X.
                unsafe {
                    let at = i as isize * x.row_stride + p as isize * x.col_stride;
                    *rows.add(i * k + p) = *x.data.offset(at);
                }
            }
        }
        // SAFETY: they were just written.
        let x = unsafe { std::slice::from_raw_parts(rows, m * k) };
        // SAFETY: passed on from the caller.
        unsafe { if by_rows { sums::run(w, x, c, done) } else { dots::run(w, x, c, done) } }
    });
}

/// [`multiply`] in f64, as plain sums: for checks of gradients.
///
/// # Safety
/// As for [`multiply`].
pub(crate) unsafe fn multiply_f64(w: &Matrix, by_rows: bool, m: usize, x: Mat<f64>, c: *mut f64) {
    let n = if by_rows { w.columns } else { w.rows };
    // SAFETY: passed on from the caller.
    let c = unsafe { std::slice::from_raw_parts_mut(c, m * n) };
    c.fill(0.0);
    let mut decoded = vec![0.0f32; w.columns];
    for row in 0..w.rows {
        // SAFETY: the row has as many columns.
        unsafe { decode_row(w, row, 0, &mut decoded) };
        for (i, c) in c.chunks_exact_mut(n).enumerate() {
            // SAFETY: passed on from the caller.
            let x =
                |p: usize| unsafe { *x.data.offset(i as isize * x.row_stride + p as isize * x.col_stride) };
            for (column, &weight) in decoded.iter().enumerate() {
                let (to, from) = if by_rows { (column, row) } else { (row, column) };
                c[to] += x(from) * f64::from(weight);
            }
        }
    }
}

/// All numbers of a matrix, row by row.
///
/// # Safety
/// W is readable, and `out` takes its numbers.
pub(crate) unsafe fn dequantize(w: &Matrix, out: *mut f32) {
    let out = super::gemm::share::Shared(out);
    let tasks = (w.rows * w.columns / TASK).clamp(1, w.rows.max(1));
    threads::parallel_for(tasks, &|task| {
        for row in w.rows * task / tasks..w.rows * (task + 1) / tasks {
            // SAFETY: rows do not overlap, and `out` has as many.
            unsafe {
                let row_out = std::slice::from_raw_parts_mut(out.at(row * w.columns), w.columns);
                decode_row(w, row, 0, row_out);
            }
        }
    });
}
