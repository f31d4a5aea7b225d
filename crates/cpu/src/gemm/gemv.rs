//! Products with a single row or column: a matrix times a vector.

use super::buffer::with_scratch;
use super::element::Element;
use super::kernel::Kernel;
use super::{Product, share};
use crate::threads;
use std::ops::Range;

/// Multiply-adds that are worth a task of their own.
const TASK: usize = 1 << 16;

/// Whether the product is done here: one row or column, and the matrix contiguous along k and of the
/// accumulator's type. (A matrix contiguous the other way suits the microkernels.)
pub(super) fn fits<E: Element>(p: &Product<E>) -> bool {
    let along_k = if p.n == 1 { p.a.col_stride } else { p.b.row_stride };
    (p.n == 1 || p.m == 1) && along_k == 1 && E::as_acc(p.a.data).is_some() && p.k >= 16
}

/// Computes the product as dot products.
///
/// # Safety
/// As for [`super::gemm`]; the product fits.
pub(super) unsafe fn run<E: Element>(
    kernel: &Kernel<E::Acc>,
    threads: usize,
    p: &Product<E>,
    done: &(dyn Fn(Range<usize>, Range<usize>) + Sync),
) {
    // One row is the transpose of one column.
    let (rows, matrix, stride, x, x_stride, step) = if p.n == 1 {
        (p.m, p.a.data, p.a.row_stride, p.b.data, p.b.row_stride, p.ldc)
    } else {
        (p.n, p.b.data, p.b.col_stride, p.a.data, p.a.col_stride, 1)
    };
    let (Some(matrix), Some(x)) = (E::as_acc(matrix), E::as_acc(x)) else {
        unreachable!("only fits where the elements need no widening");
    };
    let shared = (share::Shared(p.c), share::Shared(matrix.cast_mut()));
    let compute = |x: *const E::Acc| {
        let x = share::Shared(x.cast_mut());
        let tasks = (rows * p.k / TASK).clamp(1, 4 * threads).min(rows.div_ceil(4));
        let task = |index: usize| {
            let own = share::part(rows, 4, tasks, index);
            for first in own.clone().step_by(4) {
                let count = 4.min(own.end - first);
                // SAFETY: the rows lie inside the matrix, and the results inside C.
                unsafe {
                    let at = shared.1.at(0).offset(first as isize * stride);
                    let sums = (kernel.dots)(at, stride, count, x.at(0), p.k);
                    for (r, &sum) in sums.iter().enumerate().take(count) {
                        let c = shared.0.at((first + r) * step);
                        *c = if p.accumulate { *c + sum } else { sum };
                    }
                }
            }
            if p.n == 1 { done(own, 0..1) } else { done(0..1, own) }
        };
        if threads > 1 { threads::parallel_for(tasks, &task) } else { (0..tasks).for_each(task) }
    };
    if x_stride == 1 {
        compute(x);
    } else {
        with_scratch::<E::Acc, _>(p.k, |copy| {
            for i in 0..p.k {
                // SAFETY: i < k.
                unsafe { *copy.add(i) = *x.offset(i as isize * x_stride) };
            }
            compute(copy);
        });
    }
}
