//! Convolutions in which an output sees a single input channel: plain loops over rows, since there is
//! no matrix product in them.

use super::image::Planes;
use super::{ConvShape, Means};
use crate::gemm::buffer::with_scratch;
use crate::gemm::share::Shared;
use crate::gemm::{Accumulator, vectorized};
use std::ops::Range;

/// The part of an output row for which a kernel column falls inside the input, and the input column
/// it starts at.
fn columns(s: &ConvShape, kw: usize) -> (Range<usize>, usize) {
    let shift = kw * s.dilation[1];
    let low = s.padding[1].saturating_sub(shift).div_ceil(s.stride[1]).min(s.output[1]);
    let high = (s.input[1] + s.padding[1]).saturating_sub(shift).div_ceil(s.stride[1]);
    let high = high.clamp(low, s.output[1]);
    (low..high, (low * s.stride[1] + shift).saturating_sub(s.padding[1]))
}

/// The input row that an output row meets with a kernel row, if it exists.
fn row(s: &ConvShape, oh: usize, kh: usize) -> Option<usize> {
    let row = (oh * s.stride[0] + kh * s.dilation[0]).checked_sub(s.padding[0])?;
    (row < s.input[0]).then_some(row)
}

/// `into += weight * row`, in chunks, since rows are short.
#[inline(always)]
fn add_scaled<T: Accumulator>(weight: T, row: &[T], into: &mut [T]) {
    let (chunks, rest) = row.as_chunks::<8>();
    let (into_chunks, into_rest) = into.as_chunks_mut::<8>();
    for (into, chunk) in into_chunks.iter_mut().zip(chunks) {
        *into = std::array::from_fn(|i| into[i] + weight * chunk[i]);
    }
    into_rest.iter_mut().zip(rest).for_each(|(d, &r)| *d = *d + weight * r);
}

/// Calls `f(output start, input start, length)` for every row of outputs and every tap that meets it;
/// inputs advance by the stride.
#[inline(always)]
fn each_row(s: &ConvShape, tap: usize, mut f: impl FnMut(usize, usize, usize)) {
    let (kh, kw) = (tap / s.kernel[1], tap % s.kernel[1]);
    let (cols, first) = columns(s, kw);
    if cols.is_empty() {
        return;
    }
    for oh in 0..s.output[0] {
        if let Some(row) = row(s, oh, kh) {
            f(oh * s.output[1] + cols.start, row * s.input[1] + first, cols.len());
        }
    }
}

/// Computes y.
///
/// # Safety
/// As for [`super::forward`].
pub(super) unsafe fn forward<T: Accumulator>(
    means: Means<T>,
    s: &ConvShape,
    x: *const T,
    w: *const T,
    y: *mut T,
    done: &(dyn Fn(Range<usize>) + Sync),
) {
    let (x, w, y) = (Shared(x.cast_mut()), Shared(w.cast_mut()), Shared(y));
    let planes = Planes::new(s, s.output[0]);
    let taps = planes.taps(s);
    means.each(s.batch * s.out_channels, &|index| {
        let output = index % s.out_channels;
        let input = index / s.out_channels * s.in_channels + output / s.outputs();
        with_scratch::<T, _>(planes.len(s), |layout| {
            // SAFETY: the planes lie inside x and y, and each task writes its own.
            unsafe {
                let mut plane = x.at(input * s.in_pixels());
                if !planes.in_place {
                    planes.fill(s, plane, 0..s.output[0], layout);
                    plane = layout;
                }
                let weights = std::slice::from_raw_parts(w.at(output * s.taps()), s.taps());
                let y = std::slice::from_raw_parts_mut(y.at(index * s.out_pixels()), s.out_pixels());
                let step = planes.row_stride(s);
                vectorized(|| correlate(plane, step, &taps, weights, y, s.output[1]));
            }
        });
        done(index * s.out_pixels()..(index + 1) * s.out_pixels());
    });
}

