//! The blocked product: operands packed block by block, C computed region by region.
//!
//! Every element of C is the sum of one partial sum per block of k, added in order, and each partial
//! sum runs over its block in order. So neither the split of C between threads nor the choice
//! between packing an operand and reading it in place changes a bit of the result.

use super::buffer::with_scratch;
use super::element::Accumulator;
use super::kernel::{Kernel, Tile};
use super::pack::Source;
use super::split_k;
use crate::cpu::threads;
use std::ops::Range;
use std::ptr::{null, null_mut};

/// Columns of C finished together, so that they are still in cache when they are reported.
const REPORT: usize = 512;
/// Elements of B that are packed at a time.
const PACKED_B: usize = 4 << 20;
/// Elements of A that are packed as a whole, rather than by each task for its rows.
const WHOLE_A: usize = 1 << 18;
/// Rows for which packing a panel of B just before its use costs little more than packing it once.
const JUST_IN_TIME: usize = 600;
/// Multiply-adds that are worth a task of their own.
const TASK: usize = 1 << 19;

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

/// Where tasks find A: in place, packed as a whole, or not at all, so that each packs its rows.
#[derive(Clone, Copy)]
enum A<T> {
    InPlace(Panels<T>),
    Whole(*const T),
    ByTask,
}
// SAFETY: only ever read.
unsafe impl<T: Sync> Sync for A<T> {}

/// Where tasks find the columns of B that they work on: in place, in place but to be copied when
/// first read, packed, or not at all, so that each packs panels as it needs them.
#[derive(Clone, Copy)]
enum B<T> {
    InPlace(Panels<T>),
    Copied(Panels<T>),
    Packed(*const T),
    ByTask,
}
// SAFETY: only ever read.
unsafe impl<T: Sync> Sync for B<T> {}

/// Panels of an operand, packed or in place: element (lane, p) of panel q stands at
/// `data[q * panel_stride + lane * lane_stride + p * k_stride]`.
#[derive(Clone, Copy)]
pub(crate) struct Panels<T> {
    pub data: *const T,
    pub panel_stride: isize,
    pub lane_stride: isize,
    pub k_stride: isize,
}

// SAFETY: only ever read.
unsafe impl<T: Sync> Sync for Panels<T> {}

impl<T> Panels<T> {
    pub fn packed(data: *const T, width: usize, k: usize) -> Panels<T> {
        Panels { data, panel_stride: (width * k) as isize, lane_stride: 1, k_stride: width as isize }
    }

    fn in_place((data, lane_stride, k_stride): (*const T, isize, isize), width: usize) -> Panels<T> {
        Panels { data, panel_stride: lane_stride * width as isize, lane_stride, k_stride }
    }

    /// The panels from the given panel and k on.
    pub fn from(self, panel: usize, p: usize) -> Panels<T> {
        let shift = panel as isize * self.panel_stride + p as isize * self.k_stride;
        Panels { data: self.data.wrapping_offset(shift), ..self }
    }
}

/// A pointer that tasks share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<T>(pub *mut T);
// SAFETY: tasks write disjoint parts.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}

impl<T> Shared<T> {
    pub fn at(&self, index: usize) -> *mut T {
        self.0.wrapping_add(index)
    }
}

/// The part `index` of `0..total` split into `parts` nearly equal parts of whole `unit`s.
pub(crate) fn part(total: usize, unit: usize, parts: usize, index: usize) -> Range<usize> {
    let units = total.div_ceil(unit);
    let bound = |i: usize| (units * i / parts * unit).min(total);
    bound(index)..bound(index + 1)
}

/// The columns of B for one block of k, as [`multiply`] gets them.
pub(crate) enum Columns<'s, T> {
    /// Ready to be read.
    Ready(Panels<T>),
    /// To be read in place once, and copied to the scratch memory for the rows that follow.
    Copied(Panels<T>, *mut T),
    /// To be packed into the scratch memory, panel by panel, by a function of their numbers.
    Packed(&'s dyn Fn(Range<usize>, *mut T), *mut T),
}

