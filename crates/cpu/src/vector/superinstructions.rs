//! Passes that do several operations at once, for what softmax and layer norm are made of. Every lane and every
//! sum has the bits that the operations give one after the other.

use super::exp::exp;
use super::isa::leveled;
use super::reduce::{Sum, row, tree};
use std::hint::select_unpredictable;

/// Lanes that are summed side by side, as `reduce` does for blocks of at least so many.
const W: usize = 64;

/// Asks for the `W` lanes at `from`, which may lie anywhere, to be brought near.
#[inline(always)]
fn fetch(from: *const f32) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..W / 16 {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: fetching ahead has no effect but on the caches, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(16 * line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

/// The sum of `n` lanes, in the order of `reduce`. `lanes(at, y)` computes the `W` lanes from `at`; lanes of the end
/// may be asked for twice.
#[inline(always)]
fn sum_of(n: usize, mut lanes: impl FnMut(usize, &mut [f32; W])) -> f32 {
    let mut sums = [0.0; W];
    let mut y = [0.0; W];
    let whole = n - n % W;
    for at in (0..whole).step_by(W) {
        lanes(at, &mut y);
        for i in 0..W {
            sums[i] += y[i];
        }
    }
    if whole < n {
        lanes(n - W, &mut y);
        let first = W - (n - whole);
        for i in 0..W {
            sums[i] += select_unpredictable(i >= first, y[i], 0.0);
        }
    }
    tree::<f32, Sum, W>(sums)
}

/// The sum of fewer than `W` lanes.
#[inline(always)]
fn short_sum(n: usize, lane: impl Fn(usize) -> f32) -> f32 {
    let mut y = [0.0; W];
    for (i, y) in y[..n].iter_mut().enumerate() {
        *y = lane(i);
    }
    row::<f32, Sum>(&y[..n])
}

/// The `W` lanes of a block from `at` on.
#[inline(always)]
fn at(x: &[f32], at: usize) -> &[f32; W] {
    x[at..at + W].first_chunk().expect("as many lanes as were asked for")
}

leveled! {
    /// out = e^(x - shift), and the sum of that. What lies `ahead`, lane for lane, will be read soon.
    pub(crate) fn exp_shifted(x: &[f32], shift: f32, ahead: *const f32, out: &mut [f32]) -> f32 {
        assert_eq!(x.len(), out.len(), "block lengths differ");
        if x.len() < W {
            for (o, &x) in out.iter_mut().zip(x) {
                *o = exp::<FUSED>(x - shift);
            }
            return row::<f32, Sum>(out);
        }
        sum_of(x.len(), |first, y| {
            fetch(ahead.wrapping_add(first));
            let x = at(x, first);
            for i in 0..W {
                y[i] = exp::<FUSED>(x[i] - shift);
            }
            out[first..first + W].copy_from_slice(y);
        })
    }

    /// out = (x - shift) scale. What lies `ahead`, lane for lane, will be read soon.
    pub(crate) fn shifted_scaled(x: &[f32], shift: f32, scale: f32, ahead: *const f32, out: &mut [f32]) {
        assert_eq!(x.len(), out.len(), "block lengths differ");
        for (k, (out, x)) in out.chunks_mut(W).zip(x.chunks(W)).enumerate() {
            fetch(ahead.wrapping_add(k * W));
            for (o, &x) in out.iter_mut().zip(x) {
                *o = (x - shift) * scale;
            }
        }
    }

    /// The sum of (x - shift)².
    pub(crate) fn sum_squares(x: &[f32], shift: f32) -> f32 {
        let square = |x: f32| (x - shift) * (x - shift);
        if x.len() < W {
            return short_sum(x.len(), |i| square(x[i]));
        }
        sum_of(x.len(), |first, y| {
            let x = at(x, first);
            for i in 0..W {
                y[i] = square(x[i]);
            }
        })
    }

    /// The sum of a b.
    pub(crate) fn sum_products(a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len(), "block lengths differ");
        if a.len() < W {
            return short_sum(a.len(), |i| a[i] * b[i]);
        }
        sum_of(a.len(), |first, y| {
            let (a, b) = (at(a, first), at(b, first));
            for i in 0..W {
                y[i] = a[i] * b[i];
            }
        })
    }

    /// x = x scale, in place.
    pub(crate) fn rescale(x: &mut [f32], scale: f32) {
        for x in x {
            *x *= scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::Operand::*;
    use crate::vector::isa::forced::at_each_level;
    use crate::vector::{binary, reduce, unary};
    use std::ptr::null;
    use volta_ir::op::{BinaryOp, ReduceOp, UnaryOp};

    /// Lengths around those at which the order of a sum changes.
    const LENGTHS: [usize; 14] = [0, 1, 7, 8, 9, 63, 64, 65, 100, 127, 128, 1000, 2047, 2048];

    fn values(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + 13) % 1009) as f32 * 0.01 - 5.0).collect()
    }

    /// Blocks of ordinary numbers, and with NaN and infinities in some places.
    fn blocks() -> Vec<Vec<f32>> {
        let mut blocks = Vec::new();
        for n in LENGTHS {
            let plain = values(n);
            for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-40, -200.0, 200.0] {
                for place in [0, n / 2, n.saturating_sub(1)] {
                    let mut x = plain.clone();
                    if let Some(lane) = x.get_mut(place) {
                        *lane = special;
                    }
                    blocks.push(x);
                }
            }
            blocks.push(plain);
        }
        blocks
    }

    fn same(a: &[f32], b: &[f32]) -> bool {
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
    }

    #[test]
    fn as_one_operation_after_the_other() {
        for x in blocks() {
            for shift in [0.0, 0.3, -7.5, f32::INFINITY, f32::NAN] {
                at_each_level(|| {
                    let n = x.len();
                    let op = |op, a: &[f32], b: crate::vector::Operand<'_, f32>| {
                        let mut out = vec![0.0; n];
                        binary(op, Block(a), b, &mut out);
                        out
                    };
                    let d = op(BinaryOp::Sub, &x, Scalar(shift));
                    let (mut e, mut out) = (vec![0.0; n], vec![0.0; n]);
                    unary(UnaryOp::Exp, &d, &mut e);
                    let sum = exp_shifted(&x, shift, null(), &mut out);
                    assert!(same(&out, &e), "{n} lanes less {shift}");
                    assert!(same(&[sum], &[reduce(ReduceOp::Sum, &e)]), "{n} lanes less {shift}");

                    let squares = op(BinaryOp::Mul, &d, Block(&d));
                    let sum = reduce(ReduceOp::Sum, &squares);
                    assert!(same(&[sum_squares(&x, shift)], &[sum]), "{n} lanes less {shift}");

                    let products = op(BinaryOp::Mul, &d, Block(&x));
                    let sum = reduce(ReduceOp::Sum, &products);
                    assert!(same(&[sum_products(&d, &x)], &[sum]), "{n} lanes less {shift}");

                    let scaled = op(BinaryOp::Mul, &d, Scalar(0.7));
                    shifted_scaled(&x, shift, 0.7, null(), &mut out);
                    assert!(same(&out, &scaled), "{n} lanes less {shift}");

                    let mut out = d.clone();
                    rescale(&mut out, 0.7);
                    assert!(same(&out, &scaled), "{n} lanes less {shift}");
                });
            }
        }
    }
}
