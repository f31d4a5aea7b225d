//! The blocked product: operands packed block by block, C computed region by region.
//!
//! Every element of C is the sum of one partial sum per block of k, added in order, and each partial
//! sum runs over its block in order. So neither the split of C between threads nor the choice
//! between packing an operand and reading it in place changes a bit of the result.

use super::buffer::with_scratch;
use super::element::Accumulator;
use super::kernel::Kernel;
use super::pack::PanelSource;
use super::panels::{Columns, Panels, Upcoming, multiply};
use super::plan::{A, B};
use super::share::{Shared, part};
use super::split_k;
use crate::threads;
use std::ops::Range;

/// Columns of C finished together, so that they are still in cache when they are reported.
const REPORT: usize = 512;
/// Elements of B that are packed at a time. (Few in tests, so that small products go all ways.)
const PACKED_B: usize = if cfg!(test) { 1 << 14 } else { 4 << 20 };
/// Elements of A that are packed as a whole, rather than by each task for its rows.
const WHOLE_A: usize = if cfg!(test) { 1 << 13 } else { 1 << 18 };
/// Panels and depth that are packed as one piece.
const PIECE_PANELS: usize = 16;
const PIECE_DEPTH: usize = 128;

/// A product to be done.
pub(crate) struct Job<T: 'static, L, R> {
    pub kernel: &'static Kernel<T>,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: L,
    pub b: R,
    pub c: *mut T,
    pub ldc: usize,
    pub accumulate: bool,
    /// How many threads may work on it; 1 keeps it on the calling thread.
    pub threads: usize,
    pub upcoming: Upcoming<T>,
}

// SAFETY: tasks write disjoint regions of C.
unsafe impl<T, L: Sync, R: Sync> Sync for Job<T, L, R> {}

/// An operand to be packed: `lanes` of them from `origin` on, in panels of `width`.
struct Packing<'s, S> {
    source: &'s S,
    width: usize,
    origin: usize,
    lanes: usize,
}

impl<T: Accumulator, L: PanelSource<T>, R: PanelSource<T>> Job<T, L, R> {
    /// Computes C, reporting every finished region.
    ///
    /// # Safety
    /// The operands are readable and C is writable, apart from them; no dimension is 0.
    pub unsafe fn run(&self, done: &(dyn Fn(Range<usize>, Range<usize>) + Sync)) {
        // SAFETY: passed on from the caller.
        unsafe {
            if self.threads <= 1 || !split_k::run(self, self.depth(), done) {
                self.run_unsplit(done);
            }
        }
    }

    /// Computes C without splitting k between threads.
    ///
    /// # Safety
    /// As for `run`.
    pub unsafe fn run_unsplit(&self, done: &(dyn Fn(Range<usize>, Range<usize>) + Sync)) {
        let kc = self.depth();
        if let Some(panels) = self.a_in_place() {
            // SAFETY: passed on from the caller.
            return unsafe { self.with_a(A::InPlace(panels), kc, done) };
        }
        if self.packed_a_len() > WHOLE_A {
            // SAFETY: passed on from the caller.
            return unsafe { self.with_a(A::ByTask, kc, done) };
        }
        with_scratch::<T, _>(self.packed_a_len(), |scratch| {
            // SAFETY: the scratch takes all of A.
            unsafe {
                self.pack_a(scratch);
                self.run_packed(scratch, done);
            }
        });
    }

    /// How many elements A has when packed as a whole.
    pub fn packed_a_len(&self) -> usize {
        self.m.next_multiple_of(self.kernel.mr) * self.k
    }

    /// Packs A as a whole, for [`Job::run_packed`] of any job with the same A.
    ///
    /// # Safety
    /// A is readable, and `dst` takes `packed_a_len` elements.
    pub unsafe fn pack_a(&self, dst: *mut T) {
        let operand = Packing { source: &self.a, width: self.kernel.mr, origin: 0, lanes: self.m };
        // SAFETY: passed on from the caller.
        unsafe { self.pack_all(&operand, 0..self.k, self.depth(), Shared(dst)) }
    }

