//! The positions of the largest elements of windows, for pooling.

use super::{Number, by_number};
use crate::gemm::vectorized;
use crate::interpreter::{Bindings, SlotPointer};
use crate::threads::parallel_for;
use half::{bf16, f16};
use std::hint::select_unpredictable;
use volta_ir::dtype::DType;
use volta_ir::op::PoolAttrs;
use volta_ir::plan::kernel::{NativeKernel, Operand};

/// The place, in its image, of every window's first maximum. A row of windows is searched at once, one place of
/// the window after the other, which vectorises.
pub(crate) fn max_pool_index(kernel: &NativeKernel, attrs: &PoolAttrs, bind: Bindings) {
    let x = &kernel.operands[0];
    let out = bind.slots[kernel.output.slot];
    let ([images, channels, height, width], [.., out_height, out_width]) = (dims(x), dims(&kernel.output));
    let in_pairs = attrs.kernel == [2, 2]
        && attrs.stride == [2, 2]
        && attrs.dilation == [1, 1]
        && attrs.padding == [0, 0]
        && width.is_multiple_of(2)
        && x.strides[3] == 1
        && x.strides[2] == width as isize;
    let rows: Vec<Inside> = (0..out_height).map(|o| Inside::of(attrs, o, 0, height)).collect();
    let columns: Vec<Inside> = (0..out_width).map(|o| Inside::of(attrs, o, 1, width)).collect();
    // The windows, along a row, whose j-th column is inside the image.
    let reached = |j: usize| {
        let from = columns.iter().position(|c| c.skipped <= j && j < c.end);
        let from = from.unwrap_or(out_width);
        let to = columns.iter().rposition(|c| c.skipped <= j && j < c.end).map_or(from, |last| last + 1);
        from..to
    };
    let reached: Vec<std::ops::Range<usize>> = (0..attrs.kernel[1]).map(reached).collect();
    by_number!(x.dtype, T => {
        let origin = SlotPointer(bind.start::<T>(x).cast_mut().cast());
        let of_image = |t: usize| {
            let base = (t / channels) as isize * x.strides[0] + (t % channels) as isize * x.strides[1];
            let size = out_height * out_width;
            // SAFETY: an image of the view, and its part of the output, which is its task's.
            unsafe {
                let places = std::slice::from_raw_parts_mut(out.get().cast::<i32>().add(t * size), size);
                (origin.get().cast_const().cast::<T>().offset(base), places)
            }
        };
        let search = |t: usize, best: &mut [T]| {
            let (image, out) = of_image(t);
            for (row, places) in rows.iter().zip(out.chunks_exact_mut(out_width)) {
                best.fill(T::LOWEST);
                for (place, column) in places.iter_mut().zip(&columns) {
                    *place = (row.first * width + column.first) as i32;
                }
                for i in 0..row.end - row.skipped {
                    let y = row.first + i * attrs.dilation[0];
                    for (j, windows) in reached.iter().enumerate() {
                        let shift = (j * attrs.dilation[1]) as isize - attrs.padding[1] as isize;
                        let (step, line) = (attrs.stride[1] as isize, (y * width) as isize);
                        let lanes = best[windows.clone()].iter_mut().zip(&mut places[windows.clone()]);
                        for (ox, (best, place)) in (windows.start as isize..).zip(lanes) {
                            let column = ox * step + shift;
                            // SAFETY: inside the image.
                            let value = unsafe { *image.offset(y as isize * x.strides[2] + column * x.strides[3]) };
                            let larger = value.beats(*best);
                            *best = select_unpredictable(larger, value, *best);
                            *place = select_unpredictable(larger, (line + column) as i32, *place);
                        }
                    }
                }
            }
        };
        /// Images that make a task worth its while.
        const IMAGES: usize = 16;
        let all = images * channels;
        parallel_for(all.div_ceil(IMAGES), &|t| {
            let own = t * IMAGES..((t + 1) * IMAGES).min(all);
            if in_pairs {
                let mut space = Pairs::new(out_height * width);
                vectorized(|| own.for_each(|t| {
                    let (image, places) = of_image(t);
                    // SAFETY: rows of an image of the view lie one behind the other.
                    let image = unsafe { std::slice::from_raw_parts(image, 2 * out_height * width) };
                    space.search(image, out_width, places);
                }));
            } else {
                let mut best = vec![T::LOWEST; out_width];
                vectorized(|| own.for_each(|image| search(image, &mut best)));
            }
        });
    });
}

