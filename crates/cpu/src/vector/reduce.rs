//! Reductions of a block to one value, and lane-wise accumulation.
//!
//! The order of combination is a function of the length alone, so that sums have the same bits at
//! every level, and `reduce_segments` gives for a row what `reduce` gives for it.

use super::element::LaneElement;
use super::isa::leveled;
use std::hint::select_unpredictable;
use volta_ir::op::ReduceOp;

/// A reduction as a type, so that its loops are compiled with the operation in them.
pub(super) trait Fold<T> {
    const START: T;
    fn join(a: T, b: T) -> T;
    /// As `join`, but what it gives of a NaN does not matter if `checked` is asked afterwards.
    fn step(a: T, b: T) -> T;
    /// The reduction of `x` by `join`, given that by `step`.
    fn checked(x: &[T], by_step: T) -> T;
}

macro_rules! folds {
    ($($name:ident, $start:ident, $join:ident, |$a:ident, $b:ident| $step:expr, $checked:ident;)*) => {$(
        pub(super) struct $name;

        impl<T: LaneElement> Fold<T> for $name {
            const START: T = T::$start;

            #[inline(always)]
            fn join(a: T, b: T) -> T {
                a.$join(b)
            }

            #[inline(always)]
            fn step($a: T, $b: T) -> T {
                $step
            }

            #[inline(always)]
            fn checked(x: &[T], by_step: T) -> T {
                $checked(x, by_step)
            }
        }
    )*};
}
folds! {
    Sum, ZERO, add, |a, b| a.add(b), as_it_is;
    Prod, ONE, mul, |a, b| a.mul(b), as_it_is;
    Max, LOWEST, maximum, |a, b| if a > b { a } else { b }, unless_nan;
    Min, HIGHEST, minimum, |a, b| if a < b { a } else { b }, unless_nan;
}

#[inline(always)]
fn as_it_is<T>(_: &[T], y: T) -> T {
    y
}

/// NaN if there is one, else `best`. A scan of its own leaves each comparison of the reduction one
/// instruction, which LLVM keeps in vectors, and costs less than the selects it saves.
#[inline(always)]
fn unless_nan<T: LaneElement>(x: &[T], best: T) -> T {
    let mut any = false;
    for x in x {
        any |= x.is_nan();
    }
    if any { T::NAN } else { best }
}

/// Calls a function with the type of a reduction as its second generic argument.
macro_rules! with_fold {
    ($op:expr, $f:ident::<$T:ident>($($arg:expr),*)) => {
        match $op {
            ReduceOp::Sum => $f::<$T, $crate::vector::reduce::Sum>($($arg),*),
            ReduceOp::Prod => $f::<$T, $crate::vector::reduce::Prod>($($arg),*),
            ReduceOp::Max => $f::<$T, $crate::vector::reduce::Max>($($arg),*),
            ReduceOp::Min => $f::<$T, $crate::vector::reduce::Min>($($arg),*),
        }
    };
}
pub(super) use with_fold;

/// Lanes reduced by one set of accumulators; longer inputs are split, which keeps sums accurate.
const PIECE: usize = 4096;

/// The reduction of a block; of an empty one the operation's identity.
pub(crate) fn reduce<T: LaneElement>(op: ReduceOp, x: &[T]) -> T {
    with_fold!(op, pairwise::<T>(x))
}

fn pairwise<T: LaneElement, F: Fold<T>>(x: &[T]) -> T {
    if x.len() <= PIECE {
        return piece::<T, F>(x);
    }
    let (low, high) = x.split_at((x.len() / 2).next_multiple_of(PIECE));
    F::join(pairwise::<T, F>(low), pairwise::<T, F>(high))
}

/// Reduces at most `PIECE` lanes: few one after the other, more in 8 accumulators, many in
/// several registers of them, which hides the latency of an addition.
#[inline(always)]
pub(super) fn row<T: LaneElement, F: Fold<T>>(x: &[T]) -> T {
    if x.len() < 8 {
        let mut acc = F::START;
        for &x in x {
            acc = F::join(acc, x);
        }
        acc
    } else if x.len() < 64 {
        wide::<T, F, 8>(x)
    } else if size_of::<T>() == 8 {
        wide::<T, F, 16>(x)
    } else {
        wide::<T, F, 64>(x)
    }
}

/// W accumulators side by side, then a tree over them, for at least W lanes.
#[inline(always)]
fn wide<T: LaneElement, F: Fold<T>, const W: usize>(x: &[T]) -> T {
    let mut acc = [F::START; W];
    let (chunks, tail) = x.as_chunks::<W>();
    for chunk in chunks {
        for i in 0..W {
            acc[i] = F::step(acc[i], chunk[i]);
        }
    }
    if !tail.is_empty() {
        // The last W lanes (there are that many), with those already taken masked off: unlike a
        // copy of the tail, all of constant length.
        let (_, last) = x.as_rchunks::<W>();
        let last = &last[last.len() - 1];
        let first = W - tail.len();
        for i in 0..W {
            acc[i] = F::step(acc[i], select_unpredictable(i >= first, last[i], F::START));
        }
    }
    F::checked(x, tree::<T, F, W>(acc))
}

/// Accumulators to one value.
#[inline(always)]
pub(super) fn tree<T: LaneElement, F: Fold<T>, const W: usize>(mut acc: [T; W]) -> T {
    let mut w = W / 2;
    while w > 0 {
        for i in 0..w {
            acc[i] = F::step(acc[i], acc[i + w]);
        }
        w /= 2;
    }
    acc[0]
}

