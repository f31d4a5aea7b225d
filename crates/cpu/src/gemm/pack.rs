//! Packing: copying blocks of an operand into panels that the microkernels read front to back.
//!
//! A panel is `width` lanes (rows of A, columns of B) by some depth of k, stored k-major:
//! `panel[p * width + lane]`, lanes beyond the matrix being zero.

use super::element::{Accumulator, Element};
use super::kernel::{Kernel, Run};
use std::ops::Range;

/// Where panels are read from.
pub(crate) trait PanelSource<T: Accumulator>: Sync {
    /// Writes the panels of the given lanes to `dst`, each `panel_stride` after the one before.
    ///
    /// # Safety
    /// The ranges lie inside the operand, whose memory is readable; `dst` takes the panels.
    unsafe fn pack(
        &self,
        kernel: &Kernel<T>,
        width: usize,
        lanes: Range<usize>,
        ks: Range<usize>,
        dst: *mut T,
        panel_stride: usize,
    );

    /// Data, runs of lanes, and steps along k, where the operand can be gathered.
    fn gathered(&self) -> Option<(*const T, &[Run], &[isize])> {
        None
    }

    /// Data, lane stride and k stride, where the operand can be read in place.
    fn in_place(&self) -> Option<(*const T, isize, isize)> {
        None
    }
}

/// An operand in memory: element (lane, p) stands at `data[lane * lane_stride + p * k_stride]`.
#[derive(Clone, Copy)]
pub(crate) struct Strided<E> {
    pub data: *const E,
    pub lane_stride: isize,
    pub k_stride: isize,
}

// SAFETY: only ever read, from memory that outlives the product.
unsafe impl<E: Sync> Sync for Strided<E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Send for Strided<E> {}

impl<E: Element> PanelSource<E::Acc> for Strided<E> {
    unsafe fn pack(
        &self,
        kernel: &Kernel<E::Acc>,
        width: usize,
        lanes: Range<usize>,
        ks: Range<usize>,
        dst: *mut E::Acc,
        panel_stride: usize,
    ) {
        let k = ks.len();
        let whole = lanes.len() - lanes.len() % width;
        let start = lanes.start as isize * self.lane_stride + ks.start as isize * self.k_stride;
        let src = self.data.wrapping_offset(start);
        let copy = match width {
            _ if self.lane_stride != 1 => None,
            4 => Some(copy::<E, 4> as Copy<E>),
            6 => Some(copy::<E, 6> as Copy<E>),
            8 => Some(copy::<E, 8> as Copy<E>),
            14 => Some(copy::<E, 14> as Copy<E>),
            16 => Some(copy::<E, 16> as Copy<E>),
            32 => Some(copy::<E, 32> as Copy<E>),
            _ => None,
        };
        let mut done = 0;
        if let Some(copy) = copy {
            // SAFETY: passed on from the caller.
            unsafe { copy(src, self.k_stride, whole / width, k, dst, panel_stride) };
            done = whole;
        }
        for first in (done..lanes.len()).step_by(width) {
            let count = width.min(lanes.len() - first);
            let src = src.wrapping_offset(first as isize * self.lane_stride);
            let dst = dst.wrapping_add(first / width * panel_stride);
            // SAFETY: passed on from the caller.
            unsafe {
                if self.k_stride != 1 || k < 4 {
                    any(src, self.lane_stride, self.k_stride, count, k, dst, width);
                } else if let Some(src) = E::as_acc(src) {
                    (kernel.transpose)(src, self.lane_stride, count, k, dst, width);
                } else {
                    widen_transpose(kernel, src, self.lane_stride, count, k, dst, width);
                }
            }
        }
    }

    fn in_place(&self) -> Option<(*const E::Acc, isize, isize)> {
        E::as_acc(self.data).map(|data| (data, self.lane_stride, self.k_stride))
    }
}

type Copy<E> = unsafe fn(*const E, isize, usize, usize, *mut <E as Element>::Acc, usize);

