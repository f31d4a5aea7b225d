//! The gradient of the weights: for each group, the output's gradient times the windows, summed over
//! all pixels of all images.

use super::columns::{Gathered, Grads};
use super::image::Pixels;
use super::{ConvShape, Means, depthwise};
use crate::gemm::Accumulator;
use crate::gemm::blocked::Job;
use crate::gemm::buffer::with_scratch;
use crate::gemm::panels::Upcoming;
use crate::gemm::share::{Shared, part};

/// Partial sums that are kept, in elements. (Few in tests, so that small images go all ways.)
const PARTIAL: usize = if cfg!(test) { 1 << 15 } else { 1 << 22 };
/// Slices of the batch, each with a partial sum of its own. A constant, since the order of additions
/// must not depend on the number of threads.
const SLICES: usize = 16;

/// Pixels that are summed over at a time, at least.
const DEPTH: usize = 256;

/// Computes dw.
///
/// # Safety
/// As for [`super::weight_grad`].
pub(super) unsafe fn run<T: Accumulator>(
    means: Means<T>,
    s: &ConvShape,
    x: *const T,
    g: *const T,
    dw: *mut T,
) {
    let (m, taps, inputs) = (s.outputs(), s.taps(), s.inputs());
    let size = s.out_channels * inputs * taps;
    if s.is_empty() {
        // SAFETY: dw has this many elements.
        unsafe { std::slice::from_raw_parts_mut(dw, size).fill(T::default()) };
        return;
    }
    if s.is_depthwise() {
        // SAFETY: passed on from the caller.
        return unsafe { depthwise::weight_grad(means, s, x, g, dw) };
    }
    let slices = s.batch.min(SLICES).min((PARTIAL / size).max(1));
    // Blocks of channels: enough for as many tasks as slices would have made.
    let blocks = SLICES.div_ceil(slices * s.groups).min(inputs.div_ceil(32));
    let block = |index: usize| part(inputs, 32.min(inputs), blocks, index);
    let (x, g, dw) = (Shared(x.cast_mut()), Shared(g.cast_mut()), Shared(dw));
    with_scratch::<T, _>(size * slices, |partial| {
        let partial = Shared(partial);
        // In the partial sums, each block of channels stands as [output][kernel][channel].
        let place =
            |slice: usize, group: usize, channel: usize| slice * size + (group * inputs + channel) * m * taps;
        means.each(slices * s.groups * blocks, &|index| {
            let (slice, rest) = (index / (s.groups * blocks), index % (s.groups * blocks));
            let (group, channels) = (rest / blocks, block(rest % blocks));
            let pixels = Pixels::new(s, channels.len());
            let images = part(s.batch, 1, slices, slice);
            // Small images are taken several at a time, for the sums to be worth their loads.
            let several = DEPTH.div_ceil(s.out_pixels()).min(images.len());
            let (runs, steps) = (pixels.taps(s), pixels.outputs(s, several));
            let n = taps * channels.len();
            with_scratch::<T, _>(pixels.len() * several, |layout| {
                // SAFETY: the scratch takes the layouts.
                unsafe { pixels.clear(layout, several) };
                for first in images.clone().step_by(several) {
                    let count = several.min(images.end - first);
                    let from = |image: usize| {
                        let plane = image * s.in_channels + group * inputs + channels.start;
                        x.at(plane * s.in_pixels())
                    };
                    let grad = |image: usize| g.at((image * s.groups + group) * m * s.out_pixels());
                    // What the next image needs is fetched meanwhile.
                    let next = (first + count).min(s.batch - 1);
                    let upcoming = Upcoming {
                        stretches: [
                            (grad(next).cast_const(), m * s.out_pixels()),
                            (from(next).cast_const(), channels.len() * s.in_pixels()),
                        ],
                    };
                    // SAFETY: the channels lie inside the images, and the block has its own place.
                    unsafe {
                        for i in 0..count {
                            let at = layout.add(i * pixels.len());
                            pixels.fill(means.kernel, s, from(first + i), at);
                        }
                        Job {
                            kernel: means.kernel,
                            m,
                            n,
                            k: count * s.out_pixels(),
                            a: Grads {
                                data: grad(first).cast_const(),
                                pixels: s.out_pixels(),
                                image_stride: s.out_channels * s.out_pixels(),
                            },
                            b: Gathered { data: layout.cast_const(), runs: &runs, steps: &steps },
                            c: partial.at(place(slice, group, channels.start)),
                            ldc: n,
                            accumulate: first > images.start,
                            threads: 1,
                            upcoming,
                        }
                        .run_unsplit(&|_, _| ());
                    }
                }
            });
        });
        // Adds the slices up in order, and brings the weights into their own order.
        means.each(s.out_channels, &|output| {
            let (group, o) = (output / m, output % m);
            for channels in (0..blocks).map(block) {
                let n = taps * channels.len();
                for (i, c) in channels.clone().enumerate() {
                    for tap in 0..taps {
                        let at = o * n + tap * channels.len() + i;
                        let mut sum = T::default();
                        for slice in 0..slices {
                            // SAFETY: inside the partial sums.
                            sum = unsafe { *partial.at(place(slice, group, channels.start) + at) } + sum;
                        }
                        // SAFETY: inside dw, and each task has its own outputs.
                        unsafe { *dw.at((output * inputs + c) * taps + tap) = sum };
                    }
                }
            }
        });
    });
}