/// Computes rows of outputs: the sums over all taps of the weight times the input, where the tap's
/// offset from the row's start gives the input of its first output.
///
/// # Safety
/// The inputs are readable: rows `step` apart, from every tap as many as the row is wide.
#[inline(always)]
unsafe fn correlate<T: Accumulator>(
    plane: *const T,
    step: usize,
    taps: &[isize],
    weights: &[T],
    y: &mut [T],
    width: usize,
) {
    /// Outputs whose sums are kept in registers together.
    const LANES: usize = 16;
    for (row, y) in y.chunks_exact_mut(width).enumerate() {
        let start = plane.wrapping_add(row * step);
        let (chunks, rest) = y.as_chunks_mut::<LANES>();
        let whole = chunks.len() * LANES;
        for (i, chunk) in chunks.iter_mut().enumerate() {
            let mut sums = [T::default(); LANES];
            for (&tap, &weight) in taps.iter().zip(weights) {
                // SAFETY: passed on from the caller.
                let x = unsafe { *start.offset(tap).add(i * LANES).cast::<[T; LANES]>() };
                for l in 0..LANES {
                    sums[l] = sums[l] + weight * x[l];
                }
            }
            *chunk = sums;
        }
        for (i, slot) in rest.iter_mut().enumerate() {
            // SAFETY: as above.
            let at = |tap: isize| unsafe { *start.offset(tap).add(whole + i) };
            let products = taps.iter().zip(weights).map(|(&tap, &weight)| weight * at(tap));
            *slot = products.fold(T::default(), |sum, product| sum + product);
        }
    }
}

/// Computes dx.
///
/// # Safety
/// As for [`super::input_grad`].
pub(super) unsafe fn input_grad<T: Accumulator>(
    means: Means<T>,
    s: &ConvShape,
    g: *const T,
    w: *const T,
    dx: *mut T,
) {
    let (g, w, dx) = (Shared(g.cast_mut()), Shared(w.cast_mut()), Shared(dx));
    let stride = s.stride[1];
    let task = |index: usize| {
        let (image, input) = (index / s.in_channels, index % s.in_channels);
        // SAFETY: the plane lies inside dx, and each task writes its own.
        let dx = unsafe { std::slice::from_raw_parts_mut(dx.at(index * s.in_pixels()), s.in_pixels()) };
        dx.fill(T::default());
        for output in input * s.outputs()..(input + 1) * s.outputs() {
            let plane = (image * s.out_channels + output) * s.out_pixels();
            // SAFETY: the plane lies inside g.
            let g = unsafe { std::slice::from_raw_parts(g.at(plane), s.out_pixels()) };
            for tap in 0..s.taps() {
                // SAFETY: inside the weights.
                let weight = unsafe { *w.at(output * s.taps() + tap) };
                each_row(s, tap, |from, to, len| {
                    let g = &g[from..from + len];
                    if stride == 1 {
                        add_scaled(weight, g, &mut dx[to..to + len]);
                    } else {
                        let dx = dx[to..].iter_mut().step_by(stride);
                        dx.zip(g).for_each(|(d, &g)| *d = *d + weight * g);
                    }
                });
            }
        }
    };
    means.each(s.batch * s.in_channels, &|index| vectorized(|| task(index)));
}

/// Computes dw.
///
/// # Safety
/// As for [`super::weight_grad`].
pub(super) unsafe fn weight_grad<T: Accumulator>(
    means: Means<T>,
    s: &ConvShape,
    x: *const T,
    g: *const T,
    dw: *mut T,
) {
    /// Sums kept side by side, for the compiler to vectorise.
    const LANES: usize = 8;
    let (x, g, dw) = (Shared(x.cast_mut()), Shared(g.cast_mut()), Shared(dw));
    let stride = s.stride[1];
    let task = |output: usize| {
        for tap in 0..s.taps() {
            let mut sums = [T::default(); LANES];
            let mut rest = T::default();
            for image in 0..s.batch {
                let input = image * s.in_channels + output / s.outputs();
                let plane = image * s.out_channels + output;
                // SAFETY: the planes lie inside x and g.
                let (x, g) = unsafe {
                    (
                        std::slice::from_raw_parts(x.at(input * s.in_pixels()), s.in_pixels()),
                        std::slice::from_raw_parts(g.at(plane * s.out_pixels()), s.out_pixels()),
                    )
                };
                each_row(s, tap, |at, from, len| {
                    let g = &g[at..at + len];
                    if stride == 1 {
                        let (xs, gs) = (x[from..from + len].chunks_exact(LANES), g.chunks_exact(LANES));
                        let left = xs.remainder().iter().zip(gs.remainder());
                        left.for_each(|(&x, &g)| rest = rest + x * g);
                        for (x, g) in xs.zip(gs) {
                            for l in 0..LANES {
                                sums[l] = sums[l] + x[l] * g[l];
                            }
                        }
                    } else {
                        let x = x[from..].iter().step_by(stride);
                        x.zip(g).for_each(|(&x, &g)| rest = rest + x * g);
                    }
                });
            }
            let total = sums.iter().fold(rest, |total, &sum| total + sum);
            // SAFETY: inside dw, and each task has its own output.
            unsafe { *dw.at(output * s.taps() + tap) = total };
        }
    };
    means.each(s.out_channels, &|output| vectorized(|| task(output)));
}