/// `C (+)= A B` for one block of k, tile by tile.
///
/// # Safety
/// The panels hold `rows` and `cols` lanes of depth `k`, and C is writable.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn multiply<T: Accumulator>(
    kernel: &Kernel<T>,
    k: usize,
    a: Panels<T>,
    b: &Columns<T>,
    c: *mut T,
    ldc: usize,
    (rows, cols): (usize, usize),
    accumulate: bool,
) {
    for (panel, j) in (0..cols).step_by(kernel.nr).enumerate() {
        let width = kernel.nr.min(cols - j);
        let mut copy = null_mut();
        let mut columns = match *b {
            Columns::Ready(b) => b.from(panel, 0),
            Columns::Copied(b, scratch) => {
                if rows > kernel.mr {
                    copy = scratch;
                }
                b.from(panel, 0)
            }
            Columns::Packed(pack, scratch) => {
                pack(j..j + width, scratch);
                Panels::packed(scratch.cast_const(), kernel.nr, k)
            }
        };
        // The first two tiles fetch half of the next panel each.
        let next = match *b {
            Columns::Ready(b) | Columns::Copied(b, _) if j + kernel.nr < cols => b.from(panel + 1, 0),
            _ => Panels { data: null(), panel_stride: 0, lane_stride: 0, k_stride: 0 },
        };
        let half = kernel.nr / 2;
        let (stride, half) = if next.k_stride == kernel.nr as isize {
            (half as isize, k * half)
        } else {
            (next.k_stride, half)
        };
        for (panel, i) in (0..rows).step_by(kernel.mr).enumerate() {
            let a = a.from(panel, 0);
            // SAFETY: the tile lies inside the block.
            unsafe {
                (kernel.tile)(&Tile {
                    k,
                    a: a.data,
                    a_row: a.lane_stride,
                    a_col: a.k_stride,
                    b: columns.data,
                    b_row: columns.k_stride,
                    c: c.wrapping_add(i * ldc + j),
                    ldc,
                    rows: kernel.mr.min(rows - i),
                    cols: width,
                    accumulate,
                    b_copy: copy,
                    soon: if panel < 2 { next.data.wrapping_add(panel * half) } else { null() },
                    soon_stride: if panel < 2 { stride } else { 0 },
                });
            }
            if !copy.is_null() {
                columns = Panels::packed(copy.cast_const(), kernel.nr, k);
                copy = null_mut();
            }
        }
    }
}

