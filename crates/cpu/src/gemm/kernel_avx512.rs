//! Microkernels for AVX-512: 14 rows by two vectors, so that 28 accumulators, two vectors of B and
//! one broadcast element of A fill the 32 registers.

use super::kernel::{Gather, Kernel, Part, Tile};
use super::{dot, full_avx512, runs_avx512, transpose_avx512, transpose_portable};
use std::arch::x86_64::*;

pub(super) fn supported() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("fma")
}

pub(super) const MR: usize = 14;
/// Steps of k that are fetched ahead.
pub(super) const PREFETCH_STEPS: isize = 16;
/// The same for a matrix in place, whose rows may compete for the same few lines of the cache.
const PREFETCH_STEPS_IN_PLACE: isize = 8;
/// Rows of A that are addressed from one pointer.
const GROUP: usize = 4;
const GROUPS: usize = MR.div_ceil(GROUP);

pub(super) static F32: Kernel<f32> = Kernel {
    name: "avx512",
    mr: MR,
    nr: 32,
    kc: 512,
    l2: 144 * 1024,
    copies: true,
    tile: f32_tile::run,
    transpose: transpose_avx512::run,
    copy_runs: runs_avx512::copy_f32,
    dots: dots_f32,
};

pub(super) static F64: Kernel<f64> = Kernel {
    name: "avx512",
    mr: MR,
    nr: 16,
    kc: 512,
    l2: 72 * 1024,
    copies: true,
    tile: f64_tile::run,
    transpose: transpose_portable::run,
    copy_runs: runs_avx512::copy_f64,
    dots: dots_f64,
};

// Ways of reading the operands: A in place; A packed and B in rows; the same and B copied on the way;
// B gathered and copied.
const STRIDED: u8 = 0;
const PACKED: u8 = 1;
const COPIED: u8 = 2;
const GATHERED: u8 = 3;

const NOTHING: Gather =
    Gather { steps: std::ptr::null(), parts: [[Part { mask: 0, offset: 0 }; 2]; 2], next: 0 };

macro_rules! dots {
    ($name:ident, $t:ty) => {
        #[target_feature(enable = "avx512f,fma")]
        unsafe fn $name(rows: *const $t, row_stride: isize, count: usize, x: *const $t, k: usize) -> [$t; 4] {
            // SAFETY: the caller passes readable rows and vector.
            unsafe { dot::dots::<$t, 32, true>(rows, row_stride, count, x, k) }
        }
    };
}
dots!(dots_f32, f32);
dots!(dots_f64, f64);

