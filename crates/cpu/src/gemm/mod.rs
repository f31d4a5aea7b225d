//! Matrix multiplication on the CPU.

pub(crate) mod blocked;
pub(crate) mod buffer;
mod dot;
mod element;
#[cfg(target_arch = "x86_64")]
mod full_avx512;
mod gemv;
pub(crate) mod kernel;
#[cfg(target_arch = "x86_64")]
mod kernel_avx2;
#[cfg(target_arch = "x86_64")]
mod kernel_avx512;
mod kernel_portable;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod kernel_simd128;
pub(crate) mod pack;
pub(crate) mod panels;
mod plan;
mod runs;
#[cfg(target_arch = "x86_64")]
mod runs_avx512;
pub(crate) mod share;
mod simd;
mod split_k;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod transpose_avx512;
mod transpose_portable;
mod transposed;

use crate::threads;
use blocked::Job;
pub(crate) use element::{Accumulator, Element};
use kernel::Kernel;
use pack::Strided;
use panels::Upcoming;
use share::part;
pub(crate) use simd::vectorized;
use std::ops::Range;

/// A strided matrix: element (i, j) stands at `data[i * row_stride + j * col_stride]`.
///
/// Strides may be 0 or negative.
#[derive(Clone, Copy)]
pub(crate) struct Mat<T> {
    pub data: *const T,
    pub row_stride: isize,
    pub col_stride: isize,
}

/// One product C = A B (+ C if `accumulate`): A is m x k, B is k x n, and C is m x n, row-major with
/// row stride `ldc`.
#[derive(Clone, Copy)]
pub(crate) struct Product<E: Element> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: Mat<E>,
    pub b: Mat<E>,
    pub c: *mut E::Acc,
    pub ldc: usize,
    pub accumulate: bool,
}

// SAFETY: threads only read A and B, and write disjoint regions of C.
unsafe impl<E: Element> Sync for Product<E> {}
// SAFETY: as above.
unsafe impl<E: Element> Send for Product<E> {}

/// Computes one product on all threads. `done(rows, cols)` is called once for every finished region
/// of C, from the thread that finished it; the regions are disjoint and cover C.
///
/// # Safety
/// A and B are readable, C is writable and overlaps neither.
pub(crate) unsafe fn gemm<E: Element>(p: &Product<E>, done: &(dyn Fn(Range<usize>, Range<usize>) + Sync)) {
    // SAFETY: passed on from the caller.
    unsafe { multiply(E::Acc::kernel(), threads::count(), p, done) }
}

/// Computes many products of the same m, n and k. `done(item, rows, cols)` is called once for every
/// finished region of every product.
///
/// # Safety
/// As for [`gemm`], for every product; no two of them share elements of C.
pub(crate) unsafe fn gemm_batched<E: Element>(
    items: usize,
    product_of: &(dyn Fn(usize) -> Product<E> + Sync),
    done: &(dyn Fn(usize, Range<usize>, Range<usize>) + Sync),
) {
    // SAFETY: passed on from the caller.
    unsafe { batched(E::Acc::kernel(), threads::count(), items, product_of, done) }
}

/// Multiply-adds that keep one thread busy long enough to be worth handing over.
const TASK: usize = 1 << 18;

unsafe fn batched<E: Element>(
    kernel: &'static Kernel<E::Acc>,
    threads: usize,
    items: usize,
    product_of: &(dyn Fn(usize) -> Product<E> + Sync),
    done: &(dyn Fn(usize, Range<usize>, Range<usize>) + Sync),
) {
    if items == 0 {
        return;
    }
    let first = product_of(0);
    let work = (first.m * first.n).saturating_mul(first.k.max(1)).max(1);
    if threads > 1 && items < 4 * threads && work >= 16 * TASK {
        for item in 0..items {
            let p = product_of(item);
            // SAFETY: passed on from the caller.
            unsafe { multiply(kernel, threads, &p, &|rows, cols| done(item, rows, cols)) };
        }
        return;
    }
    let tasks = (work.saturating_mul(items) / TASK).clamp(1, items).min(8 * threads);
    let task = |index: usize| {
        for item in items * index / tasks..items * (index + 1) / tasks {
            let p = product_of(item);
            // SAFETY: passed on from the caller.
            unsafe { multiply(kernel, 1, &p, &|rows, cols| done(item, rows, cols)) };
        }
    };
    if threads > 1 { threads::parallel_for(tasks, &task) } else { (0..tasks).for_each(task) }
}

