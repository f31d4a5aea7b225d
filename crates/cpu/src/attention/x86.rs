//! The vector types of the AVX2 and AVX-512 levels.

use std::arch::x86_64::*;

use super::lanes::{LaneWork, Lanes};

macro_rules! lanes {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $elem:ty, $n:literal lanes, $rows:literal rows,
     $square:literal square, $features:literal,
     $splat:ident $load:ident $store:ident $add:ident $sub:ident $mul:ident $fma:ident
     $max:ident $min:ident, $transpose:ident,
     zero_below |$y:ident, $x:ident, $floor:ident| $zero_below:expr,
     scale_exponent |$m:ident, $e:ident| $scale_exponent:expr,
     sum |$s:ident| $sum:expr, largest |$l:ident| $largest:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name($raw);

        // SAFETY of every block below: the contract of `Lanes` has the caller make
        // sure of the CPU features, and of the pointers where there are any.
        impl Lanes for $name {
            type Elem = $elem;
            const N: usize = $n;
            const ROWS: usize = $rows;
            const SQUARE: usize = $square;

            #[inline(always)]
            unsafe fn call<W: LaneWork<Self>>(work: W) {
                #[target_feature(enable = $features)]
                #[inline(never)]
                unsafe fn with_features<W: LaneWork<$name>>(work: W) {
                    // SAFETY: as above; the features are those of this function.
                    unsafe { work.run() }
                }
                // SAFETY: as above.
                unsafe { with_features(work) }
            }

            #[inline(always)]
            unsafe fn splat(x: $elem) -> Self {
                // SAFETY: as above.
                Self(unsafe { $splat(x) })
            }

            #[inline(always)]
            unsafe fn load(p: *const $elem) -> Self {
                // SAFETY: as above.
                Self(unsafe { $load(p) })
            }

            #[inline(always)]
            unsafe fn store(self, p: *mut $elem) {
                // SAFETY: as above.
                unsafe { $store(p, self.0) }
            }

            #[inline(always)]
            unsafe fn add(self, b: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $add(self.0, b.0) })
            }

            #[inline(always)]
            unsafe fn sub(self, b: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $sub(self.0, b.0) })
            }

            #[inline(always)]
            unsafe fn mul(self, b: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $mul(self.0, b.0) })
            }

            #[inline(always)]
            unsafe fn mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $fma(self.0, b.0, c.0) })
            }

            #[inline(always)]
            unsafe fn max(self, b: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $max(self.0, b.0) })
            }

            #[inline(always)]
            unsafe fn min(self, b: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $min(self.0, b.0) })
            }

            #[inline(always)]
            unsafe fn zero_below(self, x: Self, floor: Self) -> Self {
                let ($y, $x, $floor) = (self.0, x.0, floor.0);
                // SAFETY: as above.
                Self(unsafe { $zero_below })
            }

            #[inline(always)]
            unsafe fn scale_exponent(self, rounded: Self) -> Self {
                let ($m, $e) = (self.0, rounded.0);
                // SAFETY: as above.
                Self(unsafe { $scale_exponent })
            }

            #[inline(always)]
            unsafe fn sum(self) -> $elem {
                let $s = self.0;
                // SAFETY: as above.
                unsafe { $sum }
            }

            #[inline(always)]
            unsafe fn largest(self) -> $elem {
                let $l = self.0;
                // SAFETY: as above.
                unsafe { $largest }
            }

            #[inline(always)]
            unsafe fn transpose(
                from: *const $elem,
                from_row: isize,
                to: *mut $elem,
                to_row: usize,
                scale: $elem,
            ) {
                // SAFETY: as above.
                unsafe { $transpose(from, from_row, to, to_row, scale) }
            }
        }
    };
}

