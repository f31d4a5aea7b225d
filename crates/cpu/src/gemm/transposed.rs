//! Products with few columns and an A that is contiguous along its columns: computed as
//! `C' = B' A'`, whose rows are then long and contiguous.

use super::buffer::with_scratch;
use super::element::Element;
use super::kernel::Kernel;
use super::{Mat, Product, multiply};
use std::ops::Range;

/// Whether the product is done here.
pub(super) fn fits<E: Element>(kernel: &Kernel<E::Acc>, p: &Product<E>) -> bool {
    p.a.row_stride == 1 && 2 * p.n <= kernel.nr && p.m >= 2 * p.n && p.k >= 8 && p.m >= kernel.nr
}

/// Computes the product.
///
/// # Safety
/// As for [`super::gemm`]; the product fits.
pub(super) unsafe fn run<E: Element>(
    kernel: &'static Kernel<E::Acc>,
    threads: usize,
    p: &Product<E>,
    done: &(dyn Fn(Range<usize>, Range<usize>) + Sync),
) {
    let flip = |x: Mat<E>| Mat { row_stride: x.col_stride, col_stride: x.row_stride, ..x };
    with_scratch::<E::Acc, _>(p.m * p.n, |scratch| {
        let flipped = Product {
            m: p.n,
            n: p.m,
            k: p.k,
            a: flip(p.b),
            b: flip(p.a),
            c: scratch,
            ldc: p.m,
            accumulate: false,
        };
        // SAFETY: passed on from the caller; the scratch takes the transposed C.
        unsafe {
            multiply(kernel, threads, &flipped, &|_, _| ());
            for i in 0..p.m {
                for j in 0..p.n {
                    let (from, to) = (*scratch.add(j * p.m + i), p.c.add(i * p.ldc + j));
                    *to = if p.accumulate { *to + from } else { from };
                }
            }
        }
    });
    done(0..p.m, 0..p.n);
}
