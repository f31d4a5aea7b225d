//! Microkernels for AVX2 with FMA: 6 rows by two vectors, so that 12 accumulators, two vectors of B
//! and one broadcast element of A fit the 16 registers.

use super::kernel::{Kernel, Tile};
use super::{dot, runs, transpose_portable};
use std::arch::x86_64::*;

pub(super) fn supported() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

const MR: usize = 6;

pub(super) static F32: Kernel<f32> = Kernel {
    name: "avx2",
    mr: MR,
    nr: 16,
    kc: 384,
    l2: 48 * 1024,
    copies: false,
    tile: f32_tile::run,
    transpose: transpose_portable::run::<f32>,
    copy_runs: runs::copy,
    dots: dots_f32,
};

pub(super) static F64: Kernel<f64> = Kernel {
    name: "avx2",
    mr: MR,
    nr: 8,
    kc: 384,
    l2: 24 * 1024,
    copies: false,
    tile: f64_tile::run,
    transpose: transpose_portable::run::<f64>,
    copy_runs: runs::copy,
    dots: dots_f64,
};

macro_rules! dots {
    ($name:ident, $t:ty, $lanes:expr) => {
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $name(rows: *const $t, row_stride: isize, count: usize, x: *const $t, k: usize) -> [$t; 4] {
            // SAFETY: the caller passes readable rows and vector.
            unsafe { dot::dots::<$t, $lanes, true>(rows, row_stride, count, x, k) }
        }
    };
}
dots!(dots_f32, f32, 16);
dots!(dots_f64, f64, 8);

macro_rules! tile {
    ($module:ident, $t:ty, $lane:ty, $lanes:expr, $zero:ident, $splat:ident, $fma:ident, $add:ident,
     $load:ident, $store:ident, $maskload:ident, $maskstore:ident) => {
        mod $module {
            use super::*;

            const LANES: usize = $lanes;

            /// Computes one tile.
            ///
            /// # Safety
            /// The CPU has AVX2 and FMA, and the tile describes readable A and B and writable C.
            pub(super) unsafe fn run(t: &Tile<$t>) {
                // SAFETY: passed on from the caller; `by_rows` picks a body of `t.rows` rows, and
                // whole vectors are only read where there are whole vectors of columns.
                unsafe {
                    match t.cols {
                        c if c == 2 * LANES => by_rows::<2, false>(t),
                        c if c > LANES => by_rows::<2, true>(t),
                        c if c == LANES => by_rows::<1, false>(t),
                        _ => by_rows::<1, true>(t),
                    }
                }
            }

            #[inline(always)]
            unsafe fn by_rows<const VECTORS: usize, const MASKED: bool>(t: &Tile<$t>) {
                // SAFETY: passed on from `run`.
                unsafe {
                    match t.rows {
                        1 => body::<1, VECTORS, MASKED>(t),
                        2 => body::<2, VECTORS, MASKED>(t),
                        3 => body::<3, VECTORS, MASKED>(t),
                        4 => body::<4, VECTORS, MASKED>(t),
                        5 => body::<5, VECTORS, MASKED>(t),
                        _ => body::<6, VECTORS, MASKED>(t),
                    }
                }
            }

            #[target_feature(enable = "avx2,fma")]
            unsafe fn body<const ROWS: usize, const VECTORS: usize, const MASKED: bool>(t: &Tile<$t>) {
                // SAFETY: the masks keep loads and stores inside `cols`, and ROWS is `t.rows`.
                unsafe {
                    let mut lanes = [-1 as $lane; LANES];
                    for lane in &mut lanes[t.cols - (VECTORS - 1) * LANES..] {
                        *lane = 0;
                    }
                    let mask = _mm256_loadu_si256(lanes.as_ptr().cast());
                    let mut sums = [[$zero(); VECTORS]; ROWS];
                    let (mut a, mut b) = (t.a, t.b);
                    for _ in 0..t.k {
                        let mut row = [$zero(); VECTORS];
                        for v in 0..VECTORS {
                            let at = b.add(v * LANES);
                            row[v] = if MASKED && v == VECTORS - 1 { $maskload(at, mask) } else { $load(at) };
                        }
                        for i in 0..ROWS {
                            let x = $splat(*a.offset(i as isize * t.a_row));
                            for v in 0..VECTORS {
                                sums[i][v] = $fma(x, row[v], sums[i][v]);
                            }
                        }
                        a = a.wrapping_offset(t.a_col);
                        b = b.wrapping_offset(t.b_row);
                    }
                    for i in 0..ROWS {
                        for v in 0..VECTORS {
                            let c = t.c.add(i * t.ldc + v * LANES);
                            if MASKED && v == VECTORS - 1 {
                                let old = if t.accumulate { $maskload(c, mask) } else { $zero() };
                                $maskstore(c, mask, $add(sums[i][v], old));
                            } else {
                                let old = if t.accumulate { $load(c) } else { $zero() };
                                $store(c, $add(sums[i][v], old));
                            }
                        }
                    }
                }
            }
        }
    };
}

tile!(
    f32_tile,
    f32,
    i32,
    8,
    _mm256_setzero_ps,
    _mm256_set1_ps,
    _mm256_fmadd_ps,
    _mm256_add_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_maskload_ps,
    _mm256_maskstore_ps
);
tile!(
    f64_tile,
    f64,
    i64,
    4,
    _mm256_setzero_pd,
    _mm256_set1_pd,
    _mm256_fmadd_pd,
    _mm256_add_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_maskload_pd,
    _mm256_maskstore_pd
);
