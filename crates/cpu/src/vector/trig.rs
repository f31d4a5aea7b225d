//! f32 sine and cosine on one lane, written so that a loop over them vectorises.
//!
//! The argument is reduced by multiples of pi/2 in f64: pi/2 is held as 33 bits and a remainder,
//! so for |x| <= 2^20 the first product is exact and the reduced argument good to 2^-66 absolute,
//! far below the distance of any such f32 from a multiple of pi/2.

use super::exp::poly;

const PIO2_HI: f64 = 1.570_796_326_734_125_6;
const PIO2_LO: f64 = 6.077_100_506_506_192e-11;
/// 1.5 * 2^52: adding it rounds to an integer held in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// Largest |x| the reduction is good for.
const LIMIT: f32 = 1_048_576.0;

/// Whether a lane is beyond the reduction and must be computed by the standard library.
#[inline(always)]
pub(super) fn is_far(x: f32) -> bool {
    let a = x.abs();
    a > LIMIT && a < f32::INFINITY
}

/// sin(x + turns * pi/2).
#[inline(always)]
fn sin_turned(x: f32, turns: u32) -> f32 {
    let d = f64::from(x);
    let s = d * std::f64::consts::FRAC_2_PI + ROUND;
    let n = s - ROUND;
    let quadrant = (s.to_bits() as u32).wrapping_add(turns);
    let r = ((d - n * PIO2_HI) - n * PIO2_LO) as f32;
    let z = r * r;
    // Fits on |r| <= pi/4: sine to 2^-28, cosine to 2^-33.
    let sine = r + r * z * poly!(z; -0.166_666_55, 0.008_332_178, -0.000_195_172_9);
    let cosine = 1.0 - (0.5 * z - z * z * poly!(z; 0.041_666_646, -0.001_388_736_8, 2.443_846e-5));
    let y = if quadrant & 1 == 0 { sine } else { cosine };
    f32::from_bits(y.to_bits() ^ ((quadrant & 2) << 30))
}

/// Sine, for lanes that are not far.
#[inline(always)]
pub(super) fn sin(x: f32) -> f32 {
    let y = sin_turned(x, 0);
    if x == 0.0 { x } else { y }
}

/// Cosine, for lanes that are not far.
#[inline(always)]
pub(super) fn cos(x: f32) -> f32 {
    sin_turned(x, 1)
}
