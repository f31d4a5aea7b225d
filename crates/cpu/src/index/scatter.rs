//! Adding values up at the places that indices name.

use super::{Number, by_number, lines, position};
use crate::interpreter::{Bindings, SlotPointer};
use crate::threads::parallel_for;
use half::{bf16, f16};
use std::slice::{from_raw_parts, from_raw_parts_mut};
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::{NativeKernel, Operand};

/// An index of whichever integer type.
pub(super) fn index_at(operand: &Operand, at: isize, bind: Bindings) -> i64 {
    // SAFETY: the position is the view's own.
    unsafe {
        match operand.dtype {
            DType::I32 => i64::from(*bind.start::<i32>(operand).offset(at)),
            DType::I64 => *bind.start::<i64>(operand).offset(at),
            DType::U32 => i64::from(*bind.start::<u32>(operand).offset(at)),
            _ => i64::from(*bind.start::<u8>(operand).offset(at)),
        }
    }
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
pub(crate) fn scatter_add(kernel: &NativeKernel, axis: usize, target: *mut u8, bind: Bindings) {
    let (index, values) = (&kernel.operands[0], &kernel.operands[1]);
    let (before, count, behind) = lines(&values.shape, axis);
    let extent = kernel.output.shape[axis];
    let strides = (in_three(index, axis), in_three(values, axis));
    by_number!(values.dtype, T => {
        let target = SlotPointer(target);
        /// Columns that one task owns.
        const COLUMNS: usize = 64;
        /// Values that make a task worth its while.
        const MIN_VALUES_PER_TASK: usize = 1 << 13;
        let pieces = behind.div_ceil(COLUMNS).max(1);
        let slabs = (MIN_VALUES_PER_TASK / (count * behind).max(1)).clamp(1, before.max(1));
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
                        continue;
                    }
                    // SAFETY: the index was checked; the column belongs to this task.
                    unsafe {
                        let sum = sums.add((slab * extent + k as usize) * behind + j);
                        *sum = (*bind.start::<T>(values).offset(place(values, strides.1))).plus(*sum);
                    }
                }
            }
        };
        // Lines of neighbours: the usual gradient of a gather along the last axis, and of pooling.
        let plain = |strides: Option<[isize; 3]>| strides.is_some_and(|[_, along, _]| along == 1);
        if behind == 1 && index.dtype == DType::I32 && plain(strides.0) && plain(strides.1) {
            let first = |strides: Option<[isize; 3]>, line: usize| strides.map_or(0, |s| line as isize * s[0]);
            parallel_for(before.div_ceil(slabs), &|t| {
                for line in t * slabs..((t + 1) * slabs).min(before) {
                    // SAFETY: a line of each view, and of the output, which is this task's.
                    let (indices, values, sums) = unsafe {
                        (
                            from_raw_parts(bind.start::<i32>(index).offset(first(strides.0, line)), count),
                            from_raw_parts(bind.start::<T>(values).offset(first(strides.1, line)), count),
                            from_raw_parts_mut(target.get().cast::<<T as Number>::Sum>().add(line * extent), extent),
                        )
                    };
                    add_line(indices, values, sums);
                }
            });
            return;
        }
        let task = |t: usize| {
            let (first, piece) = (t / pieces * slabs, t % pieces);
            let columns = piece * COLUMNS..((piece + 1) * COLUMNS).min(behind);
            (first..(first + slabs).min(before)).for_each(|s| slab(s, columns.clone()));
        };
        parallel_for(before.div_ceil(slabs) * pieces, &task);
    });
}

/// One line of sums: the values at the places that the indices name.
fn add_line<T: Number>(indices: &[i32], values: &[T], sums: &mut [T::Sum]) {
    sums.fill(T::zero());
    for (&k, &value) in indices.iter().zip(values) {
        // A negative index becomes one far out of bounds.
        if let Some(sum) = sums.get_mut(k as usize) {
            *sum = value.plus(*sum);
        }
    }
}
