//! Dot products of contiguous rows with one contiguous vector, for products with one column.

use super::element::Accumulator;

/// The dot products of up to four rows with `x`, in `LANES` parallel sums that are added in a fixed
/// order. Inlined into functions that enable the instruction set; FUSED says it has fused
/// multiply-add (without it the operation would be a library call).
///
/// # Safety
/// `count` rows of `k` elements, `row_stride` apart, and `k` elements of `x` are readable.
#[inline(always)]
pub(super) unsafe fn dots<T: Accumulator, const LANES: usize, const FUSED: bool>(
    rows: *const T,
    row_stride: isize,
    count: usize,
    x: *const T,
    k: usize,
) -> [T; 4] {
    let mut result = [T::default(); 4];
    // SAFETY: passed on from the caller.
    unsafe {
        if count == 4 {
            let starts = [0, 1, 2, 3].map(|r| rows.offset(r * row_stride));
            result = together::<T, 4, LANES, FUSED>(starts, x, k);
        } else {
            for (r, slot) in result.iter_mut().enumerate().take(count) {
                [*slot] = together::<T, 1, LANES, FUSED>([rows.offset(r as isize * row_stride)], x, k);
            }
        }
    }
    result
}

#[inline(always)]
fn step<T: Accumulator, const FUSED: bool>(a: T, b: T, sum: T) -> T {
    if FUSED { a.fused(b, sum) } else { a * b + sum }
}

#[inline(always)]
unsafe fn together<T: Accumulator, const ROWS: usize, const LANES: usize, const FUSED: bool>(
    rows: [*const T; ROWS],
    x: *const T,
    k: usize,
) -> [T; ROWS] {
    let mut sums = [[T::default(); LANES]; ROWS];
    let whole = k - k % LANES;
    let mut p = 0;
    while p < whole {
        // SAFETY: p + LANES <= k.
        let xs = unsafe { *x.add(p).cast::<[T; LANES]>() };
        for r in 0..ROWS {
            // SAFETY: as above, each row has k elements.
            let row = unsafe { *rows[r].add(p).cast::<[T; LANES]>() };
            for l in 0..LANES {
                sums[r][l] = step::<T, FUSED>(row[l], xs[l], sums[r][l]);
            }
        }
        p += LANES;
    }
    let mut result = [T::default(); ROWS];
    for r in 0..ROWS {
        let mut width = LANES;
        while width > 1 {
            width /= 2;
            for l in 0..width {
                sums[r][l] = sums[r][l] + sums[r][l + width];
            }
        }
        result[r] = sums[r][0];
        for p in whole..k {
            // SAFETY: p < k.
            result[r] = unsafe { step::<T, FUSED>(*rows[r].add(p), *x.add(p), result[r]) };
        }
    }
    result
}
