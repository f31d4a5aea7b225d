//! Unsafe functions compiled once for each level of instructions. Their bodies are inlined as a whole, however long they are,
//! which a closure's need not be.

/// Compiles the body of a function for AVX-512, for AVX2 and for the build target, and calls the best that runs here. A constant may
/// stand in square brackets.
macro_rules! leveled {
    (
        $(#[$meta:meta])*
        $vis:vis unsafe fn $name:ident [$(const $c:ident: $ct:ty)?] ($($arg:ident: $ty:ty),* $(,)?) $body:block
    ) => {
        $(#[$meta])*
        $vis unsafe fn $name<$(const $c: $ct)?>($($arg: $ty),*) {
            #[inline(always)]
            unsafe fn body<$(const $c: $ct)?>($($arg: $ty),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                use $crate::vector::isa::{Level, level};

                #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")]
                unsafe fn avx512<$(const $c: $ct)?>($($arg: $ty),*) {
                    // SAFETY: passed on from the caller.
                    unsafe { body::<$($c)?>($($arg),*) }
                }
                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2<$(const $c: $ct)?>($($arg: $ty),*) {
                    // SAFETY: passed on from the caller.
                    unsafe { body::<$($c)?>($($arg),*) }
                }
                match level() {
                    // SAFETY: the processor has this level; the rest is passed on from the caller.
                    Level::Avx512 => return unsafe { avx512::<$($c)?>($($arg),*) },
                    // SAFETY: as above.
                    Level::Avx2 => return unsafe { avx2::<$($c)?>($($arg),*) },
                    Level::Baseline => {}
                }
            }
            // SAFETY: passed on from the caller.
            unsafe { body::<$($c)?>($($arg),*) }
        }
    };
}
pub(super) use leveled;
