//! Operands of the products that are gathered from an image.

use crate::gemm::Accumulator;
use crate::gemm::kernel::{Kernel, Run};
use crate::gemm::pack::{PanelSource, Strided, WIDEST, runs_of};
use std::ops::Range;

/// An operand whose element (lane, p) stands at `data[lanes(lane) + steps[p]]`, where lanes form runs
/// of neighbours in memory.
pub(super) struct Gathered<'s, T> {
    pub data: *const T,
    /// Where the lanes are, as runs in order, from lane 0 on and without gaps.
    pub runs: &'s [Run],
    pub steps: &'s [isize],
}

// SAFETY: only ever read, from memory that outlives the product.
unsafe impl<T: Sync> Sync for Gathered<'_, T> {}

impl<T: Accumulator> PanelSource<T> for Gathered<'_, T> {
    unsafe fn pack(
        &self,
        kernel: &Kernel<T>,
        width: usize,
        lanes: Range<usize>,
        ks: Range<usize>,
        dst: *mut T,
        panel_stride: usize,
    ) {
        for (panel, first) in lanes.clone().step_by(width).enumerate() {
            let mut own = [Run { lane: 0, len: 0, offset: 0 }; WIDEST];
            let count = runs_of(self.runs, first..(first + width).min(lanes.end), &mut own);
            let dst = dst.wrapping_add(panel * panel_stride);
            // SAFETY: passed on from the caller.
            unsafe {
                (kernel.copy_runs)(self.data, &self.steps[ks.clone()], &own[..count], dst, width);
            }
        }
    }

    fn gathered(&self) -> Option<(*const T, &[Run], &[isize])> {
        Some((self.data, self.runs, self.steps))
    }
}

/// The gradient of the output of several images: element (output channel, image and pixel).
pub(super) struct Grads<T> {
    pub data: *const T,
    /// Pixels of a plane; those of an image are contiguous along k.
    pub pixels: usize,
    pub image_stride: usize,
}

// SAFETY: only ever read, from memory that outlives the product.
unsafe impl<T: Sync> Sync for Grads<T> {}

impl<T: Accumulator> PanelSource<T> for Grads<T> {
    unsafe fn pack(
        &self,
        kernel: &Kernel<T>,
        width: usize,
        lanes: Range<usize>,
        ks: Range<usize>,
        dst: *mut T,
        panel_stride: usize,
    ) {
        let mut start = ks.start;
        while start < ks.end {
            let (image, pixel) = (start / self.pixels, start % self.pixels);
            let end = (start - pixel + self.pixels).min(ks.end);
            let planes = Strided {
                data: self.data.wrapping_add(image * self.image_stride),
                lane_stride: self.pixels as isize,
                k_stride: 1,
            };
            let dst = dst.wrapping_add((start - ks.start) * width);
            let pixels = pixel..pixel + (end - start);
            // SAFETY: passed on from the caller.
            unsafe { planes.pack(kernel, width, lanes.clone(), pixels, dst, panel_stride) };
            start = end;
        }
    }
}

/// Adds a run, joining it to the last one where they are neighbours in memory.
pub(super) fn push_run(runs: &mut Vec<Run>, len: usize, offset: isize) {
    let lane = runs.last().map_or(0, |run| run.lane + run.len);
    match runs.last_mut() {
        Some(run) if run.offset + run.len as isize == offset => run.len += len,
        _ => runs.push(Run { lane, len, offset }),
    }
}
