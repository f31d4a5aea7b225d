//! The element types of attention and the constants of their exponential.

use std::fmt::Debug;
use std::ops::{Add, Mul, Sub};

use super::lanes::Lanes;

/// The most lanes of any vector type.
pub(super) const MAX_LANES: usize = 16;

/// `f32` or `f64`.
pub(crate) trait Float:
    Copy
    + Debug
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Send
    + Sync
    + 'static
{
    /// The vector type of the portable level.
    type Portable: Lanes<Elem = Self>;
    /// The vector type of the AVX2 level.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Lanes<Elem = Self>;
    /// The vector type of the AVX-512 level.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Lanes<Elem = Self>;

    const ZERO: Self;
    const ONE: Self;
    const NEG_INFINITY: Self;

    /// Below this `exp` is taken as 0: the result would not be a normal number.
    const EXP_LOW: Self;
    /// Arguments of `exp` are clamped to this, so that the result stays finite.
    const EXP_HIGH: Self;
    const LOG2_E: Self;
    /// -ln 2 in two parts, the first with enough trailing zero bits that its
    /// product with any exponent is exact.
    const NEG_LN2_HIGH: Self;
    const NEG_LN2_LOW: Self;
    /// 1.5 * 2^(mantissa bits): adding it rounds to an integer and leaves that
    /// integer in the low bits.
    const ROUNDER: Self;
    /// Coefficients of P, highest power first, in exp(r) ~ 1 + r + r^2 P(r) on
    /// |r| <= ln(2) / 2; minimax in the relative error, which is below 1/10 ulp.
    const EXP_POLYNOMIAL: &'static [Self];

    /// +inf, then -inf, as many of each as the longest vector has lanes: loads from
    /// inside are bounds that keep the first lanes and drop the others.
    const EDGE: &'static [Self; 2 * MAX_LANES];

    fn from_f64(x: f64) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn recip(self) -> Self;
    /// `self * b + c`, fused where the target always has the instruction (the
    /// software fallback of `mul_add` is far too slow).
    fn fused(self, b: Self, c: Self) -> Self;
    /// `self * 2^n` where `rounded` is `ROUNDER + n`, for normal results.
    fn scale_exponent(self, rounded: Self) -> Self;
}

macro_rules! float {
    ($t:ty, $bits:literal mantissa bits, $portable:literal lanes, $avx2:ident, $avx512:ident,
     $low:literal .. $high:literal, $ln2_high:literal + $ln2_low:literal, $polynomial:expr) => {
        impl Float for $t {
            type Portable = super::lanes::Array<$t, $portable>;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = super::x86::$avx2;
            #[cfg(target_arch = "x86_64")]
            type Avx512 = super::x86::$avx512;

            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NEG_INFINITY: Self = <$t>::NEG_INFINITY;
            const EXP_LOW: Self = $low;
            const EXP_HIGH: Self = $high;
            const LOG2_E: Self = std::f64::consts::LOG2_E as $t;
            const NEG_LN2_HIGH: Self = -$ln2_high;
            const NEG_LN2_LOW: Self = -$ln2_low;
            const ROUNDER: Self = 1.5 * (1u64 << $bits) as $t;
            const EXP_POLYNOMIAL: &'static [Self] = &$polynomial;
            const EDGE: &'static [Self; 2 * MAX_LANES] = &{
                let mut edge = [<$t>::INFINITY; 2 * MAX_LANES];
                let mut i = MAX_LANES;
                while i < 2 * MAX_LANES {
                    edge[i] = <$t>::NEG_INFINITY;
                    i += 1;
                }
                edge
            };

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }

            fn exp(self) -> Self {
                <$t>::exp(self)
            }

            fn ln(self) -> Self {
                <$t>::ln(self)
            }

            #[inline(always)]
            fn recip(self) -> Self {
                <$t>::recip(self)
            }

            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
                    self.mul_add(b, c)
                } else {
                    self * b + c
                }
            }

            #[inline(always)]
            fn scale_exponent(self, rounded: Self) -> Self {
                <$t>::from_bits(self.to_bits().wrapping_add(rounded.to_bits() << $bits))
            }
        }
    };
}

float!(
    f32, 23 mantissa bits, 4 lanes, F32x8, F32x16,
    -87.33 .. 88.3, 0.693_359_4 + -2.121_944_4e-4,
    [0.001_381_432, 0.008_368_851, 0.041_668_4, 0.166_665_2, 0.499_999_94]
);
float!(
    f64, 52 mantissa bits, 2 lanes, F64x4, F64x8,
    -708.3 .. 709.4, 0.693_145_751_953_125 + 1.428_606_820_309_417_3e-6,
    [
        2.499_985_827_047_285e-8,
        2.763_052_346_735_36e-7,
        2.755_758_842_128_921_7e-6,
        2.480_149_238_829_363_6e-5,
        0.000_198_412_695_027_409_08,
        0.001_388_888_894_424_918_7,
        0.008_333_333_333_496_923,
        0.041_666_666_666_528_1,
        0.166_666_666_666_664_08,
        0.500_000_000_000_001_1,
    ]
);
