//! Attention in blocks: softmax(scale Q K^T + mask) V and its gradient, without ever
//! holding the matrix of scores.
//!
//! The forward pass keeps a running maximum and sum per query and leaves their
//! log-sum-exp; the backward pass computes the probabilities again from it. Blocks that
//! causality masks out altogether are skipped, and on the diagonal the products leave
//! out what no query of a register tile sees.
//!
//! A query that sees no key (no keys, or all masked out with -inf) has output 0, a
//! log-sum-exp of -inf and passes no gradient on. Results do not depend on the number
//! of threads.

mod backward;
mod backward_space;
mod backward_task;
mod exp;
mod float;
mod forward;
mod isa;
mod lanes;
mod pack;
mod product;
mod scratch;
mod softmax;
mod sums;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use backward::Backward;
pub(crate) use float::Float;
use forward::Forward;
use isa::Level;
use pack::Grid;

use super::threads;

/// Sizes and options of an attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionShape {
    pub batch: usize,
    pub heads: usize,
    pub queries: usize,
    pub keys: usize,
    /// Width of the rows of q and k.
    pub width: usize,
    pub value_width: usize,
    /// Factor of the scores.
    pub scale: f64,
    /// Whether query i sees only the keys j <= i.
    pub causal: bool,
}

impl AttentionShape {
    /// How many keys the queries before `end` see together.
    fn seen(&self, end: usize) -> usize {
        if self.causal { self.keys.min(end) } else { self.keys }
    }

    /// For the block of `keys` keys from `key` on and the queries from `first` on: `d`
    /// such that query `i` of the block sees the keys `j <= i + d`, or none if they all
    /// see all of them.
    fn causal_offset(&self, first: usize, key: usize, keys: usize) -> Option<isize> {
        (self.causal && key + keys > first + 1).then(|| first as isize - key as isize)
    }

    /// Threads worth waking: below about a quarter of a million multiplications it
    /// takes longer to hand work out than to do it.
    fn threads(&self) -> usize {
        let rows = (self.batch * self.heads).saturating_mul(self.queries);
        let each = self.keys.saturating_mul(self.width + self.value_width);
        if rows.saturating_mul(each) < 1 << 18 { 1 } else { threads::count() }
    }
}

/// A strided view `[batch, heads, rows, columns]`; strides are in elements.
#[derive(Clone, Copy)]
pub(crate) struct Rows<T> {
    pub data: *const T,
    pub batch: isize,
    pub head: isize,
    pub row: isize,
    pub col: isize,
}

impl<T> Rows<T> {
    /// The matrix of one head. The pointer may only be used if the head exists.
    fn head(self, batch: usize, head: usize) -> Grid<T> {
        let batch = (batch as isize).wrapping_mul(self.batch);
        let head = (head as isize).wrapping_mul(self.head);
        Grid { data: self.data.wrapping_offset(batch.wrapping_add(head)), row: self.row, col: self.col }
    }
}

/// How many numbers the forward pass keeps of each query: the log-sum-exp, and with a mask what the weights that are computed
/// from it must be multiplied by. This is nearly 1, but where a mask hides a whole row by a large number: the log-sum-exp
/// has no digits left then for the logarithm of the sum.
fn kept(masked: bool) -> usize {
    1 + usize::from(masked)
}

/// Writes the output `[batch, heads, queries, value_width]`, whose rows are contiguous, and
/// the log-sum-exp of the scaled, masked scores `[batch, heads, queries, kept]`, contiguous. The mask
/// `[batch, heads, queries, keys]` is added to the scores; its strides may be 0.
///
/// # Safety
/// Every view is valid for reads of its shape and the outputs for writes of theirs, and
/// the outputs overlap nothing.
pub(crate) unsafe fn forward<T: Float>(
    s: &AttentionShape,
    q: Rows<T>,
    k: Rows<T>,
    v: Rows<T>,
    mask: Option<Rows<T>>,
    out: Rows<T>,
    lse: *mut T,
) {
    Level::best().with(Forward { shape: s, threads: s.threads(), q, k, v, mask, out, lse });
}

/// Writes the gradients of q, k and v, `[batch, heads, rows, width]` whose rows are
/// contiguous, and of the mask if asked for, contiguous `[batch, heads, queries, keys]` whatever the
/// strides of the mask. `out` and `lse` are the results of [`forward`], `grad` (with a mask, multiplied by what the forward
/// pass has kept for that) and `grad_lse` (contiguous) the gradients that flow into them.
///
/// # Safety
/// As for [`forward`].
#[expect(clippy::too_many_arguments)]
pub(crate) unsafe fn backward<T: Float>(
    s: &AttentionShape,
    q: Rows<T>,
    k: Rows<T>,
    v: Rows<T>,
    mask: Option<Rows<T>>,
    out: Rows<T>,
    lse: *const T,
    grad: Rows<T>,
    grad_lse: Option<*const T>,
    dq: Rows<T>,
    dk: Rows<T>,
    dv: Rows<T>,
    dmask: Option<*mut T>,
) {
    Level::best().with(Backward {
        shape: s,
        threads: s.threads(),
        q,
        k,
        v,
        mask,
        out,
        lse,
        grad,
        grad_lse,
        dq,
        dk,
        dv,
        dmask,
    });
}