/// Full panels whose lanes are contiguous: row by row over all of them, since the rows may lie far
/// apart in memory and long stretches are read faster than short ones.
unsafe fn copy<E: Element, const WIDTH: usize>(
    src: *const E,
    k_stride: isize,
    panels: usize,
    k: usize,
    dst: *mut E::Acc,
    panel_stride: usize,
) {
    for p in 0..k {
        let row = src.wrapping_offset(p as isize * k_stride).cast::<[E; WIDTH]>();
        let to = dst.wrapping_add(p * WIDTH);
        let ahead = row.cast::<E>().wrapping_offset(PREFETCH_ROWS * k_stride);
        for panel in 0..panels {
            for line in 0..(WIDTH * size_of::<E>()).div_ceil(64) {
                prefetch(ahead.wrapping_add(panel * WIDTH + line * (64 / size_of::<E>())));
            }
            // SAFETY: p < k and panel < panels.
            unsafe {
                let to = to.add(panel * panel_stride).cast::<[E::Acc; WIDTH]>();
                *to = (*row.add(panel)).map(E::widen);
            }
        }
    }
}

/// Rows that are fetched ahead of the one being copied: each starts in a page of its own, where the
/// hardware does not yet know that it will be read on.
const PREFETCH_ROWS: isize = 4;

/// Asks for the cache line at an address, which need not be readable.
#[inline(always)]
fn prefetch<T>(_at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(_at.cast());
    }
}

/// Lanes whose k is contiguous, of a type that has to be widened: through small blocks on the stack.
unsafe fn widen_transpose<E: Element>(
    kernel: &Kernel<E::Acc>,
    src: *const E,
    lane_stride: isize,
    lanes: usize,
    k: usize,
    dst: *mut E::Acc,
    width: usize,
) {
    const DEPTH: usize = 32;
    const LANES: usize = 32;
    debug_assert!(lanes <= LANES);
    let mut block = [[<E::Acc>::default(); DEPTH]; LANES];
    for first in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - first);
        for (lane, row) in block.iter_mut().enumerate().take(lanes) {
            // SAFETY: lane < lanes and first + depth <= k.
            unsafe {
                let from = src.offset(lane as isize * lane_stride).add(first);
                if depth == DEPTH {
                    *row = (*from.cast::<[E; DEPTH]>()).map(E::widen);
                } else {
                    for (p, slot) in row.iter_mut().enumerate().take(depth) {
                        *slot = (*from.add(p)).widen();
                    }
                }
            }
        }
        let at = dst.wrapping_add(first * width);
        // SAFETY: the block holds `lanes` rows of `depth`, and dst takes k * width.
        unsafe {
            (kernel.transpose)(block.as_ptr().cast(), DEPTH as isize, lanes, depth, at, width);
        }
    }
}

/// Any strides, element by element.
unsafe fn any<E: Element>(
    src: *const E,
    lane_stride: isize,
    k_stride: isize,
    lanes: usize,
    k: usize,
    dst: *mut E::Acc,
    width: usize,
) {
    for p in 0..k {
        for lane in 0..width {
            // SAFETY: lanes below `lanes` are readable, and dst takes k * width.
            unsafe {
                *dst.add(p * width + lane) = if lane < lanes {
                    (*src.offset(lane as isize * lane_stride + p as isize * k_stride)).widen()
                } else {
                    <E::Acc>::default()
                };
            }
        }
    }
}

/// Widest panel.
pub(crate) const WIDEST: usize = 32;

/// The runs of some lanes, counted from the first of them, in `own`; returns how many.
pub(crate) fn runs_of(runs: &[Run], lanes: Range<usize>, own: &mut [Run; WIDEST]) -> usize {
    let mut count = 0;
    let start = runs.partition_point(|run| run.lane + run.len <= lanes.start);
    for run in runs[start..].iter().take_while(|run| run.lane < lanes.end) {
        let from = run.lane.max(lanes.start);
        own[count] = Run {
            lane: from - lanes.start,
            len: (run.lane + run.len).min(lanes.end) - from,
            offset: run.offset + (from - run.lane) as isize,
        };
        count += 1;
    }
    count
}