lanes!(
    /// Sixteen `f32`.
    F32x16, __m512, f32, 16 lanes, 8 rows, 8 square, "avx512f,avx512dq,avx2,fma",
    _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_add_ps _mm512_sub_ps _mm512_mul_ps
    _mm512_fmadd_ps _mm512_max_ps _mm512_min_ps, transpose_f32,
    zero_below |y, x, floor| _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, floor), y),
    scale_exponent |m, e| _mm512_castsi512_ps(_mm512_add_epi32(
        _mm512_castps_si512(m),
        _mm512_slli_epi32::<23>(_mm512_castps_si512(e)),
    )),
    sum |v| _mm512_reduce_add_ps(v),
    largest |v| _mm512_reduce_max_ps(v)
);
lanes!(
    /// Eight `f64`.
    F64x8, __m512d, f64, 8 lanes, 8 rows, 4 square, "avx512f,avx512dq,avx2,fma",
    _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_add_pd _mm512_sub_pd _mm512_mul_pd
    _mm512_fmadd_pd _mm512_max_pd _mm512_min_pd, transpose_f64,
    zero_below |y, x, floor| _mm512_maskz_mov_pd(_mm512_cmp_pd_mask::<_CMP_NLT_UQ>(x, floor), y),
    scale_exponent |m, e| _mm512_castsi512_pd(_mm512_add_epi64(
        _mm512_castpd_si512(m),
        _mm512_slli_epi64::<52>(_mm512_castpd_si512(e)),
    )),
    sum |v| _mm512_reduce_add_pd(v),
    largest |v| _mm512_reduce_max_pd(v)
);
lanes!(
    /// Eight `f32`.
    F32x8, __m256, f32, 8 lanes, 6 rows, 8 square, "avx2,fma",
    _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps
    _mm256_fmadd_ps _mm256_max_ps _mm256_min_ps, transpose_f32,
    zero_below |y, x, floor| _mm256_andnot_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(x, floor), y),
    scale_exponent |m, e| _mm256_castsi256_ps(_mm256_add_epi32(
        _mm256_castps_si256(m),
        _mm256_slli_epi32::<23>(_mm256_castps_si256(e)),
    )),
    sum |v| fold_f32(v, |a, b| _mm_add_ps(a, b)),
    largest |v| fold_f32(v, |a, b| _mm_max_ps(a, b))
);
lanes!(
    /// Four `f64`.
    F64x4, __m256d, f64, 4 lanes, 6 rows, 4 square, "avx2,fma",
    _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_add_pd _mm256_sub_pd _mm256_mul_pd
    _mm256_fmadd_pd _mm256_max_pd _mm256_min_pd, transpose_f64,
    zero_below |y, x, floor| _mm256_andnot_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(x, floor), y),
    scale_exponent |m, e| _mm256_castsi256_pd(_mm256_add_epi64(
        _mm256_castpd_si256(m),
        _mm256_slli_epi64::<52>(_mm256_castpd_si256(e)),
    )),
    sum |v| fold_f64(v, |a, b| _mm_add_pd(a, b)),
    largest |v| fold_f64(v, |a, b| _mm_max_pd(a, b))
);

/// Folds halves onto each other until one element is left.
///
/// # Safety
/// The CPU has AVX.
#[inline(always)]
unsafe fn fold_f32(v: __m256, f: impl Fn(__m128, __m128) -> __m128) -> f32 {
    // SAFETY: the caller has AVX.
    unsafe {
        let v = f(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        let v = f(v, _mm_movehl_ps(v, v));
        _mm_cvtss_f32(f(v, _mm_shuffle_ps::<1>(v, v)))
    }
}

/// Folds halves onto each other until one element is left.
///
/// # Safety
/// The CPU has AVX.
#[inline(always)]
unsafe fn fold_f64(v: __m256d, f: impl Fn(__m128d, __m128d) -> __m128d) -> f64 {
    // SAFETY: the caller has AVX.
    unsafe {
        let v = f(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v));
        _mm_cvtsd_f64(f(v, _mm_unpackhi_pd(v, v)))
    }
}

/// The 8 x 8 `f32` square of [`Lanes::transpose`].
///
/// # Safety
/// The CPU has AVX, the pointers are valid for the square.
#[inline(always)]
unsafe fn transpose_f32(from: *const f32, from_row: isize, to: *mut f32, to_row: usize, by: f32) {
    // SAFETY: the caller's contract.
    unsafe {
        // Rows r and r + 4 share a register, half each, so that the shuffles below
        // never have to cross the halves.
        let mut wide = [_mm256_setzero_ps(); 8];
        for (i, w) in wide.iter_mut().enumerate() {
            let p = from.offset((i % 4) as isize * from_row).add(i / 4 * 4);
            let below = p.offset(4 * from_row);
            *w = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(below));
        }
        let by = _mm256_set1_ps(by);
        for half in 0..2 {
            let [a, b, c, d] = [0, 1, 2, 3].map(|r| wide[half * 4 + r]);
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ef, gh) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            let columns = [
                _mm256_shuffle_ps::<0x44>(ab, cd),
                _mm256_shuffle_ps::<0xee>(ab, cd),
                _mm256_shuffle_ps::<0x44>(ef, gh),
                _mm256_shuffle_ps::<0xee>(ef, gh),
            ];
            for (i, column) in columns.into_iter().enumerate() {
                _mm256_storeu_ps(to.add((half * 4 + i) * to_row), _mm256_mul_ps(column, by));
            }
        }
    }
}

/// The 4 x 4 `f64` square of [`Lanes::transpose`].
///
/// # Safety
/// The CPU has AVX, the pointers are valid for the square.
#[inline(always)]
unsafe fn transpose_f64(from: *const f64, from_row: isize, to: *mut f64, to_row: usize, by: f64) {
    // SAFETY: the caller's contract.
    unsafe {
        let mut wide = [_mm256_setzero_pd(); 4];
        for (i, w) in wide.iter_mut().enumerate() {
            let p = from.offset((i % 2) as isize * from_row).add(i / 2 * 2);
            let below = p.offset(2 * from_row);
            *w = _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(_mm_loadu_pd(p)), _mm_loadu_pd(below));
        }
        let by = _mm256_set1_pd(by);
        for half in 0..2 {
            let (a, b) = (wide[half * 2], wide[half * 2 + 1]);
            let even = _mm256_mul_pd(_mm256_unpacklo_pd(a, b), by);
            let odd = _mm256_mul_pd(_mm256_unpackhi_pd(a, b), by);
            _mm256_storeu_pd(to.add(half * 2 * to_row), even);
            _mm256_storeu_pd(to.add((half * 2 + 1) * to_row), odd);
        }
    }
}
