//! The error function and its complement on one lane, f32 (vectorises) and f64.
//!
//! f32: up to 0.92, x + x P(x^2) with P to 2^-26; beyond, 1 - 2^g(x) with g a fit to log2 erfc(x)
//! weighted by erfc, 2^-29 of the result. f64: up to 1, x P(x^2) to 2^-57; beyond, 1 - e^(-x^2) R(t)
//! with t = (x - 2) / (x + 2), to 2^-60.
//!
//! The complement is e^(-x^2) R(t) as well, with a fit of its own in f32, to 2^-29 of the result; the square is taken
//! in two parts, since e^ makes its error large. All are minimax fits (Remez exchange).

use super::exp::{exp, exp2_normal, poly};
use std::f64::consts::FRAC_2_SQRT_PI;

/// erf in f32.
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let p =
        poly!(z; 0.128_379_15, -0.376_124_98, 0.112_818_46, -0.026_767_72, 0.004_994_83, -0.000_599_940_5);
    let near = x + x * p;
    // erf 4 rounds to one.
    let b = if a > 4.0 { 4.0 } else { a };
    let g = poly!(b; -0.000_282_308_93, -1.626_892, -0.919_259_8, -0.149_941_5, 0.032_066_61,
        -0.004_390_417, 0.000_282_675_58);
    let far = (1.0 - exp2_normal(g)).copysign(x);
    if a < 0.92 { near } else { far }
}

/// erf in f64.
pub(super) fn erf64(x: f64) -> f64 {
    let a = x.abs();
    if a < 1.0 {
        let z = x * x;
        return x * poly!(z; FRAC_2_SQRT_PI, -0.376_126_389_031_837_5, 0.112_837_916_709_548_58,
            -0.026_866_170_645_072_9, 0.005_223_977_624_780_938, -0.000_854_832_697_874_625_1,
            0.000_120_553_310_370_429_33, -1.492_559_351_020_391_9e-5, 1.646_097_286_779_240_7e-6,
            -1.635_002_573_354_726e-7, 1.465_788_308_746_636e-8, -1.136_567_775_561_826_2e-9,
            5.945_280_432_038e-11);
    }
    // erf 6 rounds to one; a NaN passes every comparison by.
    let a = if a > 6.0 { 6.0 } else { a };
    let t = (a - 2.0) / (a + 2.0);
    let r = poly!(t; 0.255_395_676_310_505_77, -0.427_185_847_413_956_8, 0.241_658_194_242_466_94,
        -0.078_978_581_016_455_79, 0.003_732_892_398_591_689_3, 0.006_997_461_790_093_421,
        -0.000_847_142_572_503_108_3, -0.000_981_976_584_251_311_2, 4.353_531_266_794_005e-5,
        0.000_174_287_700_523_745_77, 2.763_088_995_408_518e-5, -2.658_700_437_437_677e-5,
        -1.262_207_179_913_895_8e-5);
    (1.0 - (-a * a).exp() * r).copysign(x)
}

/// 1 - erf x in f32.
#[inline(always)]
pub(super) fn erfc(x: f32) -> f32 {
    let a = x.abs();
    // erfc 10.1 rounds to zero.
    let b = if a > 10.1 { 10.1 } else { a };
    let t = (b - 2.0) / (b + 2.0);
    let r = poly!(t; 0.255_395_68, -0.427_185_86, 0.241_658_15, -0.078_978_48, 0.003_733_804_2, 0.006_995_695_6,
        -0.000_853_718_3, -0.000_970_930_85, 0.000_064_018_335, 0.000_145_396_36);
    // Twelve bits, whose square is exact.
    let high = f32::from_bits(b.to_bits() & 0xffff_f000);
    let far = exp::<false>(-high * high) * (exp::<false>((high - b) * (high + b)) * r);
    let far = if x < 0.0 { 2.0 - far } else { far };
    if a < 0.5 { 1.0 - erf(x) } else { far }
}

/// 1 - erf x in f64.
pub(super) fn erfc64(x: f64) -> f64 {
    if x.is_nan() || x < 1.0 {
        return 1.0 - erf64(x);
    }
    // Beyond 28 the result is zero.
    let b = x.min(28.0);
    // Laplace's continued fraction: its error after n terms is about e^(-x sqrt(8 n)).
    let terms = (200.0 / (b * b)) as i32 + 12;
    let fraction = (1..=terms).rev().fold(b, |below, k| b + 0.5 * f64::from(k) / below);
    // 26 bits, whose square is exact.
    let high = f64::from_bits(b.to_bits() & !0x7ff_ffff);
    (-high * high).exp() * ((high - b) * (high + b)).exp() * 0.5 * FRAC_2_SQRT_PI / fraction
}

#[cfg(test)]
mod tests {
    use super::{erf64, erfc64};

    /// 2/sqrt(pi) e^(-x^2) (x + 2 x^3/3 + 4 x^5/15 + ...): all terms of one sign, so none is lost.
    fn series(x: f64) -> f64 {
        let (mut term, mut sum, mut n) = (x, x, 1.0);
        while term > sum * 1e-18 {
            n += 2.0;
            term *= 2.0 * x * x / n;
            sum += term;
        }
        super::FRAC_2_SQRT_PI * (-x * x).exp() * sum
    }

    #[test]
    fn the_complement_matches_known_values() {
        // Computed with 40 digits.
        let known = [
            (-1.0, 1.842700792949715),
            (0.5, 0.4795001221869535),
            (1.5, 0.033894853524689274),
            (3.0, 2.209049699858544e-5),
            (7.0, 4.183825607779414e-23),
            (20.0, 5.395865611607901e-176),
        ];
        for (x, expected) in known {
            let error = erfc64(x) / expected - 1.0;
            assert!(error.abs() < 1e-15, "erfc {x}: {error:e}");
        }
        assert_eq!([f64::INFINITY, f64::NEG_INFINITY].map(erfc64), [0.0, 2.0]);
        assert!(erfc64(f64::NAN).is_nan());
    }

    #[test]
    fn matches_known_values() {
        // Computed with 60 digits.
        let known = [
            (1e-300, 1.1283791670955126e-300),
            (1e-10, 1.1283791670955126e-10),
            (0.1, 0.112_462_916_018_284_9),
            (0.5, 0.520_499_877_813_046_5),
            (0.999, 0.842_285_270_206_497),
            (1.0, 0.842_700_792_949_714_9),
            (1.001, 0.843_115_485_478_076_3),
            (1.5, 0.966_105_146_475_310_7),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
            (5.0, 0.999_999_999_998_462_5),
        ];
        for (x, y) in known {
            assert!((erf64(x) / y - 1.0).abs() < 4e-16, "erf({x})");
            assert_eq!(erf64(-x), -erf64(x));
        }
        assert_eq!(erf64(f64::INFINITY), 1.0);
        assert_eq!(erf64(-0.0).to_bits(), (-0.0f64).to_bits());
        assert!(erf64(f64::NAN).is_nan());
    }

    #[test]
    fn matches_its_series() {
        for i in 1..6000 {
            let x = f64::from(i) * 0.001_003;
            assert!((erf64(x) / series(x) - 1.0).abs() < 2e-15, "erf({x})");
        }
    }
}
