//! What is tuned: a kernel without what it does to its operands before and to its results afterwards, under a name that tells
//! its shapes, types and strides.

use std::fmt::Write;
use volta_ir::op::NativeOp;
use volta_ir::plan::kernel::NativeKernel;

/// The name of a kernel's problem, which is the same in every run and every plan.
pub(crate) fn name(kernel: &NativeKernel) -> String {
    let mut text = match &kernel.op {
        NativeOp::Conv(kind, a) => format!(
            "{kind:?} stride {:?} padding {:?} dilation {:?} groups {}",
            a.stride, a.padding, a.dilation, a.groups
        ),
        NativeOp::Attention { causal, .. } => format!("Attention{}", if *causal { " causal" } else { "" }),
        NativeOp::AttentionGrad { causal, .. } => {
            format!("AttentionGrad{}", if *causal { " causal" } else { "" })
        }
        other => format!("{other:?}"),
    };
    for operand in kernel.operands.iter().chain([&kernel.output]) {
        // Where four neighbours start together depends on no more of the offset.
        let _ = write!(text, ", {} {} at {}", operand.dtype, operand.shape, operand.offset.rem_euclid(4));
        if !operand.is_contiguous() {
            let strides = (0..operand.shape.rank())
                .map(|k| if operand.shape[k] == 1 { 0 } else { operand.strides[k] })
                .collect::<Vec<_>>();
            let _ = write!(text, " by {strides:?}");
        }
    }
    text
}
