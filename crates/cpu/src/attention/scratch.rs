//! Aligned working memory of one worker, and the distribution of tasks to workers.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::threads;

/// A cache line, in bytes: every piece starts on one.
const LINE: usize = 64;

/// A buffer from which a task carves its pieces.
pub(super) struct Scratch<T> {
    base: *mut T,
    layout: Layout,
    used: usize,
}

impl<T> Scratch<T> {
    /// The length of a piece of `len` elements, with what aligns the next one.
    pub(super) fn piece(len: usize) -> usize {
        len.next_multiple_of(LINE / size_of::<T>())
    }

    /// A zeroed buffer of `len` elements, which have to be plain numbers.
    fn new(len: usize) -> Self {
        let bytes = len.max(1) * size_of::<T>();
        let layout = Layout::from_size_align(bytes, LINE).expect("scratch too large");
        // SAFETY: the layout is not empty.
        let base = unsafe { alloc_zeroed(layout) }.cast::<T>();
        if base.is_null() {
            handle_alloc_error(layout);
        }
        Self { base, layout, used: 0 }
    }

    /// The next piece of `len` elements, with whatever an earlier task left in it.
    pub(super) fn carve(&mut self, len: usize) -> *mut T {
        let start = self.used;
        self.used += Self::piece(len);
        assert!(self.used * size_of::<T>() <= self.layout.size());
        // SAFETY: the piece lies in the buffer, as just checked.
        unsafe { self.base.add(start) }
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.base.cast(), self.layout) }
    }
}

/// Runs the tasks `0..tasks` on up to `workers` threads. A worker allocates `len`
/// elements once and takes tasks in ascending order until none are left, so that
/// uneven tasks balance out if the large ones come first.
pub(super) fn spread<T>(
    workers: usize,
    tasks: usize,
    len: usize,
    run: &(dyn Fn(usize, &mut Scratch<T>) + Sync),
) {
    let next = AtomicUsize::new(0);
    let work = |_| {
        let mut scratch = Scratch::new(len);
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                break;
            }
            scratch.used = 0;
            run(task, &mut scratch);
        }
    };
    match workers.min(tasks) {
        0 => {}
        1 => work(0),
        workers => threads::parallel_for(workers, &work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        for workers in 1..5 {
            for tasks in [0, 1, 2, 100] {
                let ran: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                spread::<f32>(workers, tasks, 48, &|task, scratch| {
                    let (a, b) = (scratch.carve(17), scratch.carve(16));
                    assert_eq!(a as usize % LINE, 0);
                    assert_eq!(b as usize - a as usize, 32 * size_of::<f32>());
                    ran[task].fetch_add(1, Ordering::Relaxed);
                });
                assert!(ran.iter().all(|n| n.load(Ordering::Relaxed) == 1));
            }
        }
    }
}
