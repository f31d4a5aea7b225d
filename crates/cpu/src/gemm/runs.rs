//! Packing lanes that form runs in memory, for any type and CPU.

use super::element::Accumulator;
use super::kernel::Run;

/// See [`super::kernel::CopyRuns`].
///
/// # Safety
/// The runs are readable from every step, and `dst` takes `steps.len() * width`.
pub(super) unsafe fn copy<T: Accumulator>(
    src: *const T,
    steps: &[isize],
    runs: &[Run],
    dst: *mut T,
    width: usize,
) {
    for (p, &step) in steps.iter().enumerate() {
        // SAFETY: passed on from the caller.
        unsafe {
            let row = std::slice::from_raw_parts_mut(dst.add(p * width), width);
            let mut next = 0;
            for run in runs {
                row[next..run.lane].fill(T::default());
                let from = src.offset(step + run.offset);
                for (i, slot) in row[run.lane..run.lane + run.len].iter_mut().enumerate() {
                    *slot = *from.add(i);
                }
                next = run.lane + run.len;
            }
            row[next..].fill(T::default());
        }
    }
}
