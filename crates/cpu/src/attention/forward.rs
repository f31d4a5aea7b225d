//! The forward pass: for a block of queries, one sweep over the blocks of keys.

use super::float::Float;
use super::isa::WithLanes;
use super::lanes::{LaneWork, Lanes};
use super::pack::{Grid, Packed, Panels, pack_rows, packed_len, padded, panel_width, panels_len};
use super::product::{Product, Trim};
use super::scratch::{Scratch, spread};
use super::softmax::{Block, OnlineSoftmax};
use super::{AttentionShape, Rows, kept};

/// Queries and keys of a block of scores.
const QUERIES: usize = 64;
const KEYS: usize = 128;

/// The arguments of the forward pass.
pub(super) struct Forward<'a, T> {
    pub shape: &'a AttentionShape,
    pub threads: usize,
    pub q: Rows<T>,
    pub k: Rows<T>,
    pub v: Rows<T>,
    pub mask: Option<Rows<T>>,
    /// Written.
    pub out: Rows<T>,
    /// [`kept`] numbers of each query.
    pub lse: *mut T,
}

// SAFETY: the inputs are only read, and tasks write disjoint rows of the outputs.
unsafe impl<T: Sync> Sync for Forward<'_, T> {}

impl<T: Float> WithLanes<T> for Forward<'_, T> {
    fn run<L: Lanes<Elem = T>>(self) {
        let s = self.shape;
        let heads = s.batch * s.heads;
        if heads * s.queries == 0 {
            return;
        }
        // A task per head packs the keys once; with few heads, a head is cut into runs
        // of query blocks that each pack for themselves.
        let blocks = s.queries.div_ceil(QUERIES);
        let runs = if heads >= 4 * self.threads || self.threads == 1 {
            1
        } else {
            (4 * self.threads).div_ceil(heads).min(blocks)
        };
        let run = blocks.div_ceil(runs);
        let runs = blocks.div_ceil(run);
        spread(self.threads, heads * runs, self.scratch::<L>(), &|task, scratch| {
            // The last queries see the most keys: the largest tasks first.
            let (head, first) = (task / runs, (runs - 1 - task % runs) * run);
            let queries = first * QUERIES..s.queries.min((first + run) * QUERIES);
            // SAFETY: the caller of the forward pass vouches for the pointers, and the
            // scratch has the size asked for.
            unsafe { self.queries::<L>(head, queries, scratch) }
        });
    }
}

/// The pieces of scratch of a task.
struct Space<T> {
    scores: *mut T,
    score_row: usize,
    out: *mut T,
    maxima: *mut T,
    sums: *mut T,
}