/// Computes one product by the method its shape suggests. Whatever that is, a product of given shape
/// has the same bits for every number of threads.
unsafe fn multiply<E: Element>(
    kernel: &'static Kernel<E::Acc>,
    threads: usize,
    p: &Product<E>,
    done: &(dyn Fn(Range<usize>, Range<usize>) + Sync),
) {
    if p.m == 0 || p.n == 0 {
        return;
    }
    // SAFETY: passed on from the caller.
    unsafe {
        if p.k == 0 {
            if !p.accumulate {
                for i in 0..p.m {
                    std::slice::from_raw_parts_mut(p.c.add(i * p.ldc), p.n).fill(Default::default());
                }
            }
            done(0..p.m, 0..p.n);
        } else if gemv::fits(p) {
            gemv::run(kernel, threads, p, done);
        } else if transposed::fits(kernel, p) {
            transposed::run(kernel, threads, p, done);
        } else if let Some((parts, by_rows)) = independent_parts(kernel, threads, p) {
            threads::parallel_for(parts, &|index| {
                let (unit, total) = if by_rows { (kernel.mr, p.m) } else { (kernel.nr, p.n) };
                let own = part(total, unit, parts, index);
                let (rows, cols) = if by_rows { (own, 0..p.n) } else { (0..p.m, own) };
                let (i, j) = (rows.start, cols.start);
                job(kernel, 1, &p.region(rows, cols)).run(&|rows, cols| {
                    done(rows.start + i..rows.end + i, cols.start + j..cols.end + j);
                });
            });
        } else {
            job(kernel, threads, p).run(done);
        }
    }
}

/// Products of middling size are cut into parts that threads do without sharing anything: how many,
/// and whether by rows.
fn independent_parts<E: Element>(
    kernel: &Kernel<E::Acc>,
    threads: usize,
    p: &Product<E>,
) -> Option<(usize, bool)> {
    /// Lanes a part should have for the other operand, packed by every part, to be a small cost.
    const LANES: usize = 128;
    /// Multiply-adds, or elements of the other operand, below which sharing costs more than it brings.
    const MIN_SHARED_MULTIPLY_ADDS: usize = 64 << 20;
    const SMALL_OPERAND: usize = 1 << 18;
    let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
    if threads <= 1 || work < 2 * TASK {
        return None;
    }
    let by_rows = p.m > p.n;
    let (lanes, unit, other) =
        if by_rows { (p.m, kernel.mr, p.n * p.k) } else { (p.n, kernel.nr, p.m * p.k) };
    let parts = if lanes >= 16 * LANES * threads { 4 * threads } else { threads };
    let parts = parts.min(work / TASK).min(lanes.div_ceil(unit));
    let small = work < 16 * TASK;
    let cheap = lanes / parts >= LANES && (work <= MIN_SHARED_MULTIPLY_ADDS || other <= SMALL_OPERAND);
    // A small C of great depth is better split along k.
    let deep = p.m * p.n <= split_k::MAX_COPIED_ELEMENTS && p.k >= 4 * kernel.kc;
    (parts > 1 && !deep && (small || cheap)).then_some((parts, by_rows))
}

fn job<E: Element>(
    kernel: &'static Kernel<E::Acc>,
    threads: usize,
    p: &Product<E>,
) -> Job<E::Acc, Strided<E>, Strided<E>> {
    Job {
        kernel,
        m: p.m,
        n: p.n,
        k: p.k,
        a: Strided { data: p.a.data, lane_stride: p.a.row_stride, k_stride: p.a.col_stride },
        b: Strided { data: p.b.data, lane_stride: p.b.col_stride, k_stride: p.b.row_stride },
        c: p.c,
        ldc: p.ldc,
        accumulate: p.accumulate,
        threads,
        upcoming: Upcoming::NONE,
    }
}

impl<E: Element> Product<E> {
    /// The product that computes a region of C.
    fn region(&self, rows: Range<usize>, cols: Range<usize>) -> Product<E> {
        let a = self.a.data.wrapping_offset(rows.start as isize * self.a.row_stride);
        let b = self.b.data.wrapping_offset(cols.start as isize * self.b.col_stride);
        Product {
            m: rows.len(),
            n: cols.len(),
            a: Mat { data: a, ..self.a },
            b: Mat { data: b, ..self.b },
            c: self.c.wrapping_add(rows.start * self.ldc + cols.start),
            ..*self
        }
    }
}
