//! Operations of three operands over a block: selection and multiply-add.

use super::Operand::{self, *};
use super::binary::binary;
use super::element::LaneElement;
use super::isa::leveled;
use std::hint::select_unpredictable;
use volta_ir::op::BinaryOp;

/// out = a where the mask is not zero, b elsewhere.
pub(crate) fn select<T: LaneElement>(
    mask: Operand<'_, u8>,
    a: Operand<'_, T>,
    b: Operand<'_, T>,
    out: &mut [T],
) {
    mask.check(out.len());
    a.check(out.len());
    b.check(out.len());
    match mask {
        Block(mask) => select_lanes(mask, a, b, out),
        Scalar(mask) => match if mask != 0 { a } else { b } {
            Block(x) => out.copy_from_slice(x),
            Scalar(x) => out.fill(x),
        },
    }
}

/// out = a * b + c with the product rounded before the sum, as `Mul` followed by `Add` gives.
pub(crate) fn mul_add<T: LaneElement>(
    a: Operand<'_, T>,
    b: Operand<'_, T>,
    c: Operand<'_, T>,
    out: &mut [T],
) {
    a.check(out.len());
    b.check(out.len());
    c.check(out.len());
    match (a, b) {
        (Block(a), b) => mul_add_lanes(a, b, c, out),
        (Scalar(_), Block(b)) => mul_add_lanes(b, a, c, out),
        (Scalar(x), Scalar(y)) => binary(BinaryOp::Add, Scalar(x.mul(y)), c, out),
    }
}

/// One loop per shape of the last two operands over an expression of three lanes.
macro_rules! each3 {
    ($a:expr, $b:expr, $c:expr, $out:expr, |$x:ident, $y:ident, $z:ident| $e:expr) => {
        match ($b, $c) {
            (Block(b), Block(c)) => {
                for (((o, &$x), &$y), &$z) in $out.iter_mut().zip($a).zip(b).zip(c) {
                    *o = $e;
                }
            }
            (Block(b), Scalar($z)) => {
                for ((o, &$x), &$y) in $out.iter_mut().zip($a).zip(b) {
                    *o = $e;
                }
            }
            (Scalar($y), Block(c)) => {
                for ((o, &$x), &$z) in $out.iter_mut().zip($a).zip(c) {
                    *o = $e;
                }
            }
            (Scalar($y), Scalar($z)) => {
                for (o, &$x) in $out.iter_mut().zip($a) {
                    *o = $e;
                }
            }
        }
    };
}

leveled! {
    fn select_lanes[T: LaneElement](mask: &[u8], a: Operand<'_, T>, b: Operand<'_, T>, out: &mut [T]) {
        // A plain `if` would let LLVM load under a branch, and so not vectorise.
        each3!(mask, a, b, out, |m, x, y| select_unpredictable(m != 0, x, y));
    }

    fn mul_add_lanes[T: LaneElement](a: &[T], b: Operand<'_, T>, c: Operand<'_, T>, out: &mut [T]) {
        each3!(a, b, c, out, |x, y, z| x.mul(y).add(z));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::isa::forced::assert_levels_agree;

    fn value(x: Operand<'_, f32>, i: usize) -> f32 {
        match x {
            Block(x) => x[i],
            Scalar(x) => x,
        }
    }

    #[test]
    fn all_shapes() {
        let n = 101;
        let x: Vec<f32> = (0..n).map(|i| (i as f32).sin() * 1.3e3).collect();
        let y: Vec<f32> = (0..n).map(|i| (i as f32).cos() / 7.0).collect();
        let mask: Vec<u8> = (0..n).map(|i| (i * i % 3) as u8).collect();
        let shapes = |x| [Block(x), Scalar(0.3)];
        let mut out = vec![0.0; n];
        for a in shapes(&x) {
            for b in shapes(&y) {
                for m in [Block(&mask[..]), Scalar(0), Scalar(2)] {
                    select(m, a, b, &mut out);
                    for (i, &o) in out.iter().enumerate() {
                        let picked = matches!(m, Block(m) if m[i] != 0) || matches!(m, Scalar(2));
                        assert_eq!(o, value(if picked { a } else { b }, i));
                    }
                }
                for c in shapes(&y) {
                    mul_add(a, b, c, &mut out);
                    for (i, &o) in out.iter().enumerate() {
                        // Rounded twice: not what a fused multiply-add gives.
                        assert_eq!(o.to_bits(), (value(a, i) * value(b, i) + value(c, i)).to_bits());
                    }
                    assert_levels_agree(|| {
                        let mut out = vec![0.0; n];
                        mul_add(a, b, c, &mut out);
                        out
                    });
                }
            }
        }
    }
}