    /// Computes C from a packed A.
    ///
    /// # Safety
    /// As for `run`, and `packed_a` was written by `pack_a`.
    pub unsafe fn run_packed(&self, packed_a: *const T, done: &(dyn Fn(Range<usize>, Range<usize>) + Sync)) {
        // SAFETY: passed on from the caller.
        unsafe { self.with_a(A::Whole(packed_a), self.depth(), done) }
    }

    /// Computes C once it is settled where A is.
    unsafe fn with_a(&self, a: A<T>, kc: usize, done: &(dyn Fn(Range<usize>, Range<usize>) + Sync)) {
        let kernel = self.kernel;
        // SAFETY: passed on from the caller; the ranges lie inside the product.
        unsafe {
            if let Some(b) = self.b_unpacked(matches!(a, A::InPlace(_))) {
                return self.chunk(a, b, 0..self.n, 0..self.k, kc, done);
            }
        }
        // B is packed as much at a time as stays in the far cache until it has been used.
        let (chunk, nc) = if self.k.saturating_mul(self.n) <= PACKED_B {
            (self.k, self.n)
        } else {
            let chunk = ((PACKED_B / (8 * kernel.nr)).max(kc) / kc * kc).min(self.k);
            let nc = (PACKED_B / chunk).max(kernel.nr) / kernel.nr * kernel.nr;
            let pieces = self.n.div_ceil(nc);
            (chunk, self.n.div_ceil(pieces).next_multiple_of(kernel.nr))
        };
        for first in (0..self.n).step_by(nc) {
            let cols = first..(first + nc).min(self.n);
            for start in (0..self.k).step_by(chunk) {
                let ks = start..(start + chunk).min(self.k);
                let padded = cols.len().next_multiple_of(kernel.nr);
                with_scratch::<T, _>(padded * ks.len(), |scratch| {
                    let (origin, lanes) = (cols.start, cols.len());
                    let operand = Packing { source: &self.b, width: kernel.nr, origin, lanes };
                    // SAFETY: the scratch takes the columns.
                    unsafe {
                        self.pack_all(&operand, ks.clone(), kc, Shared(scratch));
                        self.chunk(a, B::Packed(scratch), cols.clone(), ks, kc, done);
                    }
                });
            }
        }
    }

    /// Runs tasks on the pool, or inline.
    fn each(&self, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
        if self.threads <= 1 {
            (0..tasks).for_each(f);
        } else {
            threads::parallel_for(tasks, f);
        }
    }