/// The rows or columns of one window that are inside the image.
struct Inside {
    /// The first of them, in the image.
    first: usize,
    /// Which ones of the window they are.
    skipped: usize,
    end: usize,
}

impl Inside {
    fn of(attrs: &PoolAttrs, place: usize, axis: usize, extent: usize) -> Inside {
        let (step, padding, size) = (attrs.dilation[axis], attrs.padding[axis], attrs.kernel[axis]);
        let start = place * attrs.stride[axis];
        let skipped = padding.saturating_sub(start).div_ceil(step).min(size);
        let end = (extent + padding).saturating_sub(start).div_ceil(step).min(size).max(skipped);
        Inside { first: (start + skipped * step).saturating_sub(padding), skipped, end }
    }
}

fn dims(operand: &Operand) -> [usize; 4] {
    [operand.shape[0], operand.shape[1], operand.shape[2], operand.shape[3]]
}

/// Windows of two by two that lie side by side: first the larger of every pair of neighbours of the image, whose
/// rows are one long line of pairs, then the larger of two rows of these. Either is a loop over neighbours, which
/// vectorises, unlike one over elements two apart.
struct Pairs<T> {
    best: Vec<T>,
    places: Vec<i32>,
}

/// Lanes of the second step; rows are often short.
const LANES: usize = 8;

impl<T: Number> Pairs<T> {
    fn new(pairs: usize) -> Pairs<T> {
        Pairs { best: vec![T::LOWEST; pairs], places: vec![0; pairs] }
    }

    /// The places of the maxima of an image with two rows, and `width` pairs in each, for every row of windows.
    #[inline(always)]
    fn search(&mut self, image: &[T], width: usize, out: &mut [i32]) {
        let pairs = self.best.iter_mut().zip(&mut self.places).zip(image.as_chunks::<2>().0);
        for (first, ((best, place), &[a, b])) in (0..).step_by(2).zip(pairs) {
            let second = b.beats(a);
            *best = select_unpredictable(second, b, a);
            *place = first + i32::from(second);
        }
        for (k, out) in out.chunks_exact_mut(width).enumerate() {
            let rows = 2 * k * width..2 * (k + 1) * width;
            let (upper, lower) = self.best[rows.clone()].split_at(width);
            let (place, below) = self.places[rows].split_at(width);
            let mut at = 0;
            while at < width {
                // The last lanes once more, rather than fewer.
                let first = if width < LANES { at } else { at.min(width - LANES) };
                at = first + LANES;
                let pick = |i: usize| {
                    let lower = lower[first + i].beats(upper[first + i]);
                    select_unpredictable(lower, below[first + i], place[first + i])
                };
                match out[first..].first_chunk_mut::<LANES>() {
                    Some(out) => *out = std::array::from_fn(pick),
                    None => out[first..].iter_mut().enumerate().for_each(|(i, out)| *out = pick(i)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first maximum of a window, NaN being the largest, found plainly.
    fn plainly(image: &[f32], width: usize, row: usize, column: usize) -> i32 {
        let mut best = 2 * row * width + 2 * column;
        for place in [best, best + 1, best + width, best + width + 1] {
            if image[place].beats(image[best]) {
                best = place;
            }
        }
        best as i32
    }

    #[test]
    fn pairs_find_the_first_maximum() {
        let specials = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0];
        for (height, width) in [(1, 1), (3, 1), (2, 5), (1, 7), (2, 8), (3, 9), (12, 12), (5, 17), (2, 40)] {
            for seed in 0..40usize {
                // Few different values, so that there are ties.
                let value = |i: usize| {
                    let r = (i * 2_654_435_761 + seed * 40_503) >> 7;
                    if r.is_multiple_of(5) { specials[r / 5 % 5] } else { (r % 4) as f32 }
                };
                let image: Vec<f32> = (0..4 * height * width).map(value).collect();
                let mut out = vec![-1; height * width];
                vectorized(|| Pairs::new(2 * height * width).search(&image, width, &mut out));
                for (k, &place) in out.iter().enumerate() {
                    assert_eq!(
                        place,
                        plainly(&image, 2 * width, k / width, k % width),
                        "{height}x{width}, window {k}"
                    );
                }
            }
        }
    }
}
