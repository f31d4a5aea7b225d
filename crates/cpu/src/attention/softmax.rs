//! The element-wise half of attention: scores to probabilities, and to their gradient.

use super::exp::exp;
use super::float::{Float, MAX_LANES};
use super::lanes::{LaneWork, Lanes};
use super::pack::Grid;

/// A block of scores, padded to whole vectors, and which of them count.
#[derive(Clone, Copy)]
pub(super) struct Block<T> {
    pub scores: *mut T,
    /// Step from row to row.
    pub row: usize,
    /// Queries.
    pub rows: usize,
    /// Keys.
    pub cols: usize,
    /// If causal: query `i` sees the keys `j <= i + offset`.
    pub causal: Option<isize>,
    /// The additive mask of the block.
    pub mask: Option<Grid<T>>,
}

impl<T: Float> Block<T> {
    /// How many keys query `i` sees.
    #[inline(always)]
    fn seen(&self, i: usize) -> usize {
        match self.causal {
            None => self.cols,
            Some(offset) => (i + 1).saturating_add_signed(offset).min(self.cols),
        }
    }

    /// Adds the mask to the first `seen` scores of row `i`.
    ///
    /// # Safety
    /// The mask covers the block, `scores` is its row `i`.
    #[inline(always)]
    unsafe fn add_mask(&self, i: usize, seen: usize, scores: *mut T) {
        let Some(mask) = self.mask else { return };
        let Grid { data, col, .. } = mask.from(i, 0);
        // The common steps apart, so that each of the loops can be vectorised.
        // SAFETY: the caller's contract.
        unsafe {
            match col {
                0 => (0..seen).for_each(|j| *scores.add(j) = *scores.add(j) + *data),
                1 => (0..seen).for_each(|j| *scores.add(j) = *scores.add(j) + *data.add(j)),
                _ => (0..seen).for_each(|j| {
                    *scores.add(j) = *scores.add(j) + *data.offset(j as isize * col);
                }),
            }
        }
    }
}

/// Makes the scores after the first `seen` -inf, up to the end of their vector.
/// Vectors throughout: a load would have to wait for narrower stores.
///
/// # Safety
/// `scores` is valid for whole vectors, the CPU has the features of `L`.
#[inline(always)]
unsafe fn cut<L: Lanes>(scores: *mut L::Elem, seen: usize) {
    let rest = seen % L::N;
    if rest > 0 {
        // SAFETY: the caller's contract; the edge has MAX_LANES >= N bounds of each kind.
        unsafe {
            let p = scores.add(seen - rest);
            let bound = L::load(L::Elem::EDGE.as_ptr().add(MAX_LANES - rest));
            L::load(p).min(bound).store(p);
        }
    }
}

/// Zeroes vectors of a row, from the vector `from` on, as far as products read it: to
/// the end of the register tile of the last key seen.
///
/// # Safety
/// `p` is a row of the block, the CPU has the features of `L`.
#[inline(always)]
unsafe fn clear<L: Lanes>(p: *mut L::Elem, from: usize, seen: usize, cols: usize) {
    let end = (seen + L::ROWS).min(cols).div_ceil(L::N);
    for v in from..end {
        // SAFETY: the caller's contract.
        unsafe { L::splat(L::Elem::ZERO).store(p.add(v * L::N)) }
    }
}

/// One step of the online softmax: turns scores into exp(score - maximum so far), 0
/// for what is not seen, and brings the sums of earlier blocks to the new maximum.
pub(super) struct OnlineSoftmax<T> {
    pub block: Block<T>,
    /// Per query: the maximum so far, and the sum of exp(score - maximum).
    pub maxima: *mut T,
    pub sums: *mut T,
    /// The weighted values so far; `out_cols` is a multiple of the vector length.
    pub out: *mut T,
    pub out_cols: usize,
    /// Whether this is the first block, so that nothing is there yet.
    pub first: bool,
}

impl<L: Lanes> LaneWork<L> for OnlineSoftmax<L::Elem> {
    #[inline(always)]
    unsafe fn run(self) {
        for i in 0..self.block.rows {
            // SAFETY: row i of everything.
            unsafe { self.step::<L>(i) }
        }
    }
}

