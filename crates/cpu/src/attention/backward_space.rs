//! The working memory of a task of the backward pass.

use super::backward::Backward;
use super::float::Float;
use super::lanes::Lanes;
use super::pack::{packed_len, padded, panels_len};
use super::scratch::Scratch;
use super::sums::Sums;

/// Queries and keys of a block of scores.
pub(super) const QUERIES: usize = 128;
pub(super) const KEYS: usize = 128;

/// The pieces of scratch of a task.
pub(super) struct Space<T> {
    /// Copies of the rows of Q and of the output's gradient, unless they can be used
    /// where they are.
    pub q: *mut T,
    pub grad: *mut T,
    /// One number per query.
    pub delta: *mut T,
    /// P and dS of a block, and the step from row to row of both.
    pub scores: *mut T,
    pub grads: *mut T,
    pub score_row: usize,
    /// A block of keys: transposed K and V, and K as it is.
    pub key_panels: *mut T,
    pub value_panels: *mut T,
    pub keys: *mut T,
    /// Accumulators, unless the rows of the result itself will do: see [`Sums`].
    pub dq: *mut T,
    pub dk: *mut T,
    pub dv: *mut T,
}

impl<T: Float> Space<T> {
    /// Scratch elements of a task.
    pub(super) fn len<L: Lanes<Elem = T>>(job: &Backward<'_, T>) -> usize {
        lens::<L>(job).map(Scratch::<T>::piece).iter().sum()
    }

    /// Carves the pieces out of `scratch`, which has [`Self::len`] elements.
    pub(super) fn new<L: Lanes<Elem = T>>(job: &Backward<'_, T>, scratch: &mut Scratch<T>) -> Self {
        let mut next = lens::<L>(job).map(|len| scratch.carve(len)).into_iter();
        let mut next = || next.next().expect("as many as there are lengths");
        Self {
            q: next(),
            grad: next(),
            delta: next(),
            scores: next(),
            grads: next(),
            score_row: score_row::<L>(job.shape.keys),
            key_panels: next(),
            value_panels: next(),
            keys: next(),
            dq: next(),
            dk: next(),
            dv: next(),
        }
    }
}

/// Lengths of the pieces, in the order of the fields of [`Space`].
fn lens<L: Lanes>(job: &Backward<'_, L::Elem>) -> [usize; 11] {
    let s = job.shape;
    let rows = s.queries.min(QUERIES);
    let keys = s.keys.min(KEYS);
    [
        packed_len::<L>(job.q.head(0, 0), s.queries, s.width),
        packed_len::<L>(job.grad.head(0, 0), s.queries, s.value_width),
        s.queries,
        rows * score_row::<L>(keys),
        rows * score_row::<L>(keys),
        panels_len::<L>(keys, s.width),
        panels_len::<L>(keys, s.value_width),
        packed_len::<L>(job.k.head(0, 0), keys, s.width),
        Sums::len::<L>(job.dq.head(0, 0), s.queries, s.width),
        Sums::len::<L>(job.dk.head(0, 0), keys, s.width),
        Sums::len::<L>(job.dv.head(0, 0), keys, s.value_width),
    ]
}

/// Step from row to row of the scores: one vector more than needed, for rows a power
/// of two apart share their cache sets.
fn score_row<L: Lanes>(keys: usize) -> usize {
    padded::<L>(keys.min(KEYS)) + L::N
}
