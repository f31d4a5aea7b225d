//! Sharing work between tasks.

use std::ops::Range;

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

/// The part `index` of `0..total` split into `parts` nearly equal parts of whole `unit`s. Longer parts
/// come first, so that the last tasks are short ones.
pub(crate) fn part(total: usize, unit: usize, parts: usize, index: usize) -> Range<usize> {
    let units = total.div_ceil(unit);
    let bound = |i: usize| ((units / parts * i + i.min(units % parts)) * unit).min(total);
    bound(index)..bound(index + 1)
}
