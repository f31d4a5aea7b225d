//! The gradient of the input: for each image and group, the transposed weights times the output's
//! gradient, each result being added to the input that its window took it from.

use super::{ConvShape, Means, depthwise, forward};
use crate::gemm::blocked::Job;
use crate::gemm::buffer::with_scratch;
use crate::gemm::pack::Strided;
use crate::gemm::panels::Upcoming;
use crate::gemm::share::{Shared, part};
use crate::gemm::{Accumulator, vectorized};
use std::ops::Range;

/// Results that are computed before they are added up, in elements: they should stay in cache.
/// (Few in tests, so that small images go all ways.)
const BAND: usize = if cfg!(test) { 1 << 11 } else { 1 << 17 };
/// Tasks that there should be at least. A constant, since the order of additions must not depend on
/// the number of threads.
const TASKS: usize = 16;

/// Computes dx.
///
/// # Safety
/// As for [`super::input_grad`].
pub(super) unsafe fn run<T: Accumulator>(
    means: Means<T>,
    s: &ConvShape,
    g: *const T,
    w: *const T,
    dx: *mut T,
) {
    if s.is_empty() {
        let total = s.batch * s.in_channels * s.in_pixels();
        // SAFETY: dx has this many elements.
        unsafe { std::slice::from_raw_parts_mut(dx, total).fill(T::default()) };
        return;
    }
    // SAFETY: passed on from the caller.
    unsafe {
        if let Some(flipped) = flipped(s) {
            with_scratch::<T, _>(s.out_channels * s.inputs() * s.taps(), |weights| {
                flip(s, w, weights);
                forward::run(means, &flipped, g, weights, dx, &|_| ());
            });
        } else if s.is_depthwise() {
            depthwise::input_grad(means, s, g, w, dx);
        } else {
            scattered(means, s, g, w, dx);
        }
    }
}

/// The forward convolution that gives the same result with flipped weights, where it is the cheaper
/// way: with stride 1, hardly more inputs than outputs, and enough channels for windows to be used
/// several times once they are gathered.
fn flipped(s: &ConvShape) -> Option<ConvShape> {
    let margin = |axis: usize| ((s.kernel[axis] - 1) * s.dilation[axis]).checked_sub(s.padding[axis]);
    let padding = [margin(0)?, margin(1)?];
    let single = s.inputs() == 1 && s.outputs() == 1;
    let enough = single || s.inputs() >= 48 && 8 * s.in_pixels() <= 9 * s.out_pixels();
    let cheaper = s.stride == [1, 1] && enough;
    cheaper.then_some(ConvShape {
        in_channels: s.out_channels,
        out_channels: s.in_channels,
        input: s.output,
        output: s.input,
        padding,
        ..*s
    })
}

/// Writes the weights with inputs and outputs exchanged in each group, and the kernel turned around.
unsafe fn flip<T: Accumulator>(s: &ConvShape, w: *const T, dst: *mut T) {
    let (inputs, outputs, taps) = (s.inputs(), s.outputs(), s.taps());
    for group in 0..s.groups {
        for i in 0..inputs {
            for o in 0..outputs {
                for tap in 0..taps {
                    let from = ((group * outputs + o) * inputs + i) * taps + tap;
                    let to = ((group * inputs + i) * outputs + o) * taps + taps - 1 - tap;
                    // SAFETY: both inside the weights.
                    unsafe { *dst.add(to) = *w.add(from) };
                }
            }
        }
    }
}

