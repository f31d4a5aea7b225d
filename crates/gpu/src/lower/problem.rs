//! What is tuned: a kernel without what it does to its operands before and to its results afterwards, under a name that tells its shapes, types and
//! strides, and as a plan of its own.

use std::fmt::Write;
use std::sync::Arc;
use volta_ir::dtype::DType;
use volta_ir::plan::Plan;
use volta_ir::plan::assertion::Sites;
use volta_ir::plan::kernel::{Kernel, KernelBody, NativeKernel, NativeOp, Operand};
use volta_ir::plan::memory::{DeviceLimits, Layout, Output, Place};

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

/// The kernel alone, its operands being inputs.
pub(crate) fn plan(kernel: &Kernel, native: &NativeKernel, rules: &DeviceLimits) -> Plan {
    let mut native = NativeKernel { prologues: Vec::new(), epilogue: None, ..native.clone() };
    let mut slots: Vec<(usize, DType, usize)> = Vec::new();
    for operand in &mut native.operands {
        let needed = end(operand);
        let slot = slots.iter().position(|(slot, ..)| *slot == operand.slot).unwrap_or_else(|| {
            slots.push((operand.slot, operand.dtype, 0));
            slots.len() - 1
        });
        slots[slot].2 = slots[slot].2.max(needed);
        operand.slot = slot;
    }
    let inputs: Vec<usize> = (0..slots.len()).collect();
    let output = slots.len();
    slots.push((native.output.slot, native.output.dtype, end(&native.output)));
    native.output.slot = output;
    let slot_bytes: Vec<usize> = slots.iter().map(|s| s.2 * rules.sizes[s.1 as usize]).collect();
    let outputs = vec![Output { slot: output, bytes: slot_bytes[output], over: None }];
    let places = inputs.iter().map(|&k| Place::Input(k)).chain([Place::Output(0)]).collect();
    let peak_bytes = slot_bytes.iter().sum();
    Plan {
        kernels: vec![Kernel { body: KernelBody::Native(Box::new(native)), ..kernel.clone() }],
        layout: Layout { places, arena: Vec::new(), inputs, outputs, peak_bytes },
        arguments: Vec::new(),
        slot_bytes,
        slot_dtypes: slots.iter().map(|s| s.1).collect(),
        sites: Arc::new(Sites::none()),
    }
}

/// Elements from the beginning of a slot to the end of what an operand reads of it.
fn end(operand: &Operand) -> usize {
    let last = |k: usize| operand.strides[k].max(0) * (operand.shape[k].max(1) - 1) as isize;
    (operand.offset + (0..operand.shape.rank()).map(last).sum::<isize>()) as usize + 1
}
