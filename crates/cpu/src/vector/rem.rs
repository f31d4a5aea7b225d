//! Floor division and its remainder on floats, as PyTorch defines them.
//!
//! f32 goes through f64: the quotient of two f32 whose floor is below 2^28 is never rounded up to
//! an integer it does not reach (the gap is at least 2^-24 absolute, the rounding at most 2^-26),
//! and its product with the divisor is exact. Other lanes are computed singly with `fmod`.

/// Whether a lane needs the exact, slow way: a large quotient, an infinite divisor, a NaN.
#[inline(always)]
pub(super) fn is_hard(a: f32, b: f32) -> bool {
    const MAX_QUOTIENT: f64 = 268_435_456.0;
    let (a, b) = (f64::from(a).abs(), f64::from(b).abs());
    // Written so that a NaN or a zero divisor fails it.
    !((a < MAX_QUOTIENT * b) & (b < f64::INFINITY))
}

/// a - b floor(a / b), for lanes that are not hard.
#[inline(always)]
pub(super) fn floor_mod(a: f32, b: f32) -> f32 {
    let (a, b) = (f64::from(a), f64::from(b));
    let r = (a - (a / b).floor() * b) as f32;
    // A zero remainder has the sign of the dividend, as from `fmod`.
    if r == 0.0 { r.copysign(a as f32) } else { r }
}

/// floor(a / b), for lanes that are not hard.
#[inline(always)]
pub(super) fn floor_div(a: f32, b: f32) -> f32 {
    (f64::from(a) / f64::from(b)).floor() as f32
}

/// The exact definitions for one lane, in either precision.
macro_rules! exact {
    ($T:ident) => {
        pub(in crate::vector) mod $T {
            pub(in crate::vector) fn floor_mod(a: $T, b: $T) -> $T {
                let r = a % b;
                if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
            }

            pub(in crate::vector) fn floor_div(a: $T, b: $T) -> $T {
                if b == 0.0 {
                    return a / b;
                }
                let r = a % b;
                let mut q = (a - r) / b;
                if r != 0.0 && (r < 0.0) != (b < 0.0) {
                    q -= 1.0;
                }
                if q == 0.0 {
                    return (0.0 as $T).copysign(a / b);
                }
                // (a - r) / b is an integer but for rounding, so the nearest one is meant.
                let floor = q.floor();
                if q - floor > 0.5 { floor + 1.0 } else { floor }
            }
        }
    };
}

pub(super) mod exact {
    exact!(f32);
    exact!(f64);
}
