//! Scattering, sorting, running sums and the positions of window maxima.

use super::map::{Bindings, SlotPointer};
use super::special::start;
use super::threads::parallel_for;
use crate::dtype::DType;
use crate::op::PoolAttrs;
use crate::plan::kernel::{Operand, SpecialKernel};
use half::{bf16, f16};
use std::cmp::Ordering;

/// Numbers that can be added up and put in order.
trait Number: Copy + Send + Sync + 'static {
    /// What sums are kept in; the result is written in it.
    type Sum: Copy + Send + Sync;
    fn zero() -> Self::Sum;
    fn plus(self, sum: Self::Sum) -> Self::Sum;
    /// NaN counts as the largest.
    fn order(&self, other: &Self) -> Ordering;
}

macro_rules! floats {
    ($($t:ty, $sum:ty, $widen:expr;)*) => {$(
        impl Number for $t {
            type Sum = $sum;
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
            fn zero() -> $t {
                0
            }
            fn plus(self, sum: $t) -> $t {
                sum.wrapping_add(self)
            }
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
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

/// Sums values into zeros. Threads own columns (what lies behind the axis) or slabs before it, so that every sum
/// is made by one thread in the order of the values.
pub(super) fn scatter_add(kernel: &SpecialKernel, axis: usize, target: *mut u8, bind: Bindings) {
    let (index, values) = (&kernel.operands[0], &kernel.operands[1]);
    let (before, count, behind) = lines(&values.shape, axis);
    let extent = kernel.output.shape[axis];
    by_number!(values.dtype, T => {
        let target = SlotPointer(target);
        /// Columns that one task owns.
        const COLUMNS: usize = 64;
        let pieces = behind.div_ceil(COLUMNS).max(1);
        let task = |t: usize| {
            let sums = target.get().cast::<<T as Number>::Sum>();
            let (slab, piece) = (t / pieces, t % pieces);
            let columns = piece * COLUMNS..((piece + 1) * COLUMNS).min(behind);
            for i in 0..extent {
                for j in columns.clone() {
                    // SAFETY: inside the output, in columns of this task.
                    unsafe { *sums.add((slab * extent + i) * behind + j) = <T as Number>::zero() };
                }
            }
            for i in 0..count {
                let line = (slab * count + i) * behind;
                for j in columns.clone() {
                    let k = index_at(index, position(index, line + j), bind);
                    if !(0..extent as i64).contains(&k) {
                        bind.faults.bad_index(k, extent);
                        continue;
                    }
                    // SAFETY: the index was checked; the column belongs to this task.
                    unsafe {
                        let sum = sums.add((slab * extent + k as usize) * behind + j);
                        *sum = (*start::<T>(values, bind).offset(position(values, line + j))).plus(*sum);
                    }
                }
            }
        };
        let tasks = before * pieces;
        if values.shape.numel() + kernel.output.shape.numel() < 1 << 14 { (0..tasks).for_each(task) } else { parallel_for(tasks, &task) }
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

/// The place, in its image, of every window's first maximum.
pub(super) fn max_pool_index(kernel: &SpecialKernel, attrs: PoolAttrs, bind: Bindings) {
    let x = &kernel.operands[0];
    let out = bind.slots[kernel.output.slot];
    let ([_, channels, height, width], [.., out_height, out_width]) = (dims(x), dims(&kernel.output));
    by_number!(x.dtype, T => {
        let image = |t: usize| {
            let base = (t / channels) as isize * x.strides[0] + (t % channels) as isize * x.strides[1];
            let at = |i: usize, j: usize| {
                // SAFETY: inside the image.
                unsafe { *start::<T>(x, bind).offset(base + i as isize * x.strides[2] + j as isize * x.strides[3]) }
            };
            // The rows or columns of a window that are inside the image.
            let inside = |place: usize, axis: usize, extent: usize| {
                let first = (place * attrs.stride[axis]) as isize - attrs.padding[axis] as isize;
                let step = attrs.dilation[axis];
                (0..attrs.kernel[axis])
                    .map(move |k| first + (k * step) as isize)
                    .filter(move |&p| p >= 0 && p < extent as isize)
                    .map(|p| p as usize)
            };
            for oy in 0..out_height {
                for ox in 0..out_width {
                    let mut best: Option<(T, usize)> = None;
                    for i in inside(oy, 0, height) {
                        for j in inside(ox, 1, width) {
                            let value = at(i, j);
                            if best.is_none_or(|(b, _)| value.order(&b) == Ordering::Greater) {
                                best = Some((value, i * width + j));
                            }
                        }
                    }
                    let place = best.map_or(0, |(_, place)| place) as i32;
                    // SAFETY: inside the output, in this task's image.
                    unsafe { *out.get().cast::<i32>().add((t * out_height + oy) * out_width + ox) = place };
                }
            }
        };
        parallel_for(x.shape[0] * channels, &image);
    });
}

fn dims(operand: &Operand) -> [usize; 4] {
    [operand.shape[0], operand.shape[1], operand.shape[2], operand.shape[3]]
}
