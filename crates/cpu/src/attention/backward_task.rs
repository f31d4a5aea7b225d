//! The tasks of the backward pass: a head, a block of its keys, a block of its queries.

use std::ops::Range;

use super::backward::Backward;
use super::backward_space::{KEYS, QUERIES, Space};
use super::float::Float;
use super::kept;
use super::lanes::Lanes;
use super::pack::{Grid, Packed, Panels, pack_rows, padded, panel_width};
use super::product::{Product, Trim};
use super::scratch::Scratch;
use super::softmax::{Block, Deltas, ScoreGradient};
use super::sums::{Left, Sums};

/// A block of queries and one of keys.
struct Pair {
    first: usize,
    key: usize,
    rows: usize,
    cols: usize,
    /// See [`Block::causal`].
    causal: Option<isize>,
}

/// One head, restricted to some of its queries.
pub(super) struct Task<'a, T> {
    job: &'a Backward<'a, T>,
    head: usize,
    queries: Range<usize>,
    /// Where the gradients go.
    dq: Grid<T>,
    dk: Grid<T>,
    dv: Grid<T>,
    /// The rows of these queries.
    q: Packed<T>,
    grad: Packed<T>,
    k: Grid<T>,
    v: Grid<T>,
    mask: Option<Grid<T>>,
    space: Space<T>,
}

impl<'a, T: Float> Task<'a, T> {
    /// Packs what is needed of the queries.
    ///
    /// # Safety
    /// The pointers of the job are valid, `scratch` has [`Space::len`] elements.
    pub(super) unsafe fn new<L: Lanes<Elem = T>>(
        job: &'a Backward<'a, T>,
        head: usize,
        queries: Range<usize>,
        scratch: &mut Scratch<T>,
    ) -> Self {
        let s = job.shape;
        let (batch, h) = (head / s.heads, head % s.heads);
        let [q, k, v, out, grad] = [job.q, job.k, job.v, job.out, job.grad].map(|x| x.head(batch, h));
        let [dq, dk, dv] = [job.dq, job.dk, job.dv].map(|x| x.head(batch, h));
        let [q, out, grad] = [q, out, grad].map(|x| x.from(queries.start, 0));
        let space = Space::new::<L>(job, scratch);
        let at = head * s.queries + queries.start;
        // SAFETY: the matrices of this head, and the scratch carved for each.
        let (q, grad) = unsafe {
            L::call(Deltas {
                out,
                grad,
                grad_lse: job.grad_lse.map(|p| p.add(at)),
                to: space.delta,
                rows: queries.len(),
                width: s.value_width,
            });
            (
                pack_rows::<L>(q, queries.len(), s.width, space.q),
                pack_rows::<L>(grad, queries.len(), s.value_width, space.grad),
            )
        };
        let mask = job.mask.map(|m| m.head(batch, h));
        Self { job, head, queries, dq, dk, dv, q, grad, k, v, mask, space }
    }

    /// All gradients of the head.
    ///
    /// # Safety
    /// As for `new`, with all queries.
    pub(super) unsafe fn head<L: Lanes<Elem = T>>(&self) {
        // SAFETY: the caller's contract; the key blocks together make dQ.
        unsafe {
            let dq = self.start_dq::<L>();
            for key in (0..self.job.shape.keys).step_by(KEYS) {
                self.keys::<L>(key, Some(&dq));
            }
            dq.finish::<L>(T::from_f64(self.job.shape.scale));
        }
    }

    /// dK and dV of the block of keys from `key` on, and what it adds to dQ if that is
    /// asked for, with the gradient of the mask.
    ///
    /// # Safety
    /// As for `new`; the task has every query block that sees one of the keys.
    pub(super) unsafe fn keys<L: Lanes<Elem = T>>(&self, key: usize, dq: Option<&Sums<T>>) {
        let (s, space) = (self.job.shape, &self.space);
        let count = KEYS.min(s.keys - key);
        let blind = if s.causal { key / QUERIES * QUERIES } else { 0 };
        let start = self.queries.start.max(blind);
        // SAFETY: the caller's contract; results and operands start at `key` and at
        // `first` and have that many rows.
        unsafe {
            let dk = Sums::new::<L>(self.dk.from(key, 0), count, s.width, space.dk);
            let dv = Sums::new::<L>(self.dv.from(key, 0), count, s.value_width, space.dv);
            if start >= self.queries.end {
                dk.clear();
                dv.clear();
            }
            let k = self.pack_keys::<L>(key);
            for first in (start..self.queries.end).step_by(QUERIES) {
                let pair = self.pair(first, key);
                self.block::<L>(&pair, dq.is_some());
                let row = first - self.queries.start;
                let left = |data| self.transposed(data, &pair, first == start);
                dv.add::<L>(0, left(space.scores), self.grad.from(row));
                dk.add::<L>(0, left(space.grads), self.q.from(row));
                if let Some(dq) = dq {
                    dq.add::<L>(row, self.score_grads(&pair), k);
                }
            }
            dk.finish::<L>(T::from_f64(s.scale));
            dv.finish::<L>(T::ONE);
        }
    }

