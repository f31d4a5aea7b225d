//! Many short rows in one block: reducing each, and spreading one value over each.

use super::element::LaneElement;
use super::isa::leveled;
use super::reduce::{Fold, reduce, row, with_fold};
use volta_ir::op::ReduceOp;

/// out[i] = the reduction of lanes i * segment .. (i + 1) * segment, with the bits `reduce` gives.
pub(crate) fn reduce_segments<T: LaneElement>(op: ReduceOp, x: &[T], segment: usize, out: &mut [T]) {
    assert_eq!(x.len(), out.len() * segment, "block lengths differ");
    match segment {
        0 => out.fill(reduce(op, &[])),
        1 => out.copy_from_slice(x),
        2..1024 => with_fold!(op, rows::<T>(x, segment, out)),
        _ => {
            for (o, row) in out.iter_mut().zip(x.chunks_exact(segment)) {
                *o = reduce(op, row);
            }
        }
    }
}

/// out = each lane of x repeated `segment` times.
pub(crate) fn broadcast_segments<T: LaneElement>(x: &[T], segment: usize, out: &mut [T]) {
    assert_eq!(out.len(), x.len() * segment, "block lengths differ");
    match segment {
        0 => {}
        1 => out.copy_from_slice(x),
        _ => spread(x, segment, out),
    }
}

/// Rows of a length known to the compiler, which then works on several rows at once.
#[inline(always)]
fn fixed_rows<T: LaneElement, F: Fold<T>, const N: usize>(x: &[T], out: &mut [T]) {
    for (o, row_n) in out.iter_mut().zip(x.as_chunks::<N>().0) {
        *o = row::<T, F>(row_n);
    }
}

#[inline(always)]
fn fixed_spread<T: LaneElement, const N: usize>(x: &[T], out: &mut [T]) {
    for (o, &x) in out.as_chunks_mut::<N>().0.iter_mut().zip(x) {
        *o = [x; N];
    }
}

/// Longest segment written by a store of constant length.
const SPILL: usize = 16;

/// Stores `SPILL` lanes for each value; those past its segment are overwritten by the next value.
#[inline(always)]
fn spilling_spread<T: LaneElement>(x: &[T], segment: usize, out: &mut [T]) {
    for (i, &x) in x.iter().enumerate() {
        let rest = &mut out[i * segment..];
        match rest.first_chunk_mut::<SPILL>() {
            Some(chunk) => *chunk = [x; SPILL],
            None => rest.fill(x),
        }
    }
}

leveled! {
    fn rows[T: LaneElement, F: Fold<T>](x: &[T], segment: usize, out: &mut [T]) {
        match segment {
            2 => fixed_rows::<T, F, 2>(x, out),
            3 => fixed_rows::<T, F, 3>(x, out),
            4 => fixed_rows::<T, F, 4>(x, out),
            5 => fixed_rows::<T, F, 5>(x, out),
            6 => fixed_rows::<T, F, 6>(x, out),
            7 => fixed_rows::<T, F, 7>(x, out),
            8 => fixed_rows::<T, F, 8>(x, out),
            16 => fixed_rows::<T, F, 16>(x, out),
            _ => {
                for (o, x) in out.iter_mut().zip(x.chunks_exact(segment)) {
                    *o = row::<T, F>(x);
                }
            }
        }
    }

    fn spread[T: LaneElement](x: &[T], segment: usize, out: &mut [T]) {
        match segment {
            2 => fixed_spread::<T, 2>(x, out),
            3 => fixed_spread::<T, 3>(x, out),
            4 => fixed_spread::<T, 4>(x, out),
            8 => fixed_spread::<T, 8>(x, out),
            5..=SPILL => spilling_spread(x, segment, out),
            _ => {
                for (o, &x) in out.chunks_exact_mut(segment).zip(x) {
                    o.fill(x);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_reduce_as_blocks_do() {
        for segment in (0..70).chain([127, 500, 1500]) {
            let rows = 13;
            let x: Vec<f32> = (0..rows * segment).map(|i| (i as f32 * 0.7).sin()).collect();
            for op in [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min] {
                let mut out = vec![0.0; rows];
                reduce_segments(op, &x, segment, &mut out);
                for (i, o) in out.iter().enumerate() {
                    let row = &x[i * segment..(i + 1) * segment];
                    assert_eq!(o.to_bits(), reduce(op, row).to_bits(), "{op:?} of {segment}");
                }
            }
        }
    }

    #[test]
    fn values_spread_over_rows() {
        for segment in 0..40 {
            let x: Vec<i64> = (0..29).collect();
            let mut out = vec![-1; 29 * segment];
            broadcast_segments(&x, segment, &mut out);
            assert!(out.iter().enumerate().all(|(i, &o)| o == (i / segment) as i64));
        }
    }
}
