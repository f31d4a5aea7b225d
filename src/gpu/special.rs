//! Which template makes the dispatches of a kernel that is not generated from loops.

use super::dispatch::{Caps, Lowered};
use super::{attention, gemm, index};
use crate::plan::kernel::{Special, SpecialKernel};

pub(super) fn lower(kernel: &SpecialKernel, caps: &Caps) -> Lowered {
    match kernel.special {
        Special::Matmul | Special::Conv(..) => gemm::lower(kernel, caps),
        Special::Attention { .. } | Special::AttentionGrad { .. } => attention::lower(kernel, caps),
        Special::ScatterAdd { .. }
        | Special::ArgSort { .. }
        | Special::Cumsum { .. }
        | Special::MaxPoolIndex(_) => index::lower(kernel, caps),
    }
}