/// The general way: band by band of output rows, results are computed and added up.
unsafe fn scattered<T: Accumulator>(means: Means<T>, s: &ConvShape, g: *const T, w: *const T, dx: *mut T) {
    let (inputs, taps, k) = (s.inputs(), s.taps(), s.outputs());
    let images = s.batch * s.groups;
    // Blocks of channels and bands of rows, which depend on the shape only.
    let cached = (BAND / (taps * s.out_pixels())).clamp(1, inputs);
    let blocks = inputs.div_ceil(cached).max(TASKS.div_ceil(images)).min(inputs);
    let channels_of = |index: usize| part(inputs, 1, blocks, index);
    let largest = inputs.div_ceil(blocks);
    let band = (BAND / (largest * taps * s.output[1])).clamp(1, s.output[0]);
    let (g, w, dx) = (Shared(g.cast_mut()), Shared(w.cast_mut()), Shared(dx));
    let job = |group: usize, channels: Range<usize>, grad: *const T, n: usize, c: *mut T| Job {
        kernel: means.kernel,
        m: channels.len() * taps,
        n,
        k,
        a: Strided {
            data: w.at((group * k * inputs + channels.start) * taps).cast_const(),
            lane_stride: 1,
            k_stride: (inputs * taps) as isize,
        },
        b: Strided { data: grad, lane_stride: 1, k_stride: s.out_pixels() as isize },
        c,
        ldc: n,
        accumulate: false,
        threads: 1,
        upcoming: Upcoming::NONE,
    };
    let packed_len = job(0, 0..largest, g.at(0), 1, dx.at(0)).packed_a_len();
    with_scratch::<T, _>(packed_len * s.groups * blocks, |packed| {
        let packed = Shared(packed);
        means.each(s.groups * blocks, &|index| {
            let weights = job(index / blocks, channels_of(index % blocks), g.at(0), 1, dx.at(0));
            // SAFETY: the scratch takes every block.
            unsafe { weights.pack_a(packed.at(index * packed_len)) };
        });
        means.each(images * blocks, &|index| {
            let (image, block) = (index / blocks, index % blocks);
            let (group, channels) = (image % s.groups, channels_of(block));
            let at = dx.at((image * inputs + channels.start) * s.in_pixels());
            let grad = g.at(image * k * s.out_pixels());
            with_scratch::<T, _>(channels.len() * taps * band * s.output[1], |results| {
                // SAFETY: the channels lie inside dx and belong to this task alone.
                unsafe {
                    let into = std::slice::from_raw_parts_mut(at, channels.len() * s.in_pixels());
                    into.fill(T::default());
                    for first in (0..s.output[0]).step_by(band) {
                        let rows = first..(first + band).min(s.output[0]);
                        let n = rows.len() * s.output[1];
                        let grad = grad.add(first * s.output[1]);
                        let packed = packed.at((group * blocks + block) * packed_len);
                        job(group, channels.clone(), grad, n, results).run_packed(packed, &|_, _| ());
                        let results = std::slice::from_raw_parts(results, channels.len() * taps * n);
                        vectorized(|| add_up(s, rows, results, into));
                    }
                }
            });
        });
    });
}

/// Adds the results of some output rows, `[channel][kernel][row][column]`, to the inputs.
#[inline(always)]
fn add_up<T: Accumulator>(s: &ConvShape, rows: Range<usize>, results: &[T], into: &mut [T]) {
    let [height, width] = s.input;
    let n = rows.len() * s.output[1];
    let of_channel = results.chunks_exact(s.taps() * n).zip(into.chunks_exact_mut(height * width));
    for (results, into) in of_channel {
        for (tap, results) in results.chunks_exact(n).enumerate() {
            let (kh, kw) = (tap / s.kernel[1], tap % s.kernel[1]);
            let shift = kw * s.dilation[1];
            // Output columns whose input column ow * stride + shift - padding exists.
            let low = s.padding[1].saturating_sub(shift).div_ceil(s.stride[1]).min(s.output[1]);
            let high = (width + s.padding[1]).saturating_sub(shift).div_ceil(s.stride[1]);
            let high = high.clamp(low, s.output[1]);
            for (oh, results) in rows.clone().zip(results.chunks_exact(s.output[1])) {
                let row = oh * s.stride[0] + kh * s.dilation[0];
                if low == high || row < s.padding[0] || row >= s.padding[0] + height {
                    continue;
                }
                let start = (row - s.padding[0]) * width + low * s.stride[1] + shift - s.padding[1];
                let results = &results[low..high];
                if s.stride[1] == 1 {
                    add(results, &mut into[start..start + results.len()]);
                } else {
                    let into = into[start..].iter_mut().step_by(s.stride[1]);
                    into.zip(results).for_each(|(d, &r)| *d = *d + r);
                }
            }
        }
    }
}

/// Adds a row to another. In chunks, since rows are short and a loop for any length would spend its
/// time on what is left over from long vectors.
#[inline(always)]
fn add<T: Accumulator>(row: &[T], into: &mut [T]) {
    let (chunks, rest) = row.as_chunks::<8>();
    let (into_chunks, into_rest) = into.as_chunks_mut::<8>();
    for (into, chunk) in into_chunks.iter_mut().zip(chunks) {
        *into = std::array::from_fn(|i| into[i] + chunk[i]);
    }
    into_rest.iter_mut().zip(rest).for_each(|(d, &r)| *d = *d + r);
}
