//! What an attention kernel is asked for: its extents, options and operands.

use super::view::View;
use std::ops::Range;
use volta_ir::plan::kernel::NativeKernel;

#[derive(Clone)]
pub(crate) struct Problem {
    pub batch: usize,
    pub heads: usize,
    pub queries: usize,
    pub keys: usize,
    /// Of the rows of q and k.
    pub width: usize,
    pub value_width: usize,
    /// Query i sees the keys j <= i only.
    pub causal: bool,
    /// The factor of the scores, and as a literal.
    pub factor: f32,
    pub scale: String,
    pub q: View,
    pub k: View,
    pub v: View,
    /// Added to the scaled scores.
    pub mask: Option<View>,
    /// The matrices of scores that are computed.
    pub only: Range<usize>,
}

impl Problem {
    /// The operands begin with q, k and v; the mask, if there is one, is operand `mask`.
    pub fn of(kernel: &NativeKernel, causal: bool, scale: f64, mask: usize) -> Problem {
        let o = &kernel.operands;
        let (q, k, v) = (View::of("q", 0, &o[0]), View::of("k", 1, &o[1]), View::of("v", 2, &o[2]));
        Problem {
            batch: o[0].shape[0],
            heads: o[0].shape[1],
            queries: q.rows,
            keys: k.rows,
            width: q.cols,
            value_width: v.cols,
            causal,
            factor: scale as f32,
            scale: format!("{:?}f", scale as f32),
            only: 0..o[0].shape[0] * o[0].shape[1],
            mask: o.get(mask).map(|m| View::of("mask", mask, m)),
            q,
            k,
            v,
        }
    }

    /// The same with f16 read as it is: fewer registers for what is on its way.
    pub fn with_halves(&self) -> Problem {
        let [q, k, v] = [&self.q, &self.k, &self.v].map(View::of_halves);
        Problem { q, k, v, ..self.clone() }
    }

    /// Matrices of scores.
    pub fn items(&self) -> usize {
        self.batch * self.heads
    }

    /// The operands that have elements: nothing is bound to the others.
    pub fn views(&self) -> impl Iterator<Item = &View> {
        [&self.q, &self.k, &self.v].into_iter().chain(&self.mask).filter(|v| v.rows * v.cols > 0)
    }
}
