//! Scattering, sorting, running sums and the positions of window maxima.

use super::gemm::vectorized;
use super::map::{Bindings, SlotPointer};
use super::special::start;
use super::threads::parallel_for;
use crate::dtype::DType;
use crate::op::PoolAttrs;
use crate::plan::kernel::{Operand, SpecialKernel};
use half::{bf16, f16};
use std::cmp::Ordering;
use std::hint::select_unpredictable;

/// Numbers that can be added up and put in order.
trait Number: Copy + Send + Sync + 'static {
    /// What sums are kept in; the result is written in it.
    type Sum: Copy + Send + Sync;
    /// Nothing is smaller.
    const LOWEST: Self;
    fn zero() -> Self::Sum;
    fn plus(self, sum: Self::Sum) -> Self::Sum;
    /// NaN counts as the largest.
    fn order(&self, other: &Self) -> Ordering;
    /// Whether it is larger, NaN being the largest.
    fn beats(self, other: Self) -> bool;
}

macro_rules! floats {
    ($($t:ty, $sum:ty, $widen:expr;)*) => {$(
        impl Number for $t {
            type Sum = $sum;
            const LOWEST: Self = <$t>::NEG_INFINITY;
            fn zero() -> $sum {
                0.0
            }
            fn plus(self, sum: $sum) -> $sum {
                let widen: fn($t) -> $sum = $widen;
                sum + widen(self)
            }
            fn order(&self, other: &Self) -> Ordering {
                self.partial_cmp(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }
            fn beats(self, other: Self) -> bool {
                (self > other) | (self.is_nan() & !other.is_nan())
            }
        }
    )*};
}
floats! {
    f32, f32, |x| x;
    f64, f64, |x| x;
    f16, f32, |x| x.to_f32();
    bf16, f32, |x| x.to_f32();
}

macro_rules! ints {
    ($($t:ty),*) => {$(
        impl Number for $t {
            type Sum = $t;
            const LOWEST: Self = <$t>::MIN;
            fn zero() -> $t {
                0
            }
            fn plus(self, sum: $t) -> $t {
                sum.wrapping_add(self)
            }
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
            fn beats(self, other: Self) -> bool {
                self > other
            }
        }
    )*};
}
ints!(i32, i64, u8);

macro_rules! by_number {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $t = f32;
                $body
            }
            DType::F64 => {
                type $t = f64;
                $body
            }
            DType::F16 => {
                type $t = f16;
                $body
            }
            DType::BF16 => {
                type $t = bf16;
                $body
            }
            DType::I32 => {
                type $t = i32;
                $body
            }
            DType::I64 => {
                type $t = i64;
                $body
            }
            DType::U8 | DType::Bool => {
                type $t = u8;
                $body
            }
        }
    };
}

/// The position of the element at flat row-major place `flat` in a view, from its start.
fn position(operand: &Operand, mut flat: usize) -> isize {
    let mut at = 0;
    for k in (0..operand.shape.rank()).rev() {
        at += (flat % operand.shape[k]) as isize * operand.strides[k];
        flat /= operand.shape[k];
    }
    at
}

/// An index of whichever integer type.
fn index_at(operand: &Operand, at: isize, bind: Bindings) -> i64 {
    // SAFETY: the position is the view's own.
    unsafe {
        match operand.dtype {
            DType::I32 => i64::from(*start::<i32>(operand, bind).offset(at)),
            DType::I64 => *start::<i64>(operand, bind).offset(at),
            _ => i64::from(*start::<u8>(operand, bind).offset(at)),
        }
    }
}

