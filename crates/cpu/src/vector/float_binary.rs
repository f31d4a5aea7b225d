//! Binary operations on floats that are more than a lane's arithmetic: powers and floor division.

use super::Operand::{self, *};
use super::binary::each2;
use super::isa::leveled;
use super::pow::{pow, pow_half};
use super::rem;
use volta_ir::op::BinaryOp;

leveled! {
    fn f32_pow(a: Operand<'_, f32>, b: Operand<'_, f32>, out: &mut [f32]) {
        each2!(a, b, out, |x, y| pow(x, y));
    }

    fn f32_floor(op: BinaryOp, a: Operand<'_, f32>, b: Operand<'_, f32>, out: &mut [f32]) -> bool {
        if op == BinaryOp::Mod {
            each2!(a, b, out, |x, y| rem::floor_mod(x, y));
        } else {
            each2!(a, b, out, |x, y| rem::floor_div(x, y));
        }
        let mut any = false;
        match (a, b) {
            (Block(a), Block(b)) => a.iter().zip(b).for_each(|(&x, &y)| any |= rem::is_hard(x, y)),
            (Block(a), Scalar(y)) => a.iter().for_each(|&x| any |= rem::is_hard(x, y)),
            (Scalar(x), Block(b)) => b.iter().for_each(|&y| any |= rem::is_hard(x, y)),
            (Scalar(x), Scalar(y)) => any = rem::is_hard(x, y),
        }
        any
    }
}

/// The exponents worth a loop of their own, when one exponent serves all lanes.
macro_rules! scalar_exponents {
    ($name:ident, $T:ident) => {
        leveled! {
            fn $name(x: &[$T], y: $T, out: &mut [$T]) -> bool {
                macro_rules! each {
                    (|$v:ident| $e:expr) => {
                        for (o, &$v) in out.iter_mut().zip(x) {
                            *o = $e;
                        }
                    };
                }
                if y == 2.0 {
                    each!(|v| v * v);
                } else if y == 3.0 {
                    each!(|v| v * v * v);
                } else if y == 0.5 {
                    each!(|v| pow_half!(v));
                } else if y == -0.5 {
                    each!(|v| 1.0 / pow_half!(v));
                } else if y == -1.0 {
                    each!(|v| 1.0 / v);
                } else if y == 1.0 {
                    out.copy_from_slice(x);
                } else if y == 0.0 {
                    out.fill(1.0);
                } else {
                    return false;
                }
                true
            }
        }
    };
}
scalar_exponents!(f32_scalar_pow, f32);
scalar_exponents!(f64_scalar_pow, f64);

/// f32: powers and floor division have vector code of their own.
pub(super) fn f32_block(op: BinaryOp, a: Operand<'_, f32>, b: Operand<'_, f32>, out: &mut [f32]) -> bool {
    match op {
        BinaryOp::Pow => {
            let done = matches!((a, b), (Block(x), Scalar(y)) if f32_scalar_pow(x, y, out));
            if !done {
                f32_pow(a, b, out);
            }
        }
        BinaryOp::Mod | BinaryOp::FloorDiv => {
            if f32_floor(op, a, b, out) {
                patch_hard(op, a, b, out);
            }
        }
        _ => return false,
    }
    true
}

/// Recomputes, one by one, the lanes the vector code of floor division is not good for.
#[cold]
fn patch_hard(op: BinaryOp, a: Operand<'_, f32>, b: Operand<'_, f32>, out: &mut [f32]) {
    let lane = |x: Operand<'_, f32>, i: usize| match x {
        Block(x) => x[i],
        Scalar(x) => x,
    };
    let f = if op == BinaryOp::Mod { rem::exact::f32::floor_mod } else { rem::exact::f32::floor_div };
    for (i, o) in out.iter_mut().enumerate() {
        let (x, y) = (lane(a, i), lane(b, i));
        if rem::is_hard(x, y) {
            *o = f(x, y);
        }
    }
}

/// f64: powers by a common scalar exponent.
pub(super) fn f64_block(op: BinaryOp, a: Operand<'_, f64>, b: Operand<'_, f64>, out: &mut [f64]) -> bool {
    matches!((op, a, b), (BinaryOp::Pow, Block(x), Scalar(y)) if f64_scalar_pow(x, y, out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::accuracy_tests::ulps;
    use crate::vector::binary::binary;
    use crate::vector::binary::tests::{bits_or_nan, check, floats};

    #[test]
    fn float_division_rounds_down() {
        let v = floats();
        // The double rounding of the quotient may differ from fmod's in the last place.
        let near = |a: f32, b: f32| bits_or_nan(a, b) || (a - b).abs() <= b.abs() * 1.2e-7;
        check(BinaryOp::Mod, &v, rem::exact::f32::floor_mod, near);
        check(BinaryOp::FloorDiv, &v, rem::exact::f32::floor_div, near);
        let v: Vec<f64> = v.iter().map(|&x| f64::from(x)).collect();
        let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        check(
            BinaryOp::Mod,
            &v,
            |a, b| {
                if b == 0.0 { f64::NAN } else { rem::exact::f64::floor_mod(a, b) }
            },
            same,
        );
        check(BinaryOp::FloorDiv, &v, rem::exact::f64::floor_div, same);
    }

    #[test]
    fn powers_follow_the_standard_library() {
        let close = |a: f32, b: f32| bits_or_nan(a, b) || ulps(a, f64::from(b)) <= 1.0;
        check(BinaryOp::Pow, &floats(), |x: f32, y| f64::from(x).powf(f64::from(y)) as f32, close);
        let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a / b - 1.0).abs() < 1e-15;
        let v: Vec<f64> = floats().iter().map(|&x| f64::from(x)).collect();
        check(BinaryOp::Pow, &v, f64::powf, same);
        let (x, y): (Vec<f32>, Vec<f32>) = (0..40_000)
            .map(|i| ((i as f32 * 0.01).exp2().fract() * 50.0, (i as f32 * 0.37).sin() * 30.0))
            .unzip();
        let mut out = vec![0.0; x.len()];
        binary(BinaryOp::Pow, Block(&x), Block(&y), &mut out);
        for i in 0..x.len() {
            let error = ulps(out[i], f64::from(x[i]).powf(f64::from(y[i])));
            assert!(error < 0.51, "{}^{}: {error}", x[i], y[i]);
        }
    }
}