    /// dQ of the queries of the task, which are one block, and their rows of the
    /// mask's gradient.
    ///
    /// # Safety
    /// As for `new`.
    pub(super) unsafe fn queries<L: Lanes<Elem = T>>(&self) {
        let s = self.job.shape;
        // SAFETY: the caller's contract.
        unsafe {
            let dq = self.start_dq::<L>();
            for key in (0..s.seen(self.queries.end)).step_by(KEYS) {
                let k = self.pack_keys::<L>(key);
                let pair = self.pair(self.queries.start, key);
                self.block::<L>(&pair, true);
                dq.add::<L>(0, self.score_grads(&pair), k);
            }
            dq.finish::<L>(T::from_f64(s.scale));
        }
    }

    /// The sums of dQ of the queries of the task; the mask's gradient is cleared if
    /// causality leaves gaps in it.
    ///
    /// # Safety
    /// As for `new`.
    unsafe fn start_dq<L: Lanes<Elem = T>>(&self) -> Sums<T> {
        let s = self.job.shape;
        let at = self.head * s.queries + self.queries.start;
        let rows = self.queries.len();
        // SAFETY: these rows of dQ and of the mask's gradient belong to the task; all
        // zero bits are the number 0.
        unsafe {
            if let (Some(dmask), true) = (self.job.dmask, s.causal) {
                dmask.add(at * s.keys).write_bytes(0, rows * s.keys);
            }
            let to = self.dq.from(self.queries.start, 0);
            let dq = Sums::new::<L>(to, rows, s.width, self.space.dq);
            if s.keys == 0 {
                dq.clear();
            }
            dq
        }
    }

    /// Packs the block of keys from `key` on: transposed K and V, and K as it is, which
    /// is returned.
    ///
    /// # Safety
    /// As for `new`.
    unsafe fn pack_keys<L: Lanes<Elem = T>>(&self, key: usize) -> Packed<T> {
        let (s, space) = (self.job.shape, &self.space);
        let rows = KEYS.min(s.keys - key);
        // SAFETY: the rows exist, the space is that of one block.
        unsafe {
            L::call(Panels {
                grid: self.k.from(key, 0),
                rows,
                width: s.width,
                scale: T::from_f64(s.scale),
                to: space.key_panels,
            });
            L::call(Panels {
                grid: self.v.from(key, 0),
                rows,
                width: s.value_width,
                scale: T::ONE,
                to: space.value_panels,
            });
            pack_rows::<L>(self.k.from(key, 0), rows, s.width, space.keys)
        }
    }

    /// The block of the queries from `first` on and the keys from `key` on.
    fn pair(&self, first: usize, key: usize) -> Pair {
        let cols = KEYS.min(self.job.shape.keys - key);
        Pair {
            first,
            key,
            rows: QUERIES.min(self.queries.end - first),
            cols,
            causal: self.job.shape.causal_offset(first, key, cols),
        }
    }

    /// Computes P and dS of a block.
    ///
    /// # Safety
    /// As for `new`; the keys of the block are packed.
    unsafe fn block<L: Lanes<Elem = T>>(&self, pair: &Pair, mask_grad: bool) {
        let (s, space) = (self.job.shape, &self.space);
        let product = |a: Packed<T>, panels: *const T, depth: usize, to: *mut T| Product {
            a: a.data,
            a_row: a.row,
            a_transposed: false,
            b: panels,
            b_row: panel_width::<L>(),
            b_panel: panel_width::<L>() * depth,
            c: to,
            c_row: space.score_row,
            rows: pair.rows,
            cols: padded::<L>(pair.cols),
            depth,
            add: false,
            trim: pair.causal.map_or(Trim::None, Trim::Columns),
        };
        let row = pair.first - self.queries.start;
        let (q, grad) = (self.q.from(row), self.grad.from(row));
        let at = self.head * s.queries + pair.first;
        let dmask = self.job.dmask.filter(|_| mask_grad);
        // SAFETY: the operands are packed, the space is that of one block.
        unsafe {
            L::call(product(q, space.key_panels, s.width, space.scores));
            L::call(product(grad, space.value_panels, s.value_width, space.grads));
            L::call(ScoreGradient {
                block: Block {
                    scores: space.scores,
                    row: space.score_row,
                    rows: pair.rows,
                    cols: pair.cols,
                    causal: pair.causal,
                    mask: self.mask.map(|m| m.from(pair.first, pair.key)),
                },
                grad: space.grads,
                lse: self.job.lse.add(at * kept(self.job.mask.is_some())),
                kept: kept(self.job.mask.is_some()),
                delta: space.delta.add(row),
                mask_grad: dmask.map(|p| (p.add(at * s.keys + pair.key), s.keys)),
            });
        }
    }

    /// dS as the left operand for dQ.
    fn score_grads(&self, pair: &Pair) -> Left<T> {
        Left {
            data: self.space.grads,
            row: self.space.score_row,
            transposed: false,
            rows: pair.rows,
            depth: pair.cols,
            trim: pair.causal.map_or(Trim::None, Trim::DepthEnd),
            first: pair.key == 0,
        }
    }

    /// The transpose of P or dS as the left operand for dV or dK.
    fn transposed(&self, data: *const T, pair: &Pair, first: bool) -> Left<T> {
        Left {
            data,
            row: self.space.score_row,
            transposed: true,
            rows: pair.cols,
            depth: pair.rows,
            trim: pair.causal.map_or(Trim::None, Trim::DepthStart),
            first,
        }
    }
}