impl<T: Float> OnlineSoftmax<T> {
    /// # Safety
    /// As for the whole; the block has a row `i`.
    #[inline(always)]
    unsafe fn step<L: Lanes<Elem = T>>(&self, i: usize) {
        let seen = self.block.seen(i);
        let vectors = seen.div_ceil(L::N);
        // SAFETY: all accesses are in the padded row of the block, in the row of `out`
        // or in the statistics of the query.
        unsafe {
            let scores = self.block.scores.add(i * self.block.row);
            self.block.add_mask(i, seen, scores);
            cut::<L>(scores, seen);

            let mut largest = L::splat(T::NEG_INFINITY);
            for v in 0..vectors {
                largest = largest.max(L::load(scores.add(v * L::N)));
            }
            let largest = largest.largest();
            let (old, old_sum) = if self.first {
                (T::NEG_INFINITY, T::ZERO)
            } else {
                (*self.maxima.add(i), *self.sums.add(i))
            };
            let new = if largest > old { largest } else { old };
            // While everything is masked out, any finite number does as the maximum.
            let shift = if new == T::NEG_INFINITY { T::ZERO } else { new };

            let shifts = L::splat(shift);
            let mut sum = L::splat(T::ZERO);
            for v in 0..vectors {
                let p = scores.add(v * L::N);
                let e = exp(L::load(p).sub(shifts));
                sum = sum.add(e);
                e.store(p);
            }
            clear::<L>(scores, vectors, seen, self.block.cols);

            let mut total = sum.sum();
            if !self.first && new == old {
                total = old_sum + total;
            } else if !self.first {
                let by = (old - shift).exp();
                total = old_sum * by + total;
                let by = L::splat(by);
                for v in 0..self.out_cols / L::N {
                    let p = self.out.add(i * self.out_cols + v * L::N);
                    L::load(p).mul(by).store(p);
                }
            }
            *self.maxima.add(i) = new;
            *self.sums.add(i) = total;
        }
    }
}

/// Turns scores into probabilities P, and the gradient dP of P into that of the scores:
/// dS = P (dP - delta), where delta sums dP P over the row.
pub(super) struct ScoreGradient<T> {
    pub block: Block<T>,
    /// dP, in the layout of the scores.
    pub grad: *mut T,
    /// Per query: the log-sum-exp of the forward pass, the first of `kept` numbers, and delta.
    pub lse: *const T,
    pub kept: usize,
    pub delta: *const T,
    /// Where dS goes as the gradient of the mask, with the step from row to row.
    pub mask_grad: Option<(*mut T, usize)>,
}

impl<L: Lanes> LaneWork<L> for ScoreGradient<L::Elem> {
    #[inline(always)]
    unsafe fn run(self) {
        let block = self.block;
        for i in 0..block.rows {
            // SAFETY: all accesses are in the padded rows of the block, in the row of
            // the mask's gradient or in the statistics of the query.
            unsafe {
                let scores = block.scores.add(i * block.row);
                let grad = self.grad.add(i * block.row);
                let lse = *self.lse.add(i * self.kept);
                let seen = block.seen(i);
                // A row with everything masked out has output 0, whatever goes in.
                let masked_out = lse == L::Elem::NEG_INFINITY;
                let vectors = if masked_out { 0 } else { seen.div_ceil(L::N) };
                block.add_mask(i, seen, scores);
                cut::<L>(scores, seen);
                let (lse, delta) = (L::splat(lse), L::splat(*self.delta.add(i)));
                for v in 0..vectors {
                    let at = v * L::N;
                    let p = exp(L::load(scores.add(at)).sub(lse));
                    p.store(scores.add(at));
                    let ds = L::load(grad.add(at)).sub(delta).mul(p);
                    ds.store(grad.add(at));
                }
                clear::<L>(scores, vectors, seen, block.cols);
                clear::<L>(grad, vectors, seen, block.cols);
                if let Some((to, row)) = self.mask_grad {
                    let to = to.add(i * row);
                    to.copy_from_nonoverlapping(grad, seen);
                    to.add(seen).write_bytes(0, block.cols - seen);
                }
            }
        }
    }
}

/// delta of [`ScoreGradient`]: the dot product of the rows of the output and of its
/// gradient, less the gradient of the log-sum-exp.
pub(super) struct Deltas<T> {
    pub out: Grid<T>,
    pub grad: Grid<T>,
    pub grad_lse: Option<*const T>,
    pub to: *mut T,
    pub rows: usize,
    pub width: usize,
}

impl<L: Lanes> LaneWork<L> for Deltas<L::Elem> {
    #[inline(always)]
    unsafe fn run(self) {
        for i in 0..self.rows {
            let (out, grad) = (self.out.from(i, 0), self.grad.from(i, 0));
            // SAFETY: row i of both matrices, `width` long.
            unsafe {
                let mut c = 0;
                let mut sums = L::splat(L::Elem::ZERO);
                if out.col == 1 && grad.col == 1 {
                    while c + L::N <= self.width {
                        let x = L::load(out.data.add(c));
                        sums = x.mul_add(L::load(grad.data.add(c)), sums);
                        c += L::N;
                    }
                }
                let mut sum = sums.sum();
                for c in c..self.width {
                    let c = c as isize;
                    sum = sum + *out.data.offset(c * out.col) * *grad.data.offset(c * grad.col);
                }
                if let Some(more) = self.grad_lse {
                    sum = sum - *more.add(i);
                }
                *self.to.add(i) = sum;
            }
        }
    }
}
