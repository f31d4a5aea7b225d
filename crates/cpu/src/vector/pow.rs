//! Powers: f32 through f64 (vectorises, correctly rounded but for near-ties), f64, and integers.

use super::exp::poly;

/// 1.5 * 2^52: adding it rounds to an integer held in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// log2 of a positive f32 (as f64, hence normal), to 2^-45: e + s L(s^2), s = (m - 1) / (m + 1).
#[inline(always)]
fn log2_wide(a: f64) -> f64 {
    const SQRT_HALF: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    /// 2^52 as an integer-to-float bias: ORing a small integer into its bits converts it.
    const BIAS: f64 = 4_503_599_627_370_496.0;
    let b = a.to_bits().wrapping_sub(SQRT_HALF);
    let m = f64::from_bits((b & ((1 << 52) - 1)).wrapping_add(SQRT_HALF));
    // The exponent shifted by 1024 is not negative, so plain unsigned bits convert it.
    let biased = b.wrapping_add(1024 << 52) >> 52;
    let e = f64::from_bits(biased | BIAS.to_bits()) - (BIAS + 1024.0);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let l = poly!(z; 2.885_390_081_777_85, 0.961_796_694_113_400_4, 0.577_077_942_346_843,
        0.412_209_254_322_464_85, 0.319_905_612_006_834_6, 0.282_901_444_932_168_85);
    e + s * l
}

/// 2^t for |t| <= 1000, to 2^-40.
#[inline(always)]
fn exp2_wide(t: f64) -> f64 {
    let s = t + ROUND;
    let r = t - (s - ROUND);
    let q = poly!(r; 0.693_147_180_548_212_9, 0.240_226_506_981_107_53, 0.055_504_109_352_650_79,
        0.009_618_128_616_074_088, 0.001_333_345_486_146_445_7, 0.000_154_038_255_035_191_8,
        1.530_915_597_228_296_2e-5, 1.317_892_411_497_929_6e-6);
    // The low bits of the rounded sum are the exponent; bias and all, they go to their place.
    let scale = f64::from_bits(s.to_bits().wrapping_add(1023) << 52);
    (1.0 + r * q) * scale
}

/// x^y in f32, with C's rules for zeros, infinities, NaN and negative bases.
#[inline(always)]
pub(super) fn pow(x: f32, y: f32) -> f32 {
    let a = x.abs();
    let l = log2_wide(f64::from(a));
    let l = if a == 0.0 { f64::NEG_INFINITY } else { l };
    let l = if a == f32::INFINITY { f64::INFINITY } else { l };
    let t = f64::from(y) * l;
    let t = if t > 1000.0 { 1000.0 } else { t };
    let t = if t < -1000.0 { -1000.0 } else { t };
    let p = exp2_wide(t) as f32;
    // Adding and taking off 2^23 rounds |y| < 2^23; anything larger is an integer, and is odd
    // only below 2^24, where the same trick on half of it still has the bit.
    const WHOLE: f32 = 8_388_608.0;
    let b = y.abs();
    let rounded = if b < WHOLE { (b + WHOLE) - WHOLE } else { b };
    let half = 0.5 * b;
    let half_rounded = if half < WHOLE { (half + WHOLE) - WHOLE } else { half };
    let integer = rounded == b;
    let odd = integer & (half_rounded != half);
    let negative = x.is_sign_negative();
    let p = if negative & odd { -p } else { p };
    let p = if (x < 0.0) & (x > f32::NEG_INFINITY) & !integer { f32::NAN } else { p };
    // 1^y and (-1)^(+-inf) are one, whatever y; so is x^0, whatever x.
    let one = (y == 0.0) | (x == 1.0) | ((x == -1.0) & (b == f32::INFINITY));
    let p = if x.is_nan() | y.is_nan() { f32::NAN } else { p };
    if one { 1.0 } else { p }
}

/// Square root by the rules of a power: (-0)^0.5 = 0 and (-inf)^0.5 = inf.
macro_rules! pow_half {
    ($x:expr) => {{
        let r = ($x + 0.0).sqrt();
        if $x == -1.0 / 0.0 { 1.0 / 0.0 } else { r }
    }};
}
pub(super) use pow_half;

/// base^exponent by squaring, wrapping; a negative exponent truncates the reciprocal to zero
/// unless the base is 1 or -1.
macro_rules! int_pow {
    ($T:ty, $base:expr, $exponent:expr) => {{
        let (mut base, mut e): ($T, $T) = ($base, $exponent);
        let mut result: $T = 1;
        #[allow(unused_comparisons, clippy::absurd_extreme_comparisons)]
        let negative = e < 0;
        if negative {
            result = match base {
                1 => 1,
                _ if base == (0 as $T).wrapping_sub(1) => {
                    if e & 1 == 0 {
                        1
                    } else {
                        base
                    }
                }
                _ => 0,
            };
            e = 0;
        }
        while e > 0 {
            if e & 1 == 1 {
                result = result.wrapping_mul(base);
            }
            base = base.wrapping_mul(base);
            e >>= 1;
        }
        result
    }};
}
pub(super) use int_pow;
