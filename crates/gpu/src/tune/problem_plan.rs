//! A problem as a plan of its own.

use std::sync::Arc;
use volta_ir::dtype::DType;
use volta_ir::plan::Plan;
use volta_ir::plan::assertion::Sites;
use volta_ir::plan::kernel::{Kernel, KernelBody, NativeKernel, Operand};
use volta_ir::plan::memory::{DeviceLimits, MemoryLayout, Output, SlotMemory};

/// The kernel alone, its operands being inputs.
pub(super) fn plan(kernel: &Kernel, native: &NativeKernel, rules: &DeviceLimits) -> Plan {
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
    let places = inputs.iter().map(|&k| SlotMemory::Input(k)).chain([SlotMemory::Output(0)]).collect();
    let peak_bytes = slot_bytes.iter().sum();
    Plan {
        kernels: vec![Kernel { body: KernelBody::Native(Box::new(native)), ..kernel.clone() }],
        layout: MemoryLayout { places, arena: Vec::new(), host: Vec::new(), inputs, outputs, peak_bytes },
        arguments: Vec::new(),
        slot_bytes,
        slot_dtypes: slots.iter().map(|s| s.1).collect(),
        sites: Arc::new(Sites::none()),
        fit: None,
    }
}

/// Elements from the beginning of a slot to the end of what an operand reads of it.
fn end(operand: &Operand) -> usize {
    let last = |k: usize| operand.strides[k].max(0) * (operand.shape[k].max(1) - 1) as isize;
    (operand.offset + (0..operand.shape.rank()).map(last).sum::<isize>()) as usize + 1
}
