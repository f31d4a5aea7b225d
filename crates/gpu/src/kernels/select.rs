//! Which template makes the dispatches of a kernel that is not generated from loops, and in which of its variants.

use super::{attention, gemm, index};
use crate::caps::Caps;
use crate::dispatch::{AbsMax, Lowered};
use std::fmt;
use volta_ir::op::NativeOp;
use volta_ir::plan::kernel::NativeKernel;

/// A variant of a kernel, of several that give the same result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    Product(gemm::Variant),
    Attention(attention::Variant),
}

impl Variant {
    fn product(self) -> Option<gemm::Variant> {
        if let Variant::Product(variant) = self { Some(variant) } else { None }
    }

    fn attention(self) -> Option<attention::Variant> {
        if let Variant::Attention(variant) = self { Some(variant) } else { None }
    }
}

/// Its name, which is the same in every run.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Variant::Product(variant) => variant.fmt(f),
            Variant::Attention(variant) => variant.fmt(f),
        }
    }
}

/// The variants of a kernel on such an adapter; none where there is no choice.
pub(crate) fn variants(kernel: &NativeKernel, caps: &Caps) -> Vec<Variant> {
    match kernel.op {
        NativeOp::Matmul | NativeOp::Conv(..) => {
            gemm::variants(kernel, caps).into_iter().map(Variant::Product).collect()
        }
        NativeOp::Attention { .. } | NativeOp::AttentionGrad { .. } => {
            attention::variants(kernel, caps).into_iter().map(Variant::Attention).collect()
        }
        _ => Vec::new(),
    }
}

/// Of which operands it asks for the largest magnitudes of lanes.
pub(crate) fn needs_absmax(kernel: &NativeKernel, caps: &Caps, wanted: Option<Variant>) -> [bool; 2] {
    gemm::needs_absmax(kernel, caps, wanted.and_then(Variant::product))
}

/// Its dispatches, as the variant that is `wanted`, or else the one that suits it.
pub(crate) fn lower(kernel: &NativeKernel, caps: &Caps, wanted: Option<Variant>) -> Lowered {
    lower_knowing(kernel, caps, wanted, [None; 2])
}

/// The same, where something is known of a product's operands.
pub(crate) fn lower_knowing(
    kernel: &NativeKernel,
    caps: &Caps,
    wanted: Option<Variant>,
    largest: [Option<AbsMax>; 2],
) -> Lowered {
    if kernel.output.shape.numel() == 0 {
        return Lowered::default();
    }
    match kernel.op {
        NativeOp::Matmul
        | NativeOp::Conv(..)
        | NativeOp::QuantizedMatmul { .. }
        | NativeOp::Dequantize(_) => gemm::lower(kernel, caps, wanted.and_then(Variant::product), largest),
        NativeOp::Attention { .. } | NativeOp::AttentionGrad { .. } => {
            attention::lower(kernel, caps, wanted.and_then(Variant::attention))
        }
        NativeOp::ScatterAdd { .. }
        | NativeOp::ArgSort { .. }
        | NativeOp::Cumsum { .. }
        | NativeOp::FirstPosition
        | NativeOp::MaxPoolIndex(_) => index::lower(kernel, caps),
    }
}
