//! Shaders of scattering, sorting, running sums, and the positions of window maxima and of those who name a place first.

mod argsort;
mod cumsum;
mod element_type;
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

use crate::caps::Caps;
use crate::dispatch::Lowered;
use volta_ir::op::NativeOp;
use volta_ir::plan::kernel::NativeKernel;

/// The dispatches of one of these kernels; none where the output has no elements.
pub(crate) fn lower(kernel: &NativeKernel, caps: &Caps) -> Lowered {
    if kernel.output.shape.numel() == 0 {
        return Lowered::default();
    }
    match kernel.op {
        NativeOp::ScatterAdd { axis } => scatter::lower(kernel, axis, caps),
        NativeOp::ArgSort { axis, descending, sorted } => argsort::lower(kernel, axis, descending, sorted),
        NativeOp::Cumsum { axis } => cumsum::lower(kernel, axis),
        NativeOp::FirstPosition => first_position::lower(kernel),
        NativeOp::MaxPoolIndex(ref attrs) => max_pool::lower(kernel, attrs),
        ref other => unreachable!("{} is no kernel of indices", other.name()),
    }
}
