//! The element types that can be multiplied, and the types their sums are kept in.

use super::kernel::Kernel;
use half::{bf16, f16};
use std::ops::{Add, Mul};

/// A type that products are summed in, and that the microkernels work on.
pub(crate) trait Accumulator:
    Element<Acc = Self> + Default + PartialEq + Add<Output = Self> + Mul<Output = Self>
{
    /// `self * b + c`, rounded once.
    fn fused(self, b: Self, c: Self) -> Self;
    /// The fastest kernel this CPU runs.
    fn kernel() -> &'static Kernel<Self>;
    /// Every kernel this CPU runs.
    #[cfg(test)]
    fn kernels() -> Vec<&'static Kernel<Self>>;
}

/// A type of matrix elements.
pub(crate) trait Element: Copy + Send + Sync + 'static {
    type Acc: Accumulator;
    fn widen(self) -> Self::Acc;
    /// The same pointer, where the elements already have the accumulator's type.
    fn as_acc(data: *const Self) -> Option<*const Self::Acc>;
}

macro_rules! accumulators {
    ($($t:ty),*) => {$(
        impl Element for $t {
            type Acc = $t;
            #[inline(always)]
            fn widen(self) -> $t {
                self
            }
            #[inline(always)]
            fn as_acc(data: *const $t) -> Option<*const $t> {
                Some(data)
            }
        }
    )*};
}
accumulators!(f32, f64);

impl Element for bf16 {
    type Acc = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
    #[inline(always)]
    fn as_acc(_: *const bf16) -> Option<*const f32> {
        None
    }
}

impl Element for f16 {
    type Acc = f32;
    /// Branch-free, so that loops over it vectorise: the exponent is rebased by one multiplication
    /// (which also normalises subnormals), and the all-ones exponent is then put back.
    #[inline(always)]
    fn widen(self) -> f32 {
        const REBASE: f32 = f32::from_bits((127 + 112) << 23);
        let bits = u32::from(self.to_bits());
        let magnitude = f32::from_bits((bits & 0x7fff) << 13) * REBASE;
        let special = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
        f32::from_bits(magnitude.to_bits() | special | (bits & 0x8000) << 16)
    }
    #[inline(always)]
    fn as_acc(_: *const f16) -> Option<*const f32> {
        None
    }
}

macro_rules! kernels {
    ($($t:ty, $kernel:ident);*) => {$(
        impl Accumulator for $t {
            #[inline(always)]
            fn fused(self, b: $t, c: $t) -> $t {
                self.mul_add(b, c)
            }

            fn kernel() -> &'static Kernel<$t> {
                #[cfg(target_arch = "x86_64")]
                {
                    if super::kernel_avx512::supported() {
                        return &super::kernel_avx512::$kernel;
                    }
                    if super::kernel_avx2::supported() {
                        return &super::kernel_avx2::$kernel;
                    }
                }
                &super::kernel_portable::$kernel
            }

            #[cfg(test)]
            fn kernels() -> Vec<&'static Kernel<$t>> {
                let mut all = vec![&super::kernel_portable::$kernel];
                #[cfg(target_arch = "x86_64")]
                {
                    if super::kernel_avx2::supported() {
                        all.push(&super::kernel_avx2::$kernel);
                    }
                    if super::kernel_avx512::supported() {
                        all.push(&super::kernel_avx512::$kernel);
                    }
                }
                all
            }
        }
    )*};
}
kernels!(f32, F32; f64, F64);