/// Lines along an axis: (lines before it, its length, elements behind it).
fn lines(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

/// The strides of a view seen as (before, axis, behind), where it can be seen so.
fn in_three(operand: &Operand, axis: usize) -> Option<[isize; 3]> {
    let merged = |axes: std::ops::Range<usize>| {
        let mut real = axes.filter(|&k| operand.shape[k] != 1).rev();
        let Some(last) = real.next() else { return Some(0) };
        let mut expected = operand.strides[last] * operand.shape[last] as isize;
        for k in real {
            if operand.strides[k] != expected {
                return None;
            }
            expected *= operand.shape[k] as isize;
        }
        Some(operand.strides[last])
    };
    Some([merged(0..axis)?, operand.strides[axis], merged(axis + 1..operand.shape.rank())?])
}

/// Sums values into zeros. Threads own columns (what lies behind the axis) or slabs before it, so that every sum
/// is made by one thread in the order of the values.
pub(super) fn scatter_add(kernel: &SpecialKernel, axis: usize, target: *mut u8, bind: Bindings) {
    let (index, values) = (&kernel.operands[0], &kernel.operands[1]);
    let (before, count, behind) = lines(&values.shape, axis);
    let extent = kernel.output.shape[axis];
    let strides = (in_three(index, axis), in_three(values, axis));
    by_number!(values.dtype, T => {
        let target = SlotPointer(target);
        /// Columns that one task owns.
        const COLUMNS: usize = 64;
        /// Values that make a task worth its while.
        const LEAST: usize = 1 << 13;
        let pieces = behind.div_ceil(COLUMNS).max(1);
        let slabs = (LEAST / (count * behind).max(1)).clamp(1, before.max(1));
        let slab = |slab: usize, columns: std::ops::Range<usize>| {
            let sums = target.get().cast::<<T as Number>::Sum>();
            for i in 0..extent {
                for j in columns.clone() {
                    // SAFETY: inside the output, in columns of this task.
                    unsafe { *sums.add((slab * extent + i) * behind + j) = <T as Number>::zero() };
                }
            }
            for i in 0..count {
                for j in columns.clone() {
                    let place = |operand: &Operand, strides: Option<[isize; 3]>| match strides {
                        Some([b, a, h]) => slab as isize * b + i as isize * a + j as isize * h,
                        None => position(operand, (slab * count + i) * behind + j),
                    };
                    let k = index_at(index, place(index, strides.0), bind);
                    if !(0..extent as i64).contains(&k) {
                        bind.faults.bad_index(k, extent);
                        continue;
                    }
                    // SAFETY: the index was checked; the column belongs to this task.
                    unsafe {
                        let sum = sums.add((slab * extent + k as usize) * behind + j);
                        *sum = (*start::<T>(values, bind).offset(place(values, strides.1))).plus(*sum);
                    }
                }
            }
        };
        let task = |t: usize| {
            let (first, piece) = (t / pieces * slabs, t % pieces);
            let columns = piece * COLUMNS..((piece + 1) * COLUMNS).min(behind);
            (first..(first + slabs).min(before)).for_each(|s| slab(s, columns.clone()));
        };
        parallel_for(before.div_ceil(slabs) * pieces, &task);
    });
}

/// The stable order of every line.
pub(super) fn argsort(kernel: &SpecialKernel, axis: usize, descending: bool, bind: Bindings) {
    let x = &kernel.operands[0];
    let shape: &[usize] = if x.shape.rank() == 0 { &[1] } else { &x.shape };
    let (before, count, behind) = lines(shape, axis);
    let out = bind.slots[kernel.output.slot];
    by_number!(x.dtype, T => {
        let task = |line: usize| {
            let first = line / behind * count * behind + line % behind;
            let value = |i: i32| {
                // SAFETY: inside the view.
                unsafe { *start::<T>(x, bind).offset(position(x, first + i as usize * behind)) }
            };
            let values: Vec<T> = (0..count as i32).map(value).collect();
            let mut order: Vec<i32> = (0..count as i32).collect();
            order.sort_by(|&a, &b| {
                let forward = values[a as usize].order(&values[b as usize]);
                if descending { forward.reverse() } else { forward }
            });
            for (i, k) in order.into_iter().enumerate() {
                // SAFETY: inside the output; the line is this task's.
                unsafe { *out.get().cast::<i32>().add(first + i * behind) = k };
            }
        };
        let tasks = before * behind;
        if tasks * count < 1 << 12 { (0..tasks).for_each(task) } else { parallel_for(tasks, &task) }
    });
}

/// Running sums of every line.
pub(super) fn cumsum(kernel: &SpecialKernel, axis: usize, target: *mut u8, bind: Bindings) {
    let x = &kernel.operands[0];
    let (before, count, behind) = lines(&x.shape, axis);
    let out = SlotPointer(target);
    by_number!(x.dtype, T => {
        let task = |line: usize| {
            let first = line / behind * count * behind + line % behind;
            let mut sum = <T as Number>::zero();
            for i in 0..count {
                let flat = first + i * behind;
                // SAFETY: inside the view and the output; the line is this task's.
                unsafe {
                    sum = (*start::<T>(x, bind).offset(position(x, flat))).plus(sum);
                    *out.get().cast::<<T as Number>::Sum>().add(flat) = sum;
                }
            }
        };
        let tasks = before * behind;
        if tasks * count < 1 << 14 { (0..tasks).for_each(task) } else { parallel_for(tasks, &task) }
    });
}

/// The place, in its image, of every window's first maximum. A row of windows is searched at once, one place of
/// the window after the other, which vectorises.
pub(super) fn max_pool_index(kernel: &SpecialKernel, attrs: PoolAttrs, bind: Bindings) {
    let x = &kernel.operands[0];
    let out = bind.slots[kernel.output.slot];
    let ([images, channels, height, width], [.., out_height, out_width]) = (dims(x), dims(&kernel.output));
    let rows: Vec<Inside> = (0..out_height).map(|o| Inside::of(&attrs, o, 0, height)).collect();
    let columns: Vec<Inside> = (0..out_width).map(|o| Inside::of(&attrs, o, 1, width)).collect();
    // The windows, along a row, whose j-th column is inside the image.
    let reached = |j: usize| {
        let from = columns.iter().position(|c| c.skipped <= j && j < c.end);
        let from = from.unwrap_or(out_width);
        let to = columns.iter().rposition(|c| c.skipped <= j && j < c.end).map_or(from, |last| last + 1);
        from..to
    };
    let reached: Vec<std::ops::Range<usize>> = (0..attrs.kernel[1]).map(reached).collect();
    by_number!(x.dtype, T => {
        let origin = SlotPointer(start::<T>(x, bind).cast_mut().cast());
        let search = |t: usize, best: &mut [T]| {
            let base = (t / channels) as isize * x.strides[0] + (t % channels) as isize * x.strides[1];
            // SAFETY: an image of the view, and its part of the output, which is this task's.
            let (image, out) = unsafe {
                let out = out.get().cast::<i32>().add(t * out_height * out_width);
                (origin.get().cast_const().cast::<T>().offset(base), std::slice::from_raw_parts_mut(out, out_height * out_width))
            };
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
            let mut best = vec![T::LOWEST; out_width];
            vectorized(|| (t * IMAGES..((t + 1) * IMAGES).min(all)).for_each(|image| search(image, &mut best)));
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
