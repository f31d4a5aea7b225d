//! The forward convolution: for each image and group, the weights times the matrix of windows.

use super::columns::Gathered;
use super::image::Planes;
use super::{ConvShape, Means, depthwise};
use crate::gemm::Accumulator;
use crate::gemm::blocked::Job;
use crate::gemm::buffer::with_scratch;
use crate::gemm::pack::{PanelSource, Strided};
use crate::gemm::panels::Upcoming;
use crate::gemm::share::{Shared, part};
use std::ops::Range;

/// Outputs of a task, so that they are still in cache when they are reported.
/// (Few in tests, so that small images go all ways.)
const OUTPUTS: usize = if cfg!(test) { 1 << 11 } else { 1 << 17 };

/// Columns that a product should have, if possible.
const COLUMNS: usize = 256;

/// Computes y.
///
/// # Safety
/// As for [`super::forward`].
pub(super) unsafe fn run<T: Accumulator>(
    means: Means<T>,
    s: &ConvShape,
    x: *const T,
    w: *const T,
    y: *mut T,
    done: &(dyn Fn(Range<usize>) + Sync),
) {
    let total = s.batch * s.out_channels * s.out_pixels();
    if s.is_empty() {
        // SAFETY: y has this many elements.
        unsafe { std::slice::from_raw_parts_mut(y, total).fill(T::default()) };
        if total > 0 {
            done(0..total);
        }
        return;
    }
    if s.is_depthwise() {
        // SAFETY: passed on from the caller.
        return unsafe { depthwise::forward(means, s, x, w, y, done) };
    }
    let (m, k) = (s.outputs(), s.inputs() * s.taps());
    let (x, w, y) = (Shared(x.cast_mut()), Shared(w.cast_mut()), Shared(y));
    let weights = |group: usize| Strided {
        data: w.at(group * m * k).cast_const(),
        lane_stride: k as isize,
        k_stride: 1,
    };
    let plan = Plan::new(means.threads, s);
    let planes = Planes::new(s, plan.rows(s));
    let taps = planes.taps(s);
    let runs = planes.outputs(s, plan.several, plan.rows(s));
    // Rows follow each other without a gap, which they do not where windows stop short of the input's far side.
    let flat = s.stride[0] == 1 && s.output[1] == s.input[1];
    let pointwise = planes.in_place && s.taps() == 1 && flat && plan.several == 1;
    let packed_len = job(means, (m, 1, k), weights(0), weights(0), y.at(0), 1).packed_a_len();
    with_scratch::<T, _>(packed_len * s.groups, |packed| {
        let packed = Shared(packed);
        for group in 0..s.groups {
            let any = job(means, (m, 1, k), weights(group), weights(0), y.at(0), 1);
            // SAFETY: the scratch takes the weights of every group.
            unsafe { Job { threads: means.threads, ..any }.pack_a(packed.at(group * packed_len)) };
        }
        let blocks = s.batch.div_ceil(plan.several);
        means.each(blocks * s.groups * plan.bands, &|index| {
            let (block, band) = (index / plan.bands, index % plan.bands);
            let (block, group) = (block / s.groups, block % s.groups);
            let images = block * plan.several..((block + 1) * plan.several).min(s.batch);
            let rows = part(s.output[0], 1, plan.bands, band);
            let columns = rows.len() * s.output[1];
            let n = columns * images.len();
            let from = |image: usize| x.at((image * s.groups + group) * s.inputs() * s.in_pixels());
            let place =
                |image: usize| (image * s.groups + group) * m * s.out_pixels() + rows.start * s.output[1];
            let packed = packed.at(group * packed_len);
            // Several images are computed side by side, and then brought to their places.
            let side_by_side = images.len() > 1;
            let own = if side_by_side { m * n } else { 0 };
            let layouts = if planes.in_place { 0 } else { planes.len(s) * images.len() };
            with_scratch::<T, _>(own + layouts, |scratch| {
                let layout = scratch.wrapping_add(own);
                let (to, ldc) =
                    if side_by_side { (scratch, n) } else { (y.at(place(images.start)), s.out_pixels()) };
                let a = weights(group);
                let first = from(images.start);
                // SAFETY: the task's rows lie inside its images and inside y.
                unsafe {
                    if pointwise {
                        let b = Strided {
                            data: first.wrapping_add(rows.start * s.output[1]).cast_const(),
                            lane_stride: 1,
                            k_stride: s.in_pixels() as isize,
                        };
                        job(means, (m, n, k), a, b, to, ldc).run_packed(packed, &|_, _| ());
                    } else {
                        let data = if planes.in_place {
                            first.wrapping_add(rows.start * s.stride[0] * s.input[1])
                        } else {
                            for (i, image) in images.clone().enumerate() {
                                let at = layout.wrapping_add(i * planes.len(s));
                                planes.fill(s, from(image), rows.clone(), at);
                            }
                            layout
                        };
                        let b = Gathered { data: data.cast_const(), runs: &runs, steps: &taps };
                        let next = from(images.end.min(s.batch - 1)).cast_const();
                        let job = job(means, (m, n, k), a, b, to, ldc);
                        let stretches = [(next, s.inputs() * s.in_pixels()), (next, 0)];
                        Job { upcoming: Upcoming { stretches }, ..job }.run_packed(packed, &|_, _| ());
                    }
                    if side_by_side {
                        for (i, image) in images.clone().enumerate() {
                            for o in 0..m {
                                let row = scratch.add(o * n + i * columns);
                                let to = y.at(place(image) + o * s.out_pixels());
                                std::ptr::copy_nonoverlapping(row, to, columns);
                            }
                        }
                    }
                }
            });
            for start in images.map(place) {
                if columns == s.out_pixels() {
                    done(start..start + m * columns);
                } else {
                    let row = |o: usize| start + o * s.out_pixels();
                    (0..m).for_each(|o| done(row(o)..row(o) + columns));
                }
            }
        });
    });
}

/// How the outputs are shared out.
struct Plan {
    /// Images done together, since one alone has few outputs.
    several: usize,
    /// Bands of output rows, so that a task's outputs stay in cache.
    bands: usize,
}

impl Plan {
    fn new(threads: usize, s: &ConvShape) -> Plan {
        let outputs = s.outputs() * s.out_pixels();
        let wanted = if threads > 1 { 3 * threads } else { 1 };
        let several = (COLUMNS / s.out_pixels()).min(s.batch * s.groups / wanted).clamp(1, s.batch);
        if several > 1 && s.inputs() * s.taps() >= 64 {
            return Plan { several, bands: 1 };
        }
        let bands = outputs.div_ceil(OUTPUTS).max(wanted.div_ceil(s.batch * s.groups));
        Plan { several: 1, bands: bands.min(s.output[0]) }
    }

    /// Rows of the largest band.
    fn rows(&self, s: &ConvShape) -> usize {
        s.output[0].div_ceil(self.bands)
    }
}

fn job<T: Accumulator, L: PanelSource<T>, R: PanelSource<T>>(
    means: Means<T>,
    (m, n, k): (usize, usize, usize),
    a: L,
    b: R,
    c: *mut T,
    ldc: usize,
) -> Job<T, L, R> {
    let (kernel, upcoming) = (means.kernel, Upcoming::NONE);
    Job { kernel, m, n, k, a, b, c, ldc, accumulate: false, threads: 1, upcoming }
}
