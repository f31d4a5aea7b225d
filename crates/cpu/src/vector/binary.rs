//! Binary operations and comparisons over a block.

use super::Operand::{self, *};
use super::element::LaneElement;
use super::isa::leveled;
use volta_ir::op::BinaryOp;

/// out = a op b. `And`, `Or` and `Xor` are bitwise, so logical on booleans; floats have none.
#[inline]
pub(crate) fn binary<T: LaneElement>(op: BinaryOp, a: Operand<'_, T>, b: Operand<'_, T>, out: &mut [T]) {
    a.check(out.len());
    b.check(out.len());
    if !T::binary_block(op, a, b, out) {
        lanes(op, a, b, out);
    }
}

/// out = 1 where the comparison holds, 0 elsewhere. With a NaN only `Ne` holds.
#[inline]
pub(crate) fn compare<T: LaneElement>(op: BinaryOp, a: Operand<'_, T>, b: Operand<'_, T>, out: &mut [u8]) {
    a.check(out.len());
    b.check(out.len());
    compare_lanes(op, a, b, out);
}

/// One loop per shape of the operands over an expression of two lanes.
macro_rules! each2 {
    ($a:expr, $b:expr, $out:expr, |$x:ident, $y:ident| $e:expr) => {
        match ($a, $b) {
            (Block(a), Block(b)) => {
                for ((o, &$x), &$y) in $out.iter_mut().zip(a).zip(b) {
                    *o = $e;
                }
            }
            (Block(a), Scalar($y)) => {
                for (o, &$x) in $out.iter_mut().zip(a) {
                    *o = $e;
                }
            }
            (Scalar($x), Block(b)) => {
                for (o, &$y) in $out.iter_mut().zip(b) {
                    *o = $e;
                }
            }
            (Scalar($x), Scalar($y)) => $out.fill($e),
        }
    };
}

pub(super) use each2;

