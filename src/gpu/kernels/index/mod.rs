//! Shaders of scattering, sorting, running sums, and the positions of window maxima and of those who name a place first.

mod argsort;
mod cumsum;
mod element_type;
pub(in crate::gpu) mod external_sort;
mod first_position;
mod max_pool;
mod merge;
mod scatter;
mod scatter_direct;
mod scatter_full_scan;
mod scatter_one_bin;
mod scatter_radix_sort;
mod scatter_segmented_reduce;
mod scatter_sorted;
mod scatter_tile;
mod view;
mod workgroup;

use crate::gpu::lower::dispatch::{Caps, Lowered};
use crate::plan::kernel::{Special, SpecialKernel};

/// The dispatches of one of these kernels; none where the output has no elements.
pub(crate) fn lower(kernel: &SpecialKernel, caps: &Caps) -> Lowered {
    if kernel.output.shape.numel() == 0 {
        return Lowered::default();
    }
    match kernel.special {
        Special::ScatterAdd { axis } => scatter::lower(kernel, axis, caps),
        Special::ArgSort { axis, descending, sorted } => argsort::lower(kernel, axis, descending, sorted),
        Special::Cumsum { axis } => cumsum::lower(kernel, axis),
        Special::FirstPosition => first_position::lower(kernel),
        Special::MaxPoolIndex(attrs) => max_pool::lower(kernel, attrs),
        ref other => unreachable!("{} is no kernel of indices", other.name()),
    }
}
