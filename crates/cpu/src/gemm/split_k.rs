//! Products whose C is too small to keep all threads busy, but whose k is deep: threads take blocks
//! of k, and the partial results are added in the order in which one thread would have added them.

use super::blocked::Job;
use super::buffer::with_scratch;
use super::element::Accumulator;
use super::pack::PanelSource;
use super::panels::Upcoming;
use super::share::{Shared, part};
use crate::threads;
use std::ops::Range;

/// Largest C, in elements, that is worth computing in several copies.
pub(super) const MAX_COPIED_ELEMENTS: usize = 1 << 14;

/// Computes the job this way, if it suits; says whether it did.
///
/// # Safety
/// As for [`Job::run`].
pub(super) unsafe fn run<T: Accumulator, A: PanelSource<T>, B: PanelSource<T>>(
    job: &Job<T, A, B>,
    kc: usize,
    done: &(dyn Fn(Range<usize>, Range<usize>) + Sync),
) -> bool {
    let size = job.m * job.n;
    let blocks = job.k.div_ceil(kc);
    // Enough work per block to be worth a task, and enough blocks to go round.
    if size > MAX_COPIED_ELEMENTS || blocks < 4 || size.saturating_mul(job.k) < 1 << 20 {
        return false;
    }
    // Threads take this many blocks between them before the results are added up.
    let round = blocks.min(8 * job.threads).min((1 << 22) / size.max(1 << 10)).max(job.threads);
    with_scratch::<T, _>(size * round, |partial| {
        let partial = Shared(partial);
        for first in (0..blocks).step_by(round) {
            let count = round.min(blocks - first);
            threads::parallel_for(count, &|index| {
                let start = (first + index) * kc;
                let ks = start..(start + kc).min(job.k);
                let block = Job {
                    kernel: job.kernel,
                    m: job.m,
                    n: job.n,
                    k: ks.len(),
                    a: From { source: &job.a, start },
                    b: From { source: &job.b, start },
                    c: partial.at(index * size),
                    ldc: job.n,
                    accumulate: false,
                    threads: 1,
                    upcoming: Upcoming::NONE,
                };
                // SAFETY: each block has its own copy of C.
                unsafe { block.run_unsplit(&|_, _| ()) };
            });
            let pieces = (size * count / (1 << 15)).clamp(1, job.threads.min(job.m));
            threads::parallel_for(pieces, &|piece| {
                let rows = part(job.m, 1, pieces, piece);
                for i in rows.clone() {
                    // SAFETY: the row lies inside C, and inside every copy of it.
                    unsafe {
                        let c = std::slice::from_raw_parts_mut(job.c.add(i * job.ldc), job.n);
                        for index in 0..count {
                            let from = partial.at(index * size + i * job.n);
                            let from = std::slice::from_raw_parts(from, job.n);
                            if first + index == 0 && !job.accumulate {
                                c.copy_from_slice(from);
                            } else {
                                c.iter_mut().zip(from).for_each(|(c, &v)| *c = *c + v);
                            }
                        }
                    }
                }
                if first + count == blocks {
                    done(rows, 0..job.n);
                }
            });
        }
    });
    true
}

/// An operand from some k on.
struct From<'s, S> {
    source: &'s S,
    start: usize,
}

impl<T: Accumulator, S: PanelSource<T>> PanelSource<T> for From<'_, S> {
    unsafe fn pack(
        &self,
        kernel: &super::kernel::Kernel<T>,
        width: usize,
        lanes: Range<usize>,
        ks: Range<usize>,
        dst: *mut T,
        panel_stride: usize,
    ) {
        let ks = ks.start + self.start..ks.end + self.start;
        // SAFETY: passed on from the caller.
        unsafe { self.source.pack(kernel, width, lanes, ks, dst, panel_stride) }
    }

    fn in_place(&self) -> Option<(*const T, isize, isize)> {
        let (data, lane_stride, k_stride) = self.source.in_place()?;
        Some((data.wrapping_offset(self.start as isize * k_stride), lane_stride, k_stride))
    }
}
