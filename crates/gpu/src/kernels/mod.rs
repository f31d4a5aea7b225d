//! Kernels written by hand, as functions from a plan's kernel and the adapter's abilities to WGSL.

pub(super) mod attention;
pub(super) mod gemm;
pub(super) mod index;
pub(super) mod select;
