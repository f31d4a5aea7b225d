//! Instruction-set levels: one portable body compiled for each, chosen once at run time.

use std::sync::OnceLock;

/// What the running CPU offers beyond the target the crate was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(any(target_arch = "x86", target_arch = "x86_64")), allow(dead_code))]
pub(crate) enum Level {
    /// What the build target guarantees (SSE2, NEON, wasm, ...).
    Baseline,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512 F, BW, VL and DQ.
    Avx512,
}

/// The best level of the running CPU; asked of the CPU once.
#[inline]
pub(crate) fn level() -> Level {
    #[cfg(test)]
    if let Some(forced) = forced::get() {
        return forced;
    }
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(detect)
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn detect() -> Level {
    if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
        Level::Baseline
    } else if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
    {
        Level::Avx512
    } else {
        Level::Avx2
    }
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn detect() -> Level {
    Level::Baseline
}

/// Compiles the body of a function once per level and calls the best one.
///
/// Bodies never let the vector width decide an order of summation, and only the exponential uses a
/// fused multiply-add, where the level has one (`FUSED`): every other function gives the same bits on
/// every level. The slices
/// are plain arguments of the per-level function, so `out` keeps its `noalias`, and LLVM needs no
/// overlap checks before a vector loop. Generic parameters are written in square brackets.
macro_rules! leveled {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $([$($g:ident: $bound:path),*])? ($($arg:ident: $ty:ty),* $(,)?)
        $(-> $ret:ty)? $body:block
    )*) => {$(
        $(#[$meta])*
        $vis fn $name $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body<const FUSED: bool $($(, $g: $bound)*)?>($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")]
            fn avx512 $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? {
                body::<true $($(, $g)*)?>($($arg),*)
            }

            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            #[target_feature(enable = "avx2,fma")]
            fn avx2 $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? {
                body::<true $($(, $g)*)?>($($arg),*)
            }

            match $crate::vector::isa::level() {
                #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
                // SAFETY: `level` answers Avx512 only where the CPU has these features.
                $crate::vector::isa::Level::Avx512 => unsafe {
                    avx512 $(::<$($g),*>)? ($($arg),*)
                },
                #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
                // SAFETY: `level` answers Avx2 only where the CPU has these features.
                $crate::vector::isa::Level::Avx2 => unsafe {
                    avx2 $(::<$($g),*>)? ($($arg),*)
                },
                _ => body::<false $($(, $g)*)?>($($arg),*),
            }
        }
    )*};
}
pub(crate) use leveled;

/// Lets a test run the same call at every level the CPU has.
#[cfg(test)]
pub(crate) mod forced {
    use super::{Level, detect};
    use std::cell::Cell;

    thread_local!(static FORCED: Cell<Option<Level>> = const { Cell::new(None) });

    pub(crate) fn get() -> Option<Level> {
        FORCED.get()
    }

    /// Calls `f` once per level from the baseline up and hands back what each call gave.
    pub(crate) fn at_each_level<R>(mut f: impl FnMut() -> R) -> Vec<(Level, R)> {
        [Level::Baseline, Level::Avx2, Level::Avx512]
            .into_iter()
            .filter(|&level| level <= detect())
            .map(|level| {
                FORCED.set(Some(level));
                let result = f();
                FORCED.set(None);
                (level, result)
            })
            .collect()
    }

    /// Fails unless every level gives the same value.
    pub(crate) fn assert_levels_agree<R: PartialEq + std::fmt::Debug>(f: impl FnMut() -> R) {
        let results = at_each_level(f);
        for (level, result) in &results[1..] {
            assert!(*result == results[0].1, "{level:?} differs from the baseline");
        }
    }
}