leveled! {
    fn lanes[T: LaneElement](op: BinaryOp, a: Operand<'_, T>, b: Operand<'_, T>, out: &mut [T]) {
        match op {
            BinaryOp::Add => each2!(a, b, out, |x, y| x.add(y)),
            BinaryOp::Sub => each2!(a, b, out, |x, y| x.sub(y)),
            BinaryOp::Mul => each2!(a, b, out, |x, y| x.mul(y)),
            BinaryOp::Div => each2!(a, b, out, |x, y| x.div(y)),
            BinaryOp::Max => each2!(a, b, out, |x, y| x.maximum(y)),
            BinaryOp::Min => each2!(a, b, out, |x, y| x.minimum(y)),
            BinaryOp::Mod => each2!(a, b, out, |x, y| x.floor_mod(y)),
            BinaryOp::FloorDiv => each2!(a, b, out, |x, y| x.floor_div(y)),
            BinaryOp::Pow => each2!(a, b, out, |x, y| x.power(y)),
            BinaryOp::And => each2!(a, b, out, |x, y| x.and(y)),
            BinaryOp::Or => each2!(a, b, out, |x, y| x.or(y)),
            BinaryOp::Xor => each2!(a, b, out, |x, y| x.xor(y)),
            _ => unreachable!("{op:?} is a comparison"),
        }
    }

    fn compare_lanes[T: LaneElement](op: BinaryOp, a: Operand<'_, T>, b: Operand<'_, T>, out: &mut [u8]) {
        match op {
            BinaryOp::Lt => each2!(a, b, out, |x, y| u8::from(x < y)),
            BinaryOp::Le => each2!(a, b, out, |x, y| u8::from(x <= y)),
            BinaryOp::Eq => each2!(a, b, out, |x, y| u8::from(x == y)),
            BinaryOp::Ne => each2!(a, b, out, |x, y| u8::from(x != y)),
            _ => unreachable!("{op:?} is no comparison"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::vector::isa::forced::assert_levels_agree;

    /// Every pair of the values in `v`, through all shapes of operands, against `f` on one lane.
    pub(in crate::vector) fn check<T: LaneElement>(
        op: BinaryOp,
        v: &[T],
        f: impl Fn(T, T) -> T,
        same: impl Fn(T, T) -> bool,
    ) {
        for &s in v {
            let n = v.len();
            let (mut bb, mut bs, mut sb) = (vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n]);
            binary(op, Block(v), Block(&vec![s; n]), &mut bb);
            binary(op, Block(v), Scalar(s), &mut bs);
            binary(op, Scalar(s), Block(v), &mut sb);
            let mut ss = vec![T::ZERO; 3];
            binary(op, Scalar(s), Scalar(s), &mut ss);
            assert!(same(ss[2], f(s, s)), "{op:?} {s:?} {s:?}: {:?}", ss[2]);
            for i in 0..n {
                let x = v[i];
                assert!(same(bb[i], f(x, s)), "{op:?} {x:?} {s:?}: {:?}, not {:?}", bb[i], f(x, s));
                assert!(same(bs[i], f(x, s)), "{op:?} {x:?} {s:?}: {:?}, not {:?}", bs[i], f(x, s));
                assert!(same(sb[i], f(s, x)), "{op:?} {s:?} {x:?}: {:?}, not {:?}", sb[i], f(s, x));
            }
        }
    }

    pub(in crate::vector) fn floats() -> Vec<f32> {
        const INF: f32 = f32::INFINITY;
        let mut v =
            vec![0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, 7.0, -7.25, 1e-40, -1e-40];
        v.extend([
            INF,
            -INF,
            f32::NAN,
            f32::MAX,
            f32::MIN,
            1e10,
            16_777_215.0,
            8_388_609.0,
            -33.0,
            0.1,
            1e-5,
            -1e20,
        ]);
        v
    }

    pub(in crate::vector) fn bits_or_nan(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    #[test]
    fn extremes_propagate_nan() {
        let max = |a: f32, b: f32| {
            if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) }
        };
        let min = |a: f32, b: f32| {
            if a.is_nan() || b.is_nan() { f32::NAN } else { a.min(b) }
        };
        let same = |a: f32, b: f32| a == b || (a.is_nan() && b.is_nan());
        check(BinaryOp::Max, &floats(), max, same);
        check(BinaryOp::Min, &floats(), min, same);
    }

    macro_rules! integers {
        ($name:ident, $T:ident, $wide:ident) => {
            #[test]
            fn $name() {
                let v: Vec<$T> = [0, 1, 2, 3, 7, 10, 100, 127]
                    .into_iter()
                    .flat_map(|x: $T| {
                        [x, x.wrapping_neg(), $T::MAX - x, $T::MIN.wrapping_add(x), x.wrapping_mul(x)]
                    })
                    .collect();
                let floor = |a: $T, b: $T| {
                    let (a, b) = (a as $wide, b as $wide);
                    let q = a / b - $wide::from(a % b != 0 && (a % b < 0) != (b < 0));
                    (q as $T, (a - q * b) as $T)
                };
                let eq = |a: $T, b: $T| a == b;
                check(BinaryOp::Div, &v, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) }, eq);
                check(BinaryOp::FloorDiv, &v, |a, b| if b == 0 { 0 } else { floor(a, b).0 }, eq);
                check(BinaryOp::Mod, &v, |a, b| if b == 0 { 0 } else { floor(a, b).1 }, eq);
                check(BinaryOp::Mul, &v, |a: $T, b| a.wrapping_mul(b), eq);
                check(BinaryOp::Xor, &v, |a, b| a ^ b, eq);
                let mut out = [0; 6];
                let (minus, e): ($T, $T) = ((0 as $T).wrapping_sub(1), 5);
                binary(BinaryOp::Pow, Block(&[0, 1, 2, 3, minus, 0]), Block(&[0, 9, e, 3, 3, 4]), &mut out);
                assert_eq!(out, [1, 1, 32, 27, minus, 0]);
                for op in [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mod, BinaryOp::Max, BinaryOp::Pow] {
                    assert_levels_agree(|| {
                        let mut out = vec![0; v.len()];
                        binary(op, Block(&v), Scalar(7), &mut out);
                        out
                    });
                }
            }
        };
    }
    integers!(integers_32, i32, i64);
    integers!(integers_64, i64, i128);
    integers!(bytes, u8, i32);

    #[test]
    fn negative_exponents_of_integers() {
        let mut out = [9i64; 5];
        binary(BinaryOp::Pow, Block(&[1, -1, -1, 2, 0]), Block(&[-3, -3, -4, -1, -1]), &mut out);
        assert_eq!(out, [1, -1, 1, 0, 0]);
    }

    type Holds = fn(&f32, &f32) -> bool;

    #[test]
    fn comparisons() {
        let v = floats();
        let mut out = vec![9; v.len()];
        for &s in &v {
            let table: [(BinaryOp, Holds); 4] = [
                (BinaryOp::Lt, f32::lt),
                (BinaryOp::Le, f32::le),
                (BinaryOp::Eq, f32::eq),
                (BinaryOp::Ne, f32::ne),
            ];
            for (op, f) in table {
                compare(op, Block(&v), Scalar(s), &mut out);
                assert!(v.iter().zip(&out).all(|(x, &o)| o == u8::from(f(x, &s))));
                compare(op, Scalar(s), Block(&v), &mut out);
                assert!(v.iter().zip(&out).all(|(x, &o)| o == u8::from(f(&s, x))));
            }
        }
    }
}
