//! How a product is done: what is packed, what is read in place, and how C is shared out.

use super::blocked::Job;
use super::element::Accumulator;
use super::kernel::{Gather, Run};
use super::pack::{PanelSource, WIDEST, runs_of};
use super::panels::Panels;
use std::ops::Range;

/// Rows for which packing a panel of B just before its use costs little more than packing it once.
const JUST_IN_TIME: usize = if cfg!(test) { 60 } else { 600 };
/// Blocks of A that may each copy B on the way. Where a row of B is a power of two long, few lines of
/// the caches hold a panel of it, and reading it in place takes long.
const COPIES: usize = 4;
/// Multiply-adds that are worth a task of their own.
const TASK: usize = if cfg!(test) { 1 << 16 } else { 1 << 19 };

/// Where tasks find A: in place, packed as a whole, or not at all, so that each packs its rows.
#[derive(Clone, Copy)]
pub(super) enum A<T> {
    InPlace(Panels<T>),
    Whole(*const T),
    ByTask,
}
// SAFETY: only ever read.
unsafe impl<T: Sync> Sync for A<T> {}

/// Where tasks find the columns of B that they work on: in place, in place but to be copied when
/// first read, packed, or not at all, so that each packs panels as it needs them.
#[derive(Clone, Copy)]
pub(super) enum B<T> {
    InPlace(Panels<T>),
    Copied(Panels<T>),
    Packed(*const T),
    ByTask,
}
// SAFETY: only ever read.
unsafe impl<T: Sync> Sync for B<T> {}

impl<T: Accumulator, L: PanelSource<T>, R: PanelSource<T>> Job<T, L, R> {
    /// The depth of a block: blocks are equal but for the last, and whole cache lines, which suits
    /// the transpositions.
    pub(super) fn depth(&self) -> usize {
        self.k.div_ceil(self.k.div_ceil(self.kernel.kc)).next_multiple_of(16)
    }

    /// Reading A in place pays when each element is used once or twice, and the rows that a tile
    /// reads together do not compete for the same few lines of the cache.
    pub(super) fn a_in_place(&self) -> Option<Panels<T>> {
        let (data, row, col) = self.a.in_place()?;
        let (row_bytes, col_bytes) =
            (row.unsigned_abs() * size_of::<T>(), col.unsigned_abs() * size_of::<T>());
        let spread = row_bytes < 256 || (256..=4096 - 256).contains(&(row_bytes % 4096));
        let few = self.n <= 4 * self.kernel.nr && (col == 1 && spread || row == 1 && col_bytes <= 2048);
        (few || self.m * self.k <= 2048).then(|| Panels::in_place((data, row, col), self.kernel.mr))
    }

    /// How B can do without being packed beforehand, if that is best.
    pub(super) fn b_unpacked(&self, a_in_place: bool) -> Option<B<T>> {
        let kernel = self.kernel;
        // Rows as far apart as those of a packed panel would be taken for one, which is read to its full width.
        let seems_packed = |row: isize| row == kernel.nr as isize && !self.n.is_multiple_of(kernel.nr);
        if let Some((data, 1, row)) = self.b.in_place()
            && !seems_packed(row)
        {
            // Contiguous rows can be read in place, which pays when they are used a few times only,
            // and be copied on the way for more.
            let panels = Panels::in_place((data, 1, row), kernel.nr);
            if self.m <= 2 * kernel.mr || self.k * self.n <= 2048 {
                return Some(B::InPlace(panels));
            }
            if kernel.copies && !a_in_place && self.m <= COPIES * self.rows_in_cache(self.k) {
                return Some(B::Copied(panels));
            }
        }
        // Packing panels just before they are used keeps them near, but every task has to do it.
        (self.m <= JUST_IN_TIME.max(self.rows_in_cache(self.k))).then_some(B::ByTask)
    }

    /// How a panel of B can be gathered, if it can.
    pub(super) fn gather(&self, lanes: Range<usize>, ks: Range<usize>) -> Option<(*const T, Gather)> {
        let (data, runs, steps) = self.b.gathered()?;
        let mut own = [Run { lane: 0, len: 0, offset: 0 }; WIDEST];
        let count = runs_of(runs, lanes, &mut own);
        Some((data, Gather::new(&steps[ks], &own[..count], self.kernel.nr)?))
    }

    /// How many rows of A stay in the near cache while the columns pass by.
    pub(super) fn rows_in_cache(&self, depth: usize) -> usize {
        (self.kernel.l2 / depth.min(self.kernel.kc)).max(self.kernel.mr)
    }

    /// Into how many rows and columns of tasks a chunk of C is split.
    pub(super) fn grid(&self, cols: usize, depth: usize, a_by_task: bool) -> (usize, usize) {
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
