//! f32 exponentials on one lane, written so that a loop over them vectorises.
//!
//! Everything is branch-free (selects only) and wraps its integer arithmetic, so lanes with NaN or huge values compute garbage that a select then drops. The
//! polynomials are minimax fits (Remez exchange) to the functions named beside them.

/// Horner's rule, coefficients from the constant term up.
macro_rules! poly {
    ($x:expr; $c:expr) => { $c };
    ($x:expr; $c:expr, $($rest:expr),+) => { $c + $x * $crate::vector::exp::poly!($x; $($rest),+) };
}
pub(super) use poly;

/// 1.5 * 2^23: adding it rounds |t| < 2^22 to an integer (half to even) held in the low bits. A
/// whole number more leaves those bits biased, which saves adding an exponent's bias later.
const ROUND: f32 = 12_582_912.0;
/// `ROUND` with the bias of one exponent, for `pow2`, and of two, for `scale`.
const ROUND_ONE: f32 = ROUND + 127.0;
const ROUND_TWO: f32 = ROUND + 254.0;
/// ln 2 in two parts; the first has 10 significant bits, so that its product with an exponent of
/// at most 10 bits is exact (Cody and Waite).
pub(super) const LN2_HI: f32 = 0.693_359_4;
pub(super) const LN2_LO: f32 = -0.000_212_194_44;

/// 2^n from the bits of n + `ROUND_ONE`, for -127 < n < 128.
#[inline(always)]
fn pow2(biased: u32) -> f32 {
    f32::from_bits(biased << 23)
}

/// y * 2^n from the bits of n + `ROUND_TWO`, in two steps, so that a subnormal result is rounded
/// only once, by the second.
#[inline(always)]
fn scale(y: f32, biased: u32) -> f32 {
    let half = biased >> 1;
    y * pow2(half) * pow2(biased.wrapping_sub(half))
}

/// a b + c, rounded once where the level has the instruction.
#[inline(always)]
fn madd<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// x = n ln 2 + r with |r| <= ln 2 / 2 (and a little); gives r, what rounding r lost, and n + `round`.
#[inline(always)]
fn reduce(x: f32, round: f32) -> (f32, f32, f32) {
    let s = x * std::f32::consts::LOG2_E + round;
    let n = s - round;
    let high = x - n * LN2_HI;
    let low = n * LN2_LO;
    let r = high - low;
    (r, (high - r) - low, s)
}

/// (e^r - 1 - r) / r^2 to 2^-31.9 of e^r - 1.
#[inline(always)]
fn expm1_tail(r: f32) -> f32 {
    poly!(r; 0.5, 0.166_666_66, 0.041_666_36, 0.008_333_39, 0.001_394_089_3, 0.000_198_459_22)
}

/// e^x. Below -104 the result is zero; the select there keeps a block of -inf (a mask before a
/// softmax) off the slow path that CPUs take when a product underflows.
#[inline(always)]
pub(super) fn exp<const FUSED: bool>(x: f32) -> f32 {
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -104.0 { -104.0 } else { clamped };
    let n = madd::<FUSED>(clamped, std::f32::consts::LOG2_E, ROUND_TWO);
    let whole = n - ROUND_TWO;
    let r = madd::<FUSED>(whole, -LN2_LO, madd::<FUSED>(whole, -LN2_HI, clamped));
    // (e^r - 1 - r) / r^2 to 2^-28 of e^r.
    let q = madd::<FUSED>(r, 0.001_381_422_3, 0.008_368_899);
    let q = madd::<FUSED>(r, q, 0.041_668_404);
    let q = madd::<FUSED>(r, q, 0.166_665_2);
    let q = madd::<FUSED>(r, q, 0.499_999_94);
    let y = 1.0 + madd::<FUSED>(r * r, q, r);
    let y = if x < -104.0 { 0.0 } else { y };
    scale(y, n.to_bits())
}

/// e^x - 1 for -86 < x < 88, precise near zero: 2^n (e^r - 1) + (2^n - 1).
#[inline(always)]
fn expm1_core(x: f32) -> f32 {
    let (r, lost, n) = reduce(x, ROUND_ONE);
    let p = r + (r * r * expm1_tail(r) + lost);
    let s = pow2(n.to_bits());
    s * p + (s - 1.0)
}

/// e^x - 1.
#[inline(always)]
pub(super) fn expm1(x: f32) -> f32 {
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -20.0 { -20.0 } else { clamped };
    let (r, lost, n) = reduce(clamped, ROUND_TWO);
    let p = r + (r * r * expm1_tail(r) + lost);
    // 2^128 is no f32, so n is split as in `scale`: (2^h p + (2^h - 2^-k)) 2^k with h + k = n.
    let biased = n.to_bits();
    let half = biased >> 1;
    let (h, k) = (pow2(half), pow2(biased.wrapping_sub(half)));
    let down = pow2(254u32.wrapping_sub(biased.wrapping_sub(half)));
    let y = (h * p + (h - down)) * k;
    if x == 0.0 { x } else { y }
}

/// 2^r for |r| <= 1/2: 1 + r q(r), fit to 2^-28.9.
#[inline(always)]
fn exp2_part(r: f32) -> f32 {
    1.0 + r
        * poly!(r; std::f32::consts::LN_2, 0.240_226_48, 0.055_503_324, 0.009_618_438, 0.001_339_887_4, 0.000_153_533_4)
}

/// 2^x.
#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    let clamped = if x > 129.0 { 129.0 } else { x };
    let clamped = if clamped < -151.0 { -151.0 } else { clamped };
    let s = clamped + ROUND_TWO;
    let y = exp2_part(clamped - (s - ROUND_TWO));
    let y = if x < -151.0 { 0.0 } else { y };
    scale(y, s.to_bits())
}

/// 2^x for -126 <= x <= 127 or NaN.
#[inline(always)]
pub(super) fn exp2_normal(x: f32) -> f32 {
    let s = x + ROUND_ONE;
    exp2_part(x - (s - ROUND_ONE)) * pow2(s.to_bits())
}

/// tanh |x| = -t / (t + 2) with t = e^(-2|x|) - 1, which keeps its relative precision at zero.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let a = x.abs();
    // tanh 10 rounds to one.
    let a = if a > 10.0 { 10.0 } else { a };
    let t = expm1_core(-2.0 * a);
    (t / (t + 2.0)).copysign(x)
}

/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows and small results stay precise.
#[inline(always)]
pub(super) fn sigmoid<const FUSED: bool>(x: f32) -> f32 {
    let e = exp::<FUSED>(-x.abs());
    let numerator = if x < 0.0 { e } else { 1.0 };
    numerator / (1.0 + e)
}
