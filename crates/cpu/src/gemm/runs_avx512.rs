//! Packing lanes that form runs in memory, with AVX-512: a masked load per run and vector.

use super::kernel::Run;
use std::arch::x86_64::*;

/// Most runs that meet in one panel: as many as it has lanes.
const MAX_RUNS: usize = 32;

macro_rules! copy_runs {
    ($name:ident, $module:ident, $t:ty, $lanes:expr, $mask:ty, $zero:ident, $load:ident, $store:ident) => {
        /// See [`super::kernel::CopyRuns`].
        ///
        /// # Safety
        /// The CPU has AVX-512, the runs are readable from every step, `width` is one or two
        /// vectors, and `dst` takes `steps.len() * width`.
        pub(super) unsafe fn $name(
            src: *const $t,
            steps: &[isize],
            runs: &[Run],
            dst: *mut $t,
            width: usize,
        ) {
            // SAFETY: passed on from the caller.
            unsafe { $module::copy(src, steps, runs, dst, width) }
        }

        mod $module {
            use super::*;

            const LANES: usize = $lanes;

            /// The part of a run that falls into a vector: which lanes, and where the vector's
            /// first lane would be.
            #[derive(Clone, Copy)]
            struct Part {
                mask: $mask,
                offset: isize,
            }

            #[target_feature(enable = "avx512f")]
            pub(super) unsafe fn copy(
                src: *const $t,
                steps: &[isize],
                runs: &[Run],
                dst: *mut $t,
                width: usize,
            ) {
                for vector in 0..width / LANES {
                    let mut parts = [Part { mask: 0, offset: 0 }; MAX_RUNS];
                    let mut count = 0;
                    let first = vector * LANES;
                    for run in runs {
                        let start = run.lane.max(first);
                        let end = (run.lane + run.len).min(first + LANES);
                        if start < end {
                            let mask = ((1u32 << (end - first)) - (1u32 << (start - first))) as $mask;
                            let offset = run.offset + first as isize - run.lane as isize;
                            parts[count] = Part { mask, offset };
                            count += 1;
                        }
                    }
                    let dst = dst.wrapping_add(first);
                    // SAFETY: the masks confine the loads to the runs.
                    unsafe {
                        match count {
                            0 | 1 => steps_of::<1>(src, steps, &parts[..1], dst, width),
                            2 => steps_of::<2>(src, steps, &parts[..2], dst, width),
                            3 => steps_of::<3>(src, steps, &parts[..3], dst, width),
                            _ => steps_of::<0>(src, steps, &parts[..count], dst, width),
                        }
                    }
                }
            }

            /// Copies one vector per step, from COUNT parts (any number if 0).
            #[target_feature(enable = "avx512f")]
            unsafe fn steps_of<const COUNT: usize>(
                src: *const $t,
                steps: &[isize],
                parts: &[Part],
                dst: *mut $t,
                width: usize,
            ) {
                let mut few = [parts[0]; COUNT];
                few.copy_from_slice(&parts[..COUNT]);
                for (p, &step) in steps.iter().enumerate() {
                    let mut value = $zero();
                    let at = src.wrapping_offset(step);
                    // SAFETY: passed on from the caller.
                    unsafe {
                        if COUNT == 0 {
                            for part in parts {
                                value = $load(value, part.mask, at.wrapping_offset(part.offset));
                            }
                        } else {
                            for part in few {
                                value = $load(value, part.mask, at.wrapping_offset(part.offset));
                            }
                        }
                        $store(dst.add(p * width), value);
                    }
                }
            }
        }
    };
}

copy_runs!(copy_f32, of_f32, f32, 16, __mmask16, _mm512_setzero_ps, _mm512_mask_loadu_ps, _mm512_storeu_ps);
copy_runs!(copy_f64, of_f64, f64, 8, __mmask8, _mm512_setzero_pd, _mm512_mask_loadu_pd, _mm512_storeu_pd);
