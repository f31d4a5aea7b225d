//! Which template makes the dispatches of a kernel that is not generated from loops, and in which of its ways.

use super::dispatch::{Caps, Lowered};
use super::{attention, gemm, index};
use crate::plan::kernel::{Special, SpecialKernel};
use std::fmt;

/// A way to compute a kernel, of several that give the same result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    Product(gemm::Variant),
    Attention(attention::Variant),
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

/// The ways to compute a kernel on such an adapter; none where there is no choice.
pub(super) fn variants(kernel: &SpecialKernel, caps: &Caps) -> Vec<Variant> {
    match kernel.special {
        Special::Matmul | Special::Conv(..) => {
            gemm::variants(kernel, caps).into_iter().map(Variant::Product).collect()
        }
        Special::Attention { .. } | Special::AttentionGrad { .. } => {
            attention::variants(kernel, caps).into_iter().map(Variant::Attention).collect()
        }
        _ => Vec::new(),
    }
}

/// Its dispatches, in the way that is `wanted` or else the one that suits it.
pub(super) fn lower(kernel: &SpecialKernel, caps: &Caps, wanted: Option<Variant>) -> Lowered {
    if kernel.output.shape.numel() == 0 {
        return Lowered::default();
    }
    match kernel.special {
        Special::Matmul | Special::Conv(..) => {
            let wanted = wanted.and_then(|w| if let Variant::Product(v) = w { Some(v) } else { None });
            gemm::lower(kernel, caps, wanted)
        }
        Special::Attention { .. } | Special::AttentionGrad { .. } => {
            let wanted = wanted.and_then(|w| if let Variant::Attention(v) = w { Some(v) } else { None });
            attention::lower(kernel, caps, wanted)
        }
        Special::ScatterAdd { .. }
        | Special::ArgSort { .. }
        | Special::Cumsum { .. }
        | Special::MaxPoolIndex(_) => index::lower(kernel, caps),
    }
}
