//! Where each place is named first.

use super::scatter::index_at;
use crate::interpreter::Bindings;
use volta_ir::plan::kernel::NativeKernel;

/// The first position that names each place, or -1.
pub(crate) fn first_position(kernel: &NativeKernel, bind: Bindings) {
    let (index, extent) = (&kernel.operands[0], kernel.output.shape[0]);
    let out = bind.slots[kernel.output.slot].0.cast::<i32>();
    // SAFETY: the output has this many positions, and nobody else writes them.
    let firsts = unsafe { std::slice::from_raw_parts_mut(out, extent) };
    firsts.fill(-1);
    // The first one is written last.
    for position in (0..index.shape[0]).rev() {
        let place = index_at(index, position as isize * index.strides[0], bind);
        if let Some(first) = usize::try_from(place).ok().and_then(|place| firsts.get_mut(place)) {
            *first = position as i32;
        }
    }
}