macro_rules! tile {
    ($module:ident, $t:ty, $vector:ty, $mask:ty, $lanes:expr, $zero:ident, $splat:ident, $fma:ident,
     $add:ident, $load:ident, $merge:ident, $store:ident) => {
        mod $module {
            use super::*;

            const LANES: usize = $lanes;

            /// Computes one tile.
            ///
            /// # Safety
            /// The CPU has AVX-512, and the tile describes readable A and B and writable C.
            pub(super) unsafe fn run(t: &Tile<$t>) {
                // SAFETY: passed on from the caller; `by_rows` picks a body of exactly `t.rows` rows.
                unsafe {
                    let packed = t.a_row == 1 && t.a_col == MR as isize;
                    let panels = packed && t.b_copy.is_null() && t.b_row == 2 * LANES as isize;
                    if panels && t.rows == MR && t.cols > LANES {
                        return full_avx512::$module(t);
                    }
                    match (t.cols > LANES, packed, t.b_copy.is_null()) {
                        (true, true, false) => copying::<2>(t),
                        (false, true, false) => copying::<1>(t),
                        (true, true, true) => by_rows::<2, PACKED>(t),
                        (false, true, true) => by_rows::<1, PACKED>(t),
                        (true, false, _) => by_rows::<2, STRIDED>(t),
                        (false, false, _) => by_rows::<1, STRIDED>(t),
                    }
                }
            }

            #[inline(always)]
            unsafe fn copying<const VECTORS: usize>(t: &Tile<$t>) {
                debug_assert_eq!(t.rows, MR);
                // SAFETY: passed on from `run`.
                unsafe {
                    if t.gather.is_null() {
                        body::<MR, VECTORS, COPIED>(t)
                    } else {
                        body::<MR, VECTORS, GATHERED>(t)
                    }
                }
            }

            #[inline(always)]
            unsafe fn by_rows<const VECTORS: usize, const HOW: u8>(t: &Tile<$t>) {
                // SAFETY: passed on from `run`.
                unsafe {
                    match t.rows {
                        1 => body::<1, VECTORS, HOW>(t),
                        2 => body::<2, VECTORS, HOW>(t),
                        3 => body::<3, VECTORS, HOW>(t),
                        4 => body::<4, VECTORS, HOW>(t),
                        5 => body::<5, VECTORS, HOW>(t),
                        6 => body::<6, VECTORS, HOW>(t),
                        7 => body::<7, VECTORS, HOW>(t),
                        8 => body::<8, VECTORS, HOW>(t),
                        9 => body::<9, VECTORS, HOW>(t),
                        10 => body::<10, VECTORS, HOW>(t),
                        11 => body::<11, VECTORS, HOW>(t),
                        12 => body::<12, VECTORS, HOW>(t),
                        13 => body::<13, VECTORS, HOW>(t),
                        _ => body::<14, VECTORS, HOW>(t),
                    }
                }
            }

            #[target_feature(enable = "avx512f,fma")]
            unsafe fn body<const ROWS: usize, const VECTORS: usize, const HOW: u8>(t: &Tile<$t>) {
                // SAFETY: the masks keep loads and stores inside `cols`, and ROWS is `t.rows`.
                unsafe {
                    let last = t.cols - (VECTORS - 1) * LANES;
                    let mut masks = [<$mask>::MAX; VECTORS];
                    masks[VECTORS - 1] = ((1u32 << last) - 1) as $mask;
                    let mut sums = [[$zero(); VECTORS]; ROWS];
                    let (a_row, a_col) = if HOW == STRIDED { (t.a_row, t.a_col) } else { (1, MR as isize) };
                    let mut b = t.b;
                    // Several pointers, so that addresses do not form one long chain of additions.
                    let mut a = [t.a; GROUPS];
                    for g in 0..GROUPS {
                        a[g] = t.a.wrapping_offset((g * GROUP) as isize * a_row);
                    }
                    for i in 0..ROWS {
                        for v in 0..VECTORS {
                            let line = t.c.add(i * t.ldc).wrapping_add(v * LANES);
                            _mm_prefetch::<_MM_HINT_T0>(line.cast());
                        }
                    }
                    let mut copy = t.b_copy;
                    let mut soon = t.soon;
                    let gather = if HOW == GATHERED { *t.gather } else { NOTHING };
                    for p in 0..t.k {
                        // Panels are read front to back, from the L2 cache.
                        if HOW == PACKED || HOW == COPIED {
                            let ahead = if HOW == COPIED { PREFETCH_STEPS_IN_PLACE } else { PREFETCH_STEPS };
                            for v in 0..VECTORS {
                                let line = b.wrapping_offset(ahead * t.b_row);
                                let line = line.wrapping_add(v * LANES);
                                _mm_prefetch::<_MM_HINT_T0>(line.cast());
                            }
                        }
                        if HOW != STRIDED {
                            let line = a[0].wrapping_offset(PREFETCH_STEPS * MR as isize);
                            _mm_prefetch::<_MM_HINT_T0>(line.cast());
                        }
                        if HOW == GATHERED {
                            b = t.b.wrapping_offset(*gather.steps.add(p));
                            for v in 1..=VECTORS {
                                let line = b.wrapping_offset(gather.next).wrapping_add(v * LANES);
                                _mm_prefetch::<_MM_HINT_T0>(line.cast());
                            }
                        } else if p & (t.soon_each - 1) == 0 {
                            _mm_prefetch::<_MM_HINT_T1>(soon.cast());
                            soon = soon.wrapping_offset(t.soon_stride);
                        }
                        let mut row = [$zero(); VECTORS];
                        for v in 0..VECTORS {
                            row[v] = if HOW == GATHERED {
                                let [first, second] = gather.parts[v];
                                let from = b.wrapping_offset(first.offset);
                                let value = $load(first.mask as $mask, from);
                                let from = b.wrapping_offset(second.offset);
                                $merge(value, second.mask as $mask, from)
                            } else {
                                $load(masks[v], b.wrapping_add(v * LANES))
                            };
                            if HOW == COPIED || HOW == GATHERED {
                                $store(copy.add(v * LANES), <$mask>::MAX, row[v]);
                            }
                        }
                        for i in 0..ROWS {
                            let x = $splat(*a[i / GROUP].offset((i % GROUP) as isize * a_row));
                            for v in 0..VECTORS {
                                sums[i][v] = $fma(x, row[v], sums[i][v]);
                            }
                        }
                        for g in 0..GROUPS {
                            a[g] = a[g].wrapping_offset(a_col);
                        }
                        b = b.wrapping_offset(t.b_row);
                        if HOW == COPIED || HOW == GATHERED {
                            copy = copy.add(2 * LANES);
                        }
                    }
                    for i in 0..ROWS {
                        for v in 0..VECTORS {
                            let c = t.c.add(i * t.ldc).wrapping_add(v * LANES);
                            let sum =
                                if t.accumulate { $add(sums[i][v], $load(masks[v], c)) } else { sums[i][v] };
                            $store(c, masks[v], sum);
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
    __m512,
    __mmask16,
    16,
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_fmadd_ps,
    _mm512_add_ps,
    _mm512_maskz_loadu_ps,
    _mm512_mask_loadu_ps,
    _mm512_mask_storeu_ps
);
tile!(
    f64_tile,
    f64,
    __m512d,
    __mmask8,
    8,
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_fmadd_pd,
    _mm512_add_pd,
    _mm512_maskz_loadu_pd,
    _mm512_mask_loadu_pd,
    _mm512_mask_storeu_pd
);
