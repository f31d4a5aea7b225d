//! X · W for few rows of X: sums of decoded rows of W, each times a number of X. Threads have columns of their own, so that
//! a sum runs over all rows in order.

use super::block::decode_row;
use super::levels::leveled;
use super::{Matrix, TASK};
use crate::gemm::buffer::with_scratch;
use crate::gemm::share::{Shared, part};
use crate::threads;
use std::ops::Range;
use volta_ir::op::quantized::BLOCK;

/// Columns that a task decodes at a time: sums and decoded weights stay in the first cache.
const COLUMNS: usize = 512;

/// Computes the product.
///
/// # Safety
/// As for [`super::multiply`]; X has rows of W's rows, one after the other.
pub(super) unsafe fn run(
    w: &Matrix,
    x: &[f32],
    c: *mut f32,
    done: &(dyn Fn(Range<usize>, Range<usize>) + Sync),
) {
    let m = x.len() / w.rows;
    let c = Shared(c);
    let most = w.columns.div_ceil(COLUMNS).max(threads::count().min(w.blocks()));
    let tasks = (w.rows * w.columns / TASK).clamp(1, most);
    threads::parallel_for(tasks, &|index| {
        let own = part(w.columns, BLOCK, tasks, index);
        for first in own.clone().step_by(COLUMNS) {
            let columns = first..(first + COLUMNS).min(own.end);
            let count = columns.len();
            with_scratch::<f32, _>((m + 1) * count, |scratch| {
                // SAFETY: the scratch is as large.
                let scratch = unsafe {
                    scratch.write_bytes(0, (m + 1) * count);
                    std::slice::from_raw_parts_mut(scratch, (m + 1) * count)
                };
                let (decoded, sums) = scratch.split_at_mut(count);
                for row in 0..w.rows {
                    // SAFETY: columns are whole blocks of the row.
                    unsafe { decode_row(w, row, columns.start / BLOCK, decoded) };
                    for (sums, x) in sums.chunks_exact_mut(count).zip(x.chunks_exact(w.rows)) {
                        // SAFETY: it asks for nothing.
                        unsafe { add_scaled(sums, decoded, x[row]) };
                    }
                }
                for (i, sums) in sums.chunks_exact(count).enumerate() {
                    // SAFETY: the columns lie inside C's rows, and belong to this task.
                    unsafe {
                        let to = c.at(i * w.columns + columns.start);
                        std::slice::from_raw_parts_mut(to, count).copy_from_slice(sums);
                    }
                }
            });
        }
        done(0..m, own);
    });
}

leveled! {
    /// Adds numbers times a factor to as many sums.
    ///
    /// # Safety
    /// There is nothing to it.
    unsafe fn add_scaled[](sums: &mut [f32], numbers: &[f32], factor: f32) {
        for (sum, number) in sums.iter_mut().zip(numbers) {
            *sum += factor * number;
        }
    }
}
