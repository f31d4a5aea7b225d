//! Unary operations over a block.

use super::element::LaneElement;
use super::isa::leveled;
use super::{erf, exp, log, trig};
use volta_ir::op::UnaryOp;

/// out = op(x). Which operations a class has: all but `Not` on floats; `Neg`, `Abs`, `Sign`,
/// `Relu` on integers and also `Not` (bitwise on i32, i64 and u32, logical on u8).
#[inline]
pub(crate) fn unary<T: LaneElement>(op: UnaryOp, x: &[T], out: &mut [T]) {
    assert_eq!(x.len(), out.len(), "block lengths differ");
    T::unary_block(op, x, out);
}

/// `for` each lane, as an expression of the lane; expands in place, so nothing is left to inline.
macro_rules! each {
    ($xs:expr, $out:expr, |$x:ident| $e:expr) => {
        for (o, &$x) in $out.iter_mut().zip($xs) {
            *o = $e;
        }
    };
}

/// The operations both float classes compute with the same few instructions; others go on to `$rest`.
macro_rules! float_ops {
    ($T:ident, $op:expr, $xs:expr, $out:expr, { $($rest:tt)* }) => {
        match $op {
            UnaryOp::Neg => each!($xs, $out, |x| -x),
            UnaryOp::Recip => each!($xs, $out, |x| 1.0 / x),
            UnaryOp::Sqrt => each!($xs, $out, |x| x.sqrt()),
            UnaryOp::Rsqrt => each!($xs, $out, |x| 1.0 / x.sqrt()),
            UnaryOp::Relu => each!($xs, $out, |x| if x <= 0.0 { 0.0 } else { x }),
            UnaryOp::Abs => each!($xs, $out, |x| x.abs()),
            // NaN is neither above zero nor below.
            UnaryOp::Sign => each!($xs, $out, |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { 0.0 }),
            UnaryOp::Floor => each!($xs, $out, |x| x.floor()),
            UnaryOp::Ceil => each!($xs, $out, |x| x.ceil()),
            UnaryOp::Round => each!($xs, $out, |x| x.round_ties_even()),
            UnaryOp::Trunc => each!($xs, $out, |x| x.trunc()),
            $($rest)*
        }
    };
}

/// Recomputes, one by one, the lanes the vector code is not good for; there are hardly ever any.
#[inline(always)]
fn patch_far(x: &[f32], out: &mut [f32], f: fn(f32) -> f32) {
    let mut any = false;
    for &x in x {
        any |= trig::is_far(x);
    }
    if any {
        for (o, &x) in out.iter_mut().zip(x) {
            if trig::is_far(x) {
                *o = f(x);
            }
        }
    }
}

leveled! {
    pub(super) fn f32_block(op: UnaryOp, x: &[f32], out: &mut [f32]) {
        float_ops!(f32, op, x, out, {
            UnaryOp::Exp => each!(x, out, |x| exp::exp::<FUSED>(x)),
            UnaryOp::Expm1 => each!(x, out, |x| exp::expm1(x)),
            UnaryOp::Exp2 => each!(x, out, |x| exp::exp2(x)),
            UnaryOp::Tanh => each!(x, out, |x| exp::tanh(x)),
            UnaryOp::Sigmoid => each!(x, out, |x| exp::sigmoid::<FUSED>(x)),
            UnaryOp::Log => each!(x, out, |x| log::log(x)),
            UnaryOp::Log1p => each!(x, out, |x| log::log1p(x)),
            UnaryOp::Log2 => each!(x, out, |x| log::log2(x)),
            UnaryOp::Erf => each!(x, out, |x| erf::erf(x)),
            UnaryOp::Erfc => each!(x, out, |x| erf::erfc(x)),
            UnaryOp::Sin => {
                each!(x, out, |x| trig::sin(x));
                patch_far(x, out, f32::sin);
            }
            UnaryOp::Cos => {
                each!(x, out, |x| trig::cos(x));
                patch_far(x, out, f32::cos);
            }
            UnaryOp::Not => unreachable!("logical operation on floats"),
        });
    }

    fn f64_simple(op: UnaryOp, x: &[f64], out: &mut [f64]) {
        float_ops!(f64, op, x, out, { _ => unreachable!("{op:?} on f64") });
    }

    /// i32, i64 and u32.
    pub(super) fn int_block[T: LaneElement](op: UnaryOp, x: &[T], out: &mut [T]) {
        match op {
            UnaryOp::Neg => each!(x, out, |x| T::ZERO.sub(x)),
            UnaryOp::Abs => each!(x, out, |x| if x < T::ZERO { T::ZERO.sub(x) } else { x }),
            UnaryOp::Sign => each!(x, out, |x| if x > T::ZERO {
                T::ONE
            } else if x < T::ZERO {
                T::ZERO.sub(T::ONE)
            } else {
                T::ZERO
            }),
            UnaryOp::Relu => each!(x, out, |x| x.maximum(T::ZERO)),
            // -1 - x flips every bit.
            UnaryOp::Not => each!(x, out, |x| T::ZERO.sub(T::ONE).sub(x)),
            _ => unreachable!("{op:?} on integers"),
        }
    }

    fn u8_not(x: &[u8], out: &mut [u8]) {
        each!(x, out, |x| u8::from(x == 0));
    }
}

/// f64: the standard library's functions lane by lane, the rest as vectors.
pub(super) fn f64_block(op: UnaryOp, x: &[f64], out: &mut [f64]) {
    let f: fn(f64) -> f64 = match op {
        UnaryOp::Exp => f64::exp,
        UnaryOp::Expm1 => f64::exp_m1,
        UnaryOp::Exp2 => f64::exp2,
        UnaryOp::Log => f64::ln,
        UnaryOp::Log1p => f64::ln_1p,
        UnaryOp::Log2 => f64::log2,
        UnaryOp::Sin => f64::sin,
        UnaryOp::Cos => f64::cos,
        UnaryOp::Tanh => f64::tanh,
        UnaryOp::Sigmoid => |x| {
            let e = (-x.abs()).exp();
            (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
        },
        UnaryOp::Erf => erf::erf64,
        UnaryOp::Erfc => erf::erfc64,
        UnaryOp::Not => unreachable!("logical operation on floats"),
        _ => return f64_simple(op, x, out),
    };
    each!(x, out, |x| f(x));
}

/// u8, where `Not` is logical.
pub(super) fn u8_block(op: UnaryOp, x: &[u8], out: &mut [u8]) {
    if op == UnaryOp::Not {
        u8_not(x, out);
    } else {
        int_block(op, x, out);
    }
}