    /// The contribution of the given depth (whole blocks of `kc`) to the given columns.
    unsafe fn chunk(
        &self,
        a: A<T>,
        b: B<T>,
        cols: Range<usize>,
        ks: Range<usize>,
        kc: usize,
        done: &(dyn Fn(Range<usize>, Range<usize>) + Sync),
    ) {
        let kernel = self.kernel;
        let (grid_rows, grid_cols) = self.grid(cols.len(), ks.len(), matches!(a, A::ByTask));
        let padded_m = self.m.next_multiple_of(kernel.mr);
        let padded_n = cols.len().next_multiple_of(kernel.nr);
        let may_gather = kernel.copies && !matches!(a, A::InPlace(_));
        let (a, b) = (&a, &b);
        self.each(grid_rows * grid_cols, &|index| {
            let rows = part(self.m, kernel.mr, grid_rows, index / grid_cols);
            let own = part(cols.len(), kernel.nr, grid_cols, index % grid_cols);
            if rows.is_empty() || own.is_empty() {
                return;
            }
            let by_task = if matches!(a, A::ByTask) { rows.len() + kernel.mr } else { 0 };
            with_scratch::<T, _>((by_task + kernel.nr) * kc, |panel| {
                let own_a = panel.wrapping_add(kernel.nr * kc);
                let mut upcoming = self.upcoming;
                for start in ks.clone().step_by(kc) {
                    let block = start..(start + kc).min(ks.end);
                    let a = match *a {
                        A::InPlace(a) => a.from(rows.start / kernel.mr, block.start),
                        A::Whole(a) => {
                            Panels::packed(a.wrapping_add(start * padded_m), kernel.mr, block.len())
                                .from(rows.start / kernel.mr, 0)
                        }
                        A::ByTask => {
                            let (origin, lanes) = (rows.start, rows.len());
                            let operand = Packing { source: &self.a, width: kernel.mr, origin, lanes };
                            // SAFETY: the rows lie inside A, and the scratch takes them.
                            unsafe {
                                operand.pack(kernel, 0..lanes, block.clone(), 0..block.len(), own_a);
                            }
                            Panels::packed(own_a, kernel.mr, block.len())
                        }
                    };
                    for first in own.clone().step_by(REPORT) {
                        let last = (first + REPORT).min(own.end);
                        let c = self.c.wrapping_add(rows.start * self.ldc + cols.start + first);
                        let origin = cols.start + first;
                        let prepare = |lanes: Range<usize>, dst: *mut T| {
                            let lanes = origin + lanes.start..origin + lanes.end;
                            let ks = block.clone();
                            if may_gather
                                && rows.len() >= kernel.mr
                                && let Some(gather) = self.gather(lanes.clone(), ks.clone())
                            {
                                return Some(gather);
                            }
                            // SAFETY: the columns lie inside B, and the scratch takes a panel.
                            unsafe { self.b.pack(kernel, kernel.nr, lanes, ks, dst, 0) };
                            None
                        };
                        let b = match *b {
                            B::InPlace(b) => Columns::Ready(b.from(origin / kernel.nr, block.start)),
                            B::Copied(b) => Columns::Copied(b.from(origin / kernel.nr, block.start), panel),
                            B::Packed(b) => {
                                let at = b.wrapping_add((start - ks.start) * padded_n);
                                let panels = Panels::packed(at, kernel.nr, block.len());
                                Columns::Ready(panels.from(first / kernel.nr, 0))
                            }
                            B::ByTask => Columns::Prepared(&prepare, panel),
                        };
                        let add = self.accumulate || start > 0;
                        let size = (rows.len(), last - first);
                        // SAFETY: the region lies inside C, and its panels are ready.
                        unsafe {
                            multiply(kernel, block.len(), a, &b, c, self.ldc, size, add, &mut upcoming);
                        }
                        if block.end == self.k {
                            done(rows.clone(), cols.start + first..cols.start + last);
                        }
                    }
                }
            });
        });
    }

    /// Packs an operand for the depth `ks`, block by block, on all threads.
    unsafe fn pack_all<S: PanelSource<T>>(
        &self,
        operand: &Packing<'_, S>,
        ks: Range<usize>,
        kc: usize,
        dst: Shared<T>,
    ) {
        let padded = operand.lanes.next_multiple_of(operand.width);
        let across = operand.lanes.div_ceil(operand.width * PIECE_PANELS);
        let deep = if self.threads <= 1 { 1 } else { kc.div_ceil(PIECE_DEPTH) };
        self.each(ks.len().div_ceil(kc) * across * deep, &|index| {
            let (q, piece) = (index / (across * deep), index % (across * deep));
            let block = ks.start + q * kc..(ks.start + (q + 1) * kc).min(ks.end);
            let lanes = part(operand.lanes, operand.width, across, piece / deep);
            let depth = part(block.len(), 16, deep, piece % deep);
            // SAFETY: the panels lie inside the operand, and have their own place in dst.
            unsafe { operand.pack(self.kernel, lanes, block, depth, dst.at(q * kc * padded)) };
        });
    }
}

impl<S> Packing<'_, S> {
    /// Packs some lanes, from the start of a panel, by a part of the depth of the block `ks`; the
    /// operand's first panel has its place at `dst`.
    unsafe fn pack<T: Accumulator>(
        &self,
        kernel: &Kernel<T>,
        lanes: Range<usize>,
        ks: Range<usize>,
        depth: Range<usize>,
        dst: *mut T,
    ) where
        S: PanelSource<T>,
    {
        let at = dst.wrapping_add(lanes.start * ks.len() + depth.start * self.width);
        let lanes = self.origin + lanes.start..self.origin + lanes.end;
        let depth = ks.start + depth.start..ks.start + depth.end;
        // SAFETY: passed on from the caller.
        unsafe { self.source.pack(kernel, self.width, lanes, depth, at, self.width * ks.len()) }
    }
}
