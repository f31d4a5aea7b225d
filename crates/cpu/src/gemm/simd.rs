//! Running ordinary loops with the vector instructions that the CPU has, rather than the few that
//! every CPU has.

/// Calls `f`, compiled for the widest vectors of this CPU. Only what is inlined into `f` profits.
#[inline(always)]
pub(crate) fn vectorized<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
        fn with_avx512<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        #[target_feature(enable = "avx2,fma")]
        fn with_avx2<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        if avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            // SAFETY: the CPU has these features.
            return unsafe { with_avx512(f) };
        }
        if avx2 {
            // SAFETY: the CPU has these features.
            return unsafe { with_avx2(f) };
        }
    }
    f()
}