/// acc = acc op x, lane by lane.
pub(crate) fn accumulate<T: LaneElement>(op: ReduceOp, acc: &mut [T], x: &[T]) {
    assert_eq!(acc.len(), x.len(), "block lengths differ");
    with_fold!(op, accumulate_lanes::<T>(acc, x))
}

/// The position of the first maximum (or minimum); a NaN counts as the extreme. Zero if empty.
pub(crate) fn arg_reduce<T: LaneElement>(is_max: bool, x: &[T]) -> usize {
    let best = reduce(if is_max { ReduceOp::Max } else { ReduceOp::Min }, x);
    first_like(x, best)
}

leveled! {
    fn piece[T: LaneElement, F: Fold<T>](x: &[T]) -> T {
        row::<T, F>(x)
    }

    fn accumulate_lanes[T: LaneElement, F: Fold<T>](acc: &mut [T], x: &[T]) {
        for (a, &x) in acc.iter_mut().zip(x) {
            *a = F::join(*a, x);
        }
    }

    /// The first lane equal to `best`, or NaN as it is: whole chunks are tested at once.
    fn first_like[T: LaneElement](x: &[T], best: T) -> usize {
        const CHUNK: usize = 128;
        let nan = best.is_nan();
        for (k, chunk) in x.chunks(CHUNK).enumerate() {
            let mut any = false;
            for &x in chunk {
                any |= (x == best) | (nan & x.is_nan());
            }
            if any {
                let at = chunk.iter().position(|&x| x == best || (nan && x.is_nan()));
                return k * CHUNK + at.unwrap_or(0);
            }
        }
        0
    }
}

/// A class that has infinities and NaN.
pub(crate) trait Float: LaneElement {
    fn is_finite(self) -> bool;
}

macro_rules! floats {
    ($($T:ident)*) => {$(
        impl Float for $T {
            #[inline(always)]
            fn is_finite(self) -> bool {
                <$T>::is_finite(self)
            }
        }
    )*};
}
floats!(f32 f64);

leveled! {
    /// How many lanes are infinite or NaN.
    pub(crate) fn count_nonfinite[T: Float](x: &[T]) -> usize {
        let mut count = 0;
        // Narrow counters fill a register with as many lanes as the data does.
        for chunk in x.chunks(1 << 20) {
            let mut n = 0u32;
            for &x in chunk {
                n += u32::from(!x.is_finite());
            }
            count += n as usize;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::isa::forced::assert_levels_agree;

    fn values(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 % 1009) as f32 * 0.37).sin()).collect()
    }

    #[test]
    fn sums_are_accurate_and_agree() {
        for n in (0..200).chain([255, 1000, 1024, 4096, 4097, 12_289, 100_003]) {
            let x = values(n);
            let exact: f64 = x.iter().map(|&x| f64::from(x)).sum();
            let size: f64 = x.iter().map(|&x| f64::from(x).abs()).sum();
            assert!((f64::from(reduce(ReduceOp::Sum, &x)) - exact).abs() <= size * 1e-6);
            let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
            assert!((reduce(ReduceOp::Sum, &wide) - exact).abs() <= size * 1e-14);
            for op in [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min] {
                assert_levels_agree(|| (reduce(op, &x).to_bits(), reduce(op, &wide).to_bits()));
            }
            let ints: Vec<i64> = (0..n as i64).collect();
            assert_eq!(reduce(ReduceOp::Sum, &ints), ints.iter().sum::<i64>());
            let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let min = x.iter().copied().fold(f32::INFINITY, f32::min);
            assert_eq!(reduce(ReduceOp::Max, &x), max);
            assert_eq!(reduce(ReduceOp::Min, &x), min);
            let first = |v| x.iter().position(|&x| x == v).unwrap_or(0);
            assert_eq!(arg_reduce(true, &x), first(max));
            assert_eq!(arg_reduce(false, &x), first(min));
        }
    }

    #[test]
    fn nan_wins_and_is_found_first() {
        for n in [1, 5, 9, 63, 64, 65, 300] {
            for at in [0, n / 2, n - 1] {
                let mut x = values(n);
                x[at] = f32::NAN;
                x[n - 1] = if at == n - 1 { f32::NAN } else { f32::INFINITY };
                assert!(reduce(ReduceOp::Max, &x).is_nan());
                assert!(reduce(ReduceOp::Min, &x).is_nan());
                assert_eq!(arg_reduce(true, &x), at);
                assert_eq!(arg_reduce(false, &x), at);
                assert_eq!(count_nonfinite(&x), if at == n - 1 { 1 } else { 2 });
            }
        }
    }

    #[test]
    fn empty_blocks_give_identities() {
        assert_eq!(reduce::<f32>(ReduceOp::Sum, &[]), 0.0);
        assert_eq!(reduce::<i32>(ReduceOp::Prod, &[]), 1);
        assert_eq!(reduce::<f64>(ReduceOp::Max, &[]), f64::NEG_INFINITY);
        assert_eq!(reduce::<i64>(ReduceOp::Min, &[]), i64::MAX);
        assert_eq!(reduce::<u8>(ReduceOp::Max, &[]), 0);
        assert_eq!(arg_reduce::<f32>(true, &[]), 0);
    }

    #[test]
    fn accumulation_is_lane_wise() {
        let (x, y) = (values(77), values(177)[100..].to_vec());
        let mut acc = x.clone();
        accumulate(ReduceOp::Max, &mut acc, &y);
        accumulate(ReduceOp::Sum, &mut acc, &x);
        for i in 0..77 {
            assert_eq!(acc[i], x[i].max(y[i]) + x[i]);
        }
    }
}
