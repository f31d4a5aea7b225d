//! Packing by transposition, for any type and CPU.

use super::element::Accumulator;

/// See [`super::kernel::Transpose`].
///
/// # Safety
/// `lanes` rows of `k` elements are readable at `src`, and `k * width` writable at `dst`.
pub(super) unsafe fn run<T: Accumulator>(
    src: *const T,
    lane_stride: isize,
    lanes: usize,
    k: usize,
    dst: *mut T,
    width: usize,
) {
    /// Steps of k done per lane before the next lane: one cache line of f32.
    const STEPS: usize = 16;
    let mut p = 0;
    while p < k {
        let steps = STEPS.min(k - p);
        for lane in 0..lanes {
            // SAFETY: lane < lanes and p + s < k.
            unsafe {
                let from = src.offset(lane as isize * lane_stride).add(p);
                let to = dst.add(p * width + lane);
                if steps == STEPS {
                    for s in 0..STEPS {
                        *to.add(s * width) = *from.add(s);
                    }
                } else {
                    for s in 0..steps {
                        *to.add(s * width) = *from.add(s);
                    }
                }
            }
        }
        for s in 0..steps {
            for lane in lanes..width {
                // SAFETY: inside the k * width elements of dst.
                unsafe { *dst.add((p + s) * width + lane) = T::default() };
            }
        }
        p += steps;
    }
}
