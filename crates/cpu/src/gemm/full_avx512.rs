//! The microkernel for full tiles of packed panels with AVX-512: where nearly all of a large product's time goes.
//!
//! Both arithmetic units take a multiply-add each cycle here, so nothing else may need them: no masks, and few
//! additions to addresses, since steps are done four at a time. What is fetched ahead is spread out, as a burst of
//! misses would hold up the panels' own lines.

use super::kernel::Tile;
use super::kernel_avx512::{MR, PREFETCH_STEPS};
use std::arch::x86_64::*;

/// Steps of k that are done together.
const STEPS: usize = 4;

macro_rules! full {
    ($name:ident, $each:ident, $t:ty, $mask:ty, $lanes:expr, $zero:ident, $splat:ident, $fma:ident, $add:ident,
     $load:ident, $load_some:ident, $store_some:ident) => {
        /// Computes a tile of all rows and more than one vector of columns.
        ///
        /// # Safety
        /// The CPU has AVX-512, and the tile describes two packed panels and writable C.
        pub(super) unsafe fn $name(t: &Tile<$t>) {
            // SAFETY: passed on from the caller.
            unsafe { if t.soon_each == 1 { $each::<true>(t) } else { $each::<false>(t) } }
        }

        #[target_feature(enable = "avx512f,fma")]
        unsafe fn $each<const EVERY_STEP: bool>(t: &Tile<$t>) {
            const LANES: usize = $lanes;
            const NR: usize = 2 * LANES;
            // SAFETY: the panels have `t.k` steps, masks keep to the columns of C, and fetching ahead never faults.
            unsafe {
                let (mut a, mut b, mut soon) = (t.a, t.b, t.soon);
                let mut sums = [[$zero(); 2]; MR];
                macro_rules! step {
                    ($u:expr) => {
                        for v in 0..2 {
                            let line = b.wrapping_add((PREFETCH_STEPS as usize + $u) * NR + v * LANES);
                            _mm_prefetch::<_MM_HINT_T0>(line.cast());
                        }
                        let line = a.wrapping_add((PREFETCH_STEPS as usize + $u) * MR);
                        _mm_prefetch::<_MM_HINT_T0>(line.cast());
                        if EVERY_STEP || $u == 0 {
                            _mm_prefetch::<_MM_HINT_T1>(soon.cast());
                            soon = soon.wrapping_offset(t.soon_stride);
                        }
                        let row = [$load(b.add($u * NR)), $load(b.add($u * NR + LANES))];
                        for i in 0..MR {
                            let x = $splat(*a.add($u * MR + i));
                            for v in 0..2 {
                                sums[i][v] = $fma(x, row[v], sums[i][v]);
                            }
                        }
                    };
                }
                macro_rules! round {
                    () => {
                        step!(0);
                        step!(1);
                        step!(2);
                        step!(3);
                        a = a.add(STEPS * MR);
                        b = b.add(STEPS * NR);
                    };
                }
                // A row of C is fetched with each of the first rounds.
                let rounds = t.k / STEPS;
                let mut row = t.c;
                for _ in 0..rounds.min(MR) {
                    for v in 0..2 {
                        _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(v * LANES).cast());
                    }
                    row = row.wrapping_add(t.ldc);
                    round!();
                }
                for _ in MR..rounds {
                    round!();
                }
                for _ in 0..t.k % STEPS {
                    step!(0);
                    a = a.add(MR);
                    b = b.add(NR);
                }
                let masks = [<$mask>::MAX, ((1u32 << (t.cols - LANES)) - 1) as $mask];
                for i in 0..MR {
                    for v in 0..2 {
                        let c = t.c.add(i * t.ldc).wrapping_add(v * LANES);
                        let sum =
                            if t.accumulate { $add(sums[i][v], $load_some(masks[v], c)) } else { sums[i][v] };
                        $store_some(c, masks[v], sum);
                    }
                }
            }
        }
    };
}

full!(
    f32_tile,
    f32_each,
    f32,
    __mmask16,
    16,
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_fmadd_ps,
    _mm512_add_ps,
    _mm512_loadu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_mask_storeu_ps
);
full!(
    f64_tile,
    f64_each,
    f64,
    __mmask8,
    8,
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_fmadd_pd,
    _mm512_add_pd,
    _mm512_loadu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_mask_storeu_pd
);
