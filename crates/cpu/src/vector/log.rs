//! f32 logarithms on one lane, written so that a loop over them vectorises.
//!
//! x = (1 + f) 2^e with 1 + f in [sqrt(1/2), sqrt 2), then log(1 + f) = f - f^2/2 + f^3 P(f) with
//! P a minimax fit (Remez exchange) to 2^-27.4 of the result.

use super::exp::{LN2_HI, LN2_LO, poly};

const SQRT_HALF_BITS: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();

/// Mantissa and exponent of a positive normal: the mantissa in [sqrt(1/2), sqrt 2).
#[inline(always)]
fn split(x: f32) -> (f32, i32) {
    let b = x.to_bits().wrapping_sub(SQRT_HALF_BITS);
    let m = f32::from_bits((b & 0x007f_ffff).wrapping_add(SQRT_HALF_BITS));
    (m, (b as i32) >> 23)
}

/// The same of any positive number: subnormals are first scaled into the normal range.
#[inline(always)]
fn split_any(x: f32) -> (f32, f32) {
    let tiny = x < f32::MIN_POSITIVE;
    let (m, e) = split(if tiny { x * 8_388_608.0 } else { x });
    (m, e as f32 - if tiny { 23.0 } else { 0.0 })
}

/// log(1 + f) - f.
#[inline(always)]
fn tail(f: f32) -> f32 {
    let p = poly!(f; 0.333_333_3, -0.250_008_2, 0.200_012_28, -0.166_233_58,
        0.142_017_44, -0.131_601_56, 0.127_616_45, -0.076_346_33);
    let ff = f * f;
    f * ff * p - 0.5 * ff
}

/// The results at the ends of the domain: log 0 = -inf, log inf = inf, NaN below zero.
#[inline(always)]
fn at_ends(x: f32, y: f32) -> f32 {
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

/// Natural logarithm.
#[inline(always)]
pub(super) fn log(x: f32) -> f32 {
    let (m, e) = split_any(x);
    let f = m - 1.0;
    at_ends(x, (f + (tail(f) + e * LN2_LO)) + e * LN2_HI)
}

/// Logarithm to base two; log2(e) is taken as 1 + `REST` so that the large part, f, stays exact.
#[inline(always)]
pub(super) fn log2(x: f32) -> f32 {
    const REST: f32 = 0.442_695_04;
    let (m, e) = split_any(x);
    let f = m - 1.0;
    let t = tail(f);
    at_ends(x, (((t * REST + f * REST) + t) + f) + e)
}

/// log(1 + x): what rounding 1 + x lost is added back to the reduced argument. Where 1 + x needs no
/// reduction that argument is x itself.
#[inline(always)]
pub(super) fn log1p(x: f32) -> f32 {
    let u = 1.0 + x;
    let lost = if x.abs() < 1.0 { x - (u - 1.0) } else { 1.0 - (u - x) };
    let (m, i) = split(u);
    // 2^-e; beyond e = 126 what was lost is far below the last bit.
    let shift = if i > 126 { 126 } else { i };
    let down = f32::from_bits((127i32.wrapping_sub(shift) << 23) as u32);
    let f = if i == 0 { x } else { (m - 1.0) + lost * down };
    let e = i as f32;
    let y = (f + (tail(f) + e * LN2_LO)) + e * LN2_HI;
    let y = at_ends(u, y);
    if x == 0.0 { x } else { y }
}
