//! The register classes and what one lane of each does.

use super::pow::int_pow;
use super::{Operand, float_binary, rem, unary};
use std::hint::select_unpredictable;
use volta_ir::op::{BinaryOp, UnaryOp};

/// One register class: f32, f64, i32, i64, u32 or u8 (which also holds booleans, as 0 and 1).
#[rustfmt::skip]
pub(crate) trait LaneElement: Copy + PartialOrd + Default + Send + Sync + std::fmt::Debug + 'static {
    const ZERO: Self;
    const ONE: Self;
    /// Identities of maximum and minimum.
    const LOWEST: Self;
    const HIGHEST: Self;
    /// NaN, or for integers nothing that is ever asked for.
    const NAN: Self;

    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Integers: towards zero; zero where the divisor is zero.
    fn div(self, other: Self) -> Self;
    /// Either operand being NaN makes the result NaN, here and in `minimum`.
    fn maximum(self, other: Self) -> Self;
    fn minimum(self, other: Self) -> Self;
    fn floor_mod(self, other: Self) -> Self;
    fn floor_div(self, other: Self) -> Self;
    fn power(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn is_nan(self) -> bool;

    /// A whole block of a unary operation.
    fn unary_block(op: UnaryOp, x: &[Self], out: &mut [Self]);

    /// A block of a binary operation done otherwise than lane by lane; false if there is none.
    #[inline]
    fn binary_block(_: BinaryOp, _: Operand<'_, Self>, _: Operand<'_, Self>, _: &mut [Self]) -> bool {
        false
    }
}

macro_rules! methods {
    ($($name:ident($a:ident $(, $b:ident)?) -> $R:ty = $e:expr;)*) => {$(
        #[inline(always)]
        fn $name($a $(, $b: Self)?) -> $R { $e }
    )*};
}

macro_rules! float_lane {
    ($T:ident, $unary:path, $binary:path) => {
        impl LaneElement for $T {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = $T::NEG_INFINITY;
            const HIGHEST: Self = $T::INFINITY;
            const NAN: Self = $T::NAN;

            methods! {
                add(self, b) -> Self = self + b;
                sub(self, b) -> Self = self - b;
                mul(self, b) -> Self = self * b;
                div(self, b) -> Self = self / b;
                // The inner choice is one instruction and takes `b` where either is NaN.
                maximum(self, b) -> Self = {
                    let m = if self > b { self } else { b };
                    select_unpredictable(self.is_nan(), self, m)
                };
                minimum(self, b) -> Self = {
                    let m = if self < b { self } else { b };
                    select_unpredictable(self.is_nan(), self, m)
                };
                floor_mod(self, b) -> Self = rem::exact::$T::floor_mod(self, b);
                floor_div(self, b) -> Self = rem::exact::$T::floor_div(self, b);
                power(self, b) -> Self = self.powf(b);
                and(self, _b) -> Self = unreachable!("bitwise operation on floats");
                or(self, _b) -> Self = unreachable!("bitwise operation on floats");
                xor(self, _b) -> Self = unreachable!("bitwise operation on floats");
                is_nan(self) -> bool = <$T>::is_nan(self);
            }

            fn unary_block(op: UnaryOp, x: &[Self], out: &mut [Self]) {
                $unary(op, x, out);
            }

            fn binary_block(
                op: BinaryOp,
                a: Operand<'_, Self>,
                b: Operand<'_, Self>,
                out: &mut [Self],
            ) -> bool {
                $binary(op, a, b, out)
            }
        }
    };
}

float_lane!(f32, unary::f32_block, float_binary::f32_block);
float_lane!(f64, unary::f64_block, float_binary::f64_block);

macro_rules! int_lane {
    ($T:ident, $unary:path, |$a:ident, $b:ident| $div:expr) => {
        impl LaneElement for $T {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = $T::MIN;
            const HIGHEST: Self = $T::MAX;
            const NAN: Self = 0;

            methods! {
                add(self, b) -> Self = self.wrapping_add(b);
                sub(self, b) -> Self = self.wrapping_sub(b);
                mul(self, b) -> Self = self.wrapping_mul(b);
                div(self, b) -> Self = {
                    let ($a, $b) = (self, b);
                    $div
                };
                maximum(self, b) -> Self = if self > b { self } else { b };
                minimum(self, b) -> Self = if self < b { self } else { b };
                floor_mod(self, b) -> Self = floor_mod_div(self, b).0;
                floor_div(self, b) -> Self = floor_mod_div(self, b).1;
                power(self, b) -> Self = int_pow!($T, self, b);
                and(self, b) -> Self = self & b;
                or(self, b) -> Self = self | b;
                xor(self, b) -> Self = self ^ b;
                is_nan(self) -> bool = false;
            }

            fn unary_block(op: UnaryOp, x: &[Self], out: &mut [Self]) {
                $unary(op, x, out);
            }
        }
    };
}

// No vector unit divides integers; floats wide enough to hold the class exactly do it instead.
int_lane!(i32, unary::int_block, |a, b| {
    let divisor = if (b == 0) | (b == -1) { 1 } else { b };
    // SAFETY: the quotient is no larger than `a`.
    let q: i32 = unsafe { (f64::from(a) / f64::from(divisor)).to_int_unchecked() };
    let q = if b == -1 { a.wrapping_neg() } else { q };
    if b == 0 { 0 } else { q }
});
int_lane!(i64, unary::int_block, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) });
int_lane!(u32, unary::int_block, |a, b| {
    let divisor = if b == 0 { 1 } else { b };
    // SAFETY: the quotient is no larger than `a`.
    let q: u32 = unsafe { (f64::from(a) / f64::from(divisor)).to_int_unchecked() };
    if b == 0 { 0 } else { q }
});
int_lane!(u8, unary::u8_block, |a, b| {
    let q = (f32::from(a) / f32::from(b)) as u8;
    if b == 0 { 0 } else { q }
});

/// Remainder and quotient of integers rounded down; both zero where the divisor is zero.
#[inline(always)]
fn floor_mod_div<T: LaneElement>(a: T, b: T) -> (T, T) {
    let q = a.div(b);
    let r = a.sub(q.mul(b));
    let below = (r != T::ZERO) & ((r < T::ZERO) != (b < T::ZERO)) & (b != T::ZERO);
    let r = if below { r.add(b) } else { r };
    let q = if below { q.sub(T::ONE) } else { q };
    (if b == T::ZERO { T::ZERO } else { r }, q)
}
