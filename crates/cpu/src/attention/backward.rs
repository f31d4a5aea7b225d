//! The backward pass: blocks of probabilities are computed again from the log-sum-exp.

use super::backward_space::{KEYS, QUERIES, Space};
use super::backward_task::Task;
use super::float::Float;
use super::isa::WithLanes;
use super::lanes::Lanes;
use super::scratch::spread;
use super::{AttentionShape, Rows};

/// The arguments of the backward pass.
pub(super) struct Backward<'a, T> {
    pub shape: &'a AttentionShape,
    pub threads: usize,
    pub q: Rows<T>,
    pub k: Rows<T>,
    pub v: Rows<T>,
    pub mask: Option<Rows<T>>,
    pub out: Rows<T>,
    pub lse: *const T,
    pub grad: Rows<T>,
    pub grad_lse: Option<*const T>,
    pub dq: Rows<T>,
    pub dk: Rows<T>,
    pub dv: Rows<T>,
    pub dmask: Option<*mut T>,
}

// SAFETY: the inputs are only read, and tasks write disjoint rows of the outputs.
unsafe impl<T: Sync> Sync for Backward<'_, T> {}

impl<T: Float> WithLanes<T> for Backward<'_, T> {
    /// Five products of blocks per head if one task does the whole of it. With fewer
    /// heads than threads want, one pass over the key blocks yields dK and dV and one
    /// over the query blocks dQ, with seven products in all, yet no two tasks write the
    /// same rows. Either way sums run over the same blocks in the same order, so the
    /// results are the same to the bit.
    fn run<L: Lanes<Elem = T>>(self) {
        let s = self.shape;
        let heads = s.batch * s.heads;
        let rounds = heads.div_ceil(self.threads);
        let len = Space::len::<L>(&self);
        if rounds * self.threads * 5 <= heads * 7 {
            spread(self.threads, heads, len, &|head, scratch| {
                // SAFETY: the caller of the backward pass vouches for the pointers, and
                // the scratch has the size asked for; so in the two passes below.
                unsafe { Task::new::<L>(&self, head, 0..s.queries, scratch).head::<L>() }
            });
            return;
        }
        // In both passes the largest tasks come first.
        let blocks = s.keys.div_ceil(KEYS);
        spread(self.threads, heads * blocks, len, &|task, scratch| {
            let (head, key) = (task % heads, task / heads * KEYS);
            let first = if s.causal { key / QUERIES * QUERIES } else { 0 };
            let queries = first.min(s.queries)..s.queries;
            // SAFETY: as above.
            unsafe { Task::new::<L>(&self, head, queries, scratch).keys::<L>(key, None) }
        });
        let blocks = s.queries.div_ceil(QUERIES);
        spread(self.threads, heads * blocks, len, &|task, scratch| {
            let (head, first) = (task % heads, (blocks - 1 - task / heads) * QUERIES);
            let queries = first..s.queries.min(first + QUERIES);
            // SAFETY: as above.
            unsafe { Task::new::<L>(&self, head, queries, scratch).queries::<L>() }
        });
    }
}
