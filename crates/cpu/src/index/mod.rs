//! Sorting and running sums; `scatter` adds by index, `first_position` finds who names a place first, `max_pool` the
//! positions of window maxima.

mod first_position;
mod max_pool;
mod scatter;

pub(super) use first_position::first_position;
pub(super) use max_pool::max_pool_index;
pub(super) use scatter::scatter_add;

use super::interpreter::{Bindings, SlotPointer};
use super::threads::parallel_for;
use half::{bf16, f16};
use std::cmp::Ordering;
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::{NativeKernel, Operand};

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
            #[inline(always)]
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
            #[inline(always)]
            fn beats(self, other: Self) -> bool {
                self > other
            }
        }
    )*};
}
ints!(i32, i64, u32, u8);

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
            DType::U32 => {
                type $t = u32;
                $body
            }
            DType::U8 | DType::Bool => {
                type $t = u8;
                $body
            }
        }
    };
}

use by_number;

/// The position of the element at flat row-major place `flat` in a view, from its start.
fn position(operand: &Operand, mut flat: usize) -> isize {
    let mut at = 0;
    for k in (0..operand.shape.rank()).rev() {
        at += (flat % operand.shape[k]) as isize * operand.strides[k];
        flat /= operand.shape[k];
    }
    at
}

/// Lines along an axis: (lines before it, its length, elements behind it).
fn lines(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

/// The stable order of every line.
pub(super) fn argsort(kernel: &NativeKernel, axis: usize, descending: bool, bind: Bindings) {
    let x = &kernel.operands[0];
    let shape: &[usize] = if x.shape.rank() == 0 { &[1] } else { &x.shape };
    let (before, count, behind) = lines(shape, axis);
    let out = bind.slots[kernel.output.slot];
    by_number!(x.dtype, T => {
        let task = |line: usize| {
            let first = line / behind * count * behind + line % behind;
            let value = |i: i32| {
                // SAFETY: inside the view.
                unsafe { *bind.start::<T>(x).offset(position(x, first + i as usize * behind)) }
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
pub(super) fn cumsum(kernel: &NativeKernel, axis: usize, target: *mut u8, bind: Bindings) {
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
                    sum = (*bind.start::<T>(x).offset(position(x, flat))).plus(sum);
                    *out.get().cast::<<T as Number>::Sum>().add(flat) = sum;
                }
            }
        };
        let tasks = before * behind;
        if tasks * count < 1 << 14 { (0..tasks).for_each(task) } else { parallel_for(tasks, &task) }
    });
}
