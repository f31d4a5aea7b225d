//! Kernels whose slots get other numbers.

use super::super::kernel::{Kernel, KernelBody, MapKernel, Slot, Step};

impl Kernel {
    /// Reads and writes other slots in the place of its own.
    pub(in crate::plan) fn rename(&mut self, new: impl Fn(Slot) -> Slot) {
        self.body.maps_mut().for_each(|map| rename_map(map, &new));
        if let KernelBody::Native(native) = &mut self.body {
            native.operands.iter_mut().for_each(|operand| operand.slot = new(operand.slot));
            native.output.slot = new(native.output.slot);
        }
        self.parts.iter_mut().for_each(|part| part.slot = new(part.slot));
    }
}

fn rename_map(map: &mut MapKernel, new: &impl Fn(Slot) -> Slot) {
    for instruction in &mut map.code {
        if let Step::Load { access, .. } | Step::Gather { access, .. } = &mut instruction.step {
            access.slot = new(access.slot);
        }
    }
    map.stores.iter_mut().for_each(|store| store.access.slot = new(store.access.slot));
}