impl<T: Float> Forward<'_, T> {
    /// Scratch elements of a task.
    fn scratch<L: Lanes<Elem = T>>(&self) -> usize {
        let s = self.shape;
        let (q, v) = (self.q.head(0, 0), self.v.head(0, 0));
        [
            panels_len::<L>(s.keys, s.width),
            packed_len::<L>(v, s.keys, s.value_width),
            packed_len::<L>(q, QUERIES, s.width),
            QUERIES * self.score_row::<L>(),
            QUERIES * padded::<L>(s.value_width),
            QUERIES,
            QUERIES,
        ]
        .map(Scratch::<T>::piece)
        .iter()
        .sum()
    }

    /// Step from row to row of the scores: one vector more than needed, for rows a
    /// power of two apart share their cache sets.
    fn score_row<L: Lanes>(&self) -> usize {
        padded::<L>(self.shape.keys.min(KEYS)) + L::N
    }

    /// # Safety
    /// The pointers are valid, `scratch` has [`Self::scratch`] elements.
    unsafe fn queries<L: Lanes<Elem = T>>(
        &self,
        head: usize,
        queries: std::ops::Range<usize>,
        scratch: &mut Scratch<T>,
    ) {
        let s = self.shape;
        let (batch, h) = (head / s.heads, head % s.heads);
        let [q, k, v] = [self.q, self.k, self.v].map(|x| x.head(batch, h));
        let mask = self.mask.map(|m| m.head(batch, h));
        let seen = s.seen(queries.end);
        let panels = scratch.carve(panels_len::<L>(s.keys, s.width));
        let values = scratch.carve(packed_len::<L>(v, s.keys, s.value_width));
        let rows = scratch.carve(packed_len::<L>(q, QUERIES, s.width));
        let space = Space {
            scores: scratch.carve(QUERIES * self.score_row::<L>()),
            score_row: self.score_row::<L>(),
            out: scratch.carve(QUERIES * padded::<L>(s.value_width)),
            maxima: scratch.carve(QUERIES),
            sums: scratch.carve(QUERIES),
        };
        // SAFETY: the matrices of this head, and the scratch carved for each.
        unsafe {
            L::call(Panels { grid: k, rows: seen, width: s.width, scale: T::from_f64(s.scale), to: panels });
            let values = pack_rows::<L>(v, seen, s.value_width, values);
            for first in queries.clone().step_by(QUERIES) {
                let count = QUERIES.min(queries.end - first);
                let q = pack_rows::<L>(q.from(first, 0), count, s.width, rows);
                let mask = mask.map(|m| m.from(first, 0));
                self.block::<L>(first, count, q, panels, values, mask, &space);
                let out = self.out.head(batch, h).from(first, 0);
                L::call(Finish {
                    space: &space,
                    rows: count,
                    width: s.value_width,
                    out: out.data.cast_mut(),
                    out_row: out.row,
                    lse: self.lse.add((head * s.queries + first) * kept(self.mask.is_some())),
                    kept: kept(self.mask.is_some()),
                });
            }
        }
    }

    /// Sweeps the keys for the `count` queries from `first` on.
    ///
    /// # Safety
    /// The operands are those of the head, the space is large enough.
    #[expect(clippy::too_many_arguments)]
    unsafe fn block<L: Lanes<Elem = T>>(
        &self,
        first: usize,
        count: usize,
        q: Packed<T>,
        panels: *const T,
        values: Packed<T>,
        mask: Option<Grid<T>>,
        space: &Space<T>,
    ) {
        let s = self.shape;
        let seen = s.seen(first + count);
        if seen == 0 {
            // SAFETY: the statistics have QUERIES elements.
            unsafe { space.sums.write_bytes(0, count) };
        }
        for key in (0..seen).step_by(KEYS) {
            let keys = KEYS.min(seen - key);
            let causal = s.causal_offset(first, key, keys);
            // SAFETY: the operands start at `first` and `key` and have that many rows.
            unsafe {
                L::call(Product {
                    a: q.data,
                    a_row: q.row,
                    a_transposed: false,
                    b: panels.add(key * s.width),
                    b_row: panel_width::<L>(),
                    b_panel: panel_width::<L>() * s.width,
                    c: space.scores,
                    c_row: space.score_row,
                    rows: count,
                    cols: padded::<L>(keys),
                    depth: s.width,
                    add: false,
                    trim: causal.map_or(Trim::None, Trim::Columns),
                });
                L::call(OnlineSoftmax {
                    block: Block {
                        scores: space.scores,
                        row: space.score_row,
                        rows: count,
                        cols: keys,
                        causal,
                        mask: mask.map(|m| m.from(0, key)),
                    },
                    maxima: space.maxima,
                    sums: space.sums,
                    out: space.out,
                    out_cols: padded::<L>(s.value_width),
                    first: key == 0,
                });
                let values = values.from(key);
                L::call(Product {
                    a: space.scores,
                    a_row: space.score_row,
                    a_transposed: false,
                    b: values.data,
                    b_row: values.row,
                    b_panel: panel_width::<L>(),
                    c: space.out,
                    c_row: padded::<L>(s.value_width),
                    rows: count,
                    cols: padded::<L>(s.value_width),
                    depth: keys,
                    add: key > 0,
                    trim: causal.map_or(Trim::None, Trim::DepthEnd),
                });
            }
        }
    }
}

/// Divides by the sums and writes the rows of the output and their log-sum-exp.
struct Finish<'a, T> {
    space: &'a Space<T>,
    rows: usize,
    width: usize,
    out: *mut T,
    out_row: isize,
    lse: *mut T,
    kept: usize,
}

impl<L: Lanes> LaneWork<L> for Finish<'_, L::Elem> {
    #[inline(always)]
    unsafe fn run(self) {
        let wide = padded::<L>(self.width);
        for i in 0..self.rows {
            // SAFETY: row i of the scratch and of the outputs.
            unsafe {
                let from = self.space.out.add(i * wide);
                let to = self.out.offset(i as isize * self.out_row);
                let (sum, lse) = (*self.space.sums.add(i), self.lse.add(i * self.kept));
                // No key at all, or only masked ones; a NaN is not caught here.
                if sum == L::Elem::ZERO {
                    (0..self.width).for_each(|c| *to.add(c) = L::Elem::ZERO);
                    *lse = L::Elem::NEG_INFINITY;
                    if self.kept > 1 {
                        *lse.add(1) = L::Elem::ONE;
                    }
                    continue;
                }
                let by = sum.recip();
                (0..self.width).for_each(|c| *to.add(c) = *from.add(c) * by);
                let largest = *self.space.maxima.add(i);
                *lse = largest + sum.ln();
                if self.kept > 1 {
                    *lse.add(1) = (*lse - largest).exp() * by;
                }
            }
        }
    }
}