impl<T: Accumulator, L: Source<T>, R: Source<T>> Job<T, L, R> {
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
    pub(super) unsafe fn run_unsplit(&self, done: &(dyn Fn(Range<usize>, Range<usize>) + Sync)) {
        let kernel = self.kernel;
        let kc = self.depth();
        let padded_m = self.m.next_multiple_of(kernel.mr);
        if let Some(panels) = self.a_in_place() {
            // SAFETY: passed on from the caller.
            return unsafe { self.with_a(A::InPlace(panels), kc, done) };
        }
        if padded_m * self.k > WHOLE_A {
            // SAFETY: passed on from the caller.
            return unsafe { self.with_a(A::ByTask, kc, done) };
        }
        with_scratch::<T, _>(padded_m * self.k, |scratch| {
            let packed = Shared(scratch);
            let operand = Packing { source: &self.a, width: kernel.mr, origin: 0, lanes: self.m };
            // SAFETY: the scratch takes all of A.
            unsafe {
                self.pack_all(&operand, 0..self.k, kc, packed);
                self.with_a(A::Whole(scratch), kc, done);
            }
        });
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

    /// The depth of a block: blocks are equal but for the last, and whole cache lines, which suits
    /// the transpositions.
    fn depth(&self) -> usize {
        self.k.div_ceil(self.k.div_ceil(self.kernel.kc)).next_multiple_of(16)
    }

    /// Reading A in place pays when each element is used once or twice, and the rows that a tile
    /// reads together do not compete for the same few lines of the cache.
    fn a_in_place(&self) -> Option<Panels<T>> {
        let (data, row, col) = self.a.in_place()?;
        let (row_bytes, col_bytes) =
            (row.unsigned_abs() * size_of::<T>(), col.unsigned_abs() * size_of::<T>());
        let spread = row_bytes < 256 || (256..=4096 - 256).contains(&(row_bytes % 4096));
        let few = self.n <= 4 * self.kernel.nr && (col == 1 && spread || row == 1 && col_bytes <= 2048);
        (few || self.m * self.k <= 2048).then(|| Panels::in_place((data, row, col), self.kernel.mr))
    }

    /// How B can do without being packed beforehand, if that is best.
    fn b_unpacked(&self, a_in_place: bool) -> Option<B<T>> {
        let kernel = self.kernel;
        if let Some((data, 1, row)) = self.b.in_place() {
            // Contiguous rows can be read in place, which pays when they are used a few times only,
            // and be copied on the way for more.
            let panels = Panels::in_place((data, 1, row), kernel.nr);
            if self.m <= 2 * kernel.mr || self.k * self.n <= 2048 {
                return Some(B::InPlace(panels));
            }
            if kernel.copies && !a_in_place {
                return Some(B::Copied(panels));
            }
        }
        // Packing panels just before they are used keeps them near, but every task has to do it.
        (self.m <= JUST_IN_TIME.max(self.rows_in_cache(self.k))).then_some(B::ByTask)
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
                        let pack = |lanes: Range<usize>, dst: *mut T| {
                            let lanes = origin + lanes.start..origin + lanes.end;
                            let ks = block.clone();
                            // SAFETY: the columns lie inside B, and the scratch takes a panel.
                            unsafe { self.b.pack(kernel, kernel.nr, lanes, ks, dst, 0) };
                        };
                        let b = match *b {
                            B::InPlace(b) => Columns::Ready(b.from(origin / kernel.nr, block.start)),
                            B::Copied(b) => Columns::Copied(b.from(origin / kernel.nr, block.start), panel),
                            B::Packed(b) => {
                                let at = b.wrapping_add((start - ks.start) * padded_n);
                                let panels = Panels::packed(at, kernel.nr, block.len());
                                Columns::Ready(panels.from(first / kernel.nr, 0))
                            }
                            B::ByTask => Columns::Packed(&pack, panel),
                        };
                        let add = self.accumulate || start > 0;
                        let size = (rows.len(), last - first);
                        // SAFETY: the region lies inside C, and its panels are ready.
                        unsafe { multiply(kernel, block.len(), a, &b, c, self.ldc, size, add) };
                        if block.end == self.k {
                            done(rows.clone(), cols.start + first..cols.start + last);
                        }
                    }
                }
            });
        });
    }

    /// Packs an operand for the depth `ks`, block by block, on all threads.
    unsafe fn pack_all<S: Source<T>>(
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

    /// How many rows of A stay in the near cache while the columns pass by.
    fn rows_in_cache(&self, depth: usize) -> usize {
        (self.kernel.l2 / depth.min(self.kernel.kc)).max(self.kernel.mr)
    }

    /// Into how many rows and columns of tasks a chunk of C is split.
    fn grid(&self, cols: usize, depth: usize, a_by_task: bool) -> (usize, usize) {
        let kernel = self.kernel;
        let needed = self.m.div_ceil(self.rows_in_cache(depth));
        let work = self.m.saturating_mul(cols).saturating_mul(depth);
        let wanted = if self.threads <= 1 { 1 } else { (work / TASK).min(4 * self.threads) };
        if wanted <= 1 {
            return (needed, 1);
        }
        // Whole rows first; each task keeps enough rows for the panels of B to pay. Where tasks pack
        // A for themselves, only rows.
        let most = self.m.div_ceil(kernel.mr);
        let rows = (self.m / (6 * kernel.mr)).clamp(1, wanted).max(needed);
        if a_by_task && rows >= self.threads {
            return (rows, 1);
        }
        let columns = wanted.div_ceil(rows).min(cols.div_ceil(kernel.nr));
        (rows.max(wanted / columns).min(most), columns)
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
        S: Source<T>,
    {
        let at = dst.wrapping_add(lanes.start * ks.len() + depth.start * self.width);
        let lanes = self.origin + lanes.start..self.origin + lanes.end;
        let depth = ks.start + depth.start..ks.start + depth.end;
        // SAFETY: passed on from the caller.
        unsafe { self.source.pack(kernel, self.width, lanes, depth, at, self.width * ks.len()) }
    }
}
