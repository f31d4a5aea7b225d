//! What the guards say of a kernel that ran, from what its executor found: the same words on every device.

use super::Plan;
use super::executor::Argument;
use super::kernel::{Kernel, MapKernel, Slot, Step, Value, Work};
use crate::error::{Error, ErrorKind, Result};

/// Slots to count NaN and infinity in before the first kernel.
pub(crate) fn inputs(plan: &Plan) -> impl Iterator<Item = Slot> {
    plan.layout.inputs.iter().copied().filter(|&slot| plan.slot_dtypes[slot].is_float())
}

/// Slots to count NaN and infinity in after `kernel`.
pub(crate) fn results(kernel: &Kernel) -> impl Iterator<Item = Slot> {
    kernel.parts.iter().filter(|p| p.stored && p.dtype.is_float()).map(|p| p.slot)
}

/// A value that picks elements of an axis.
pub(crate) struct Index {
    /// The loops that compute it.
    pub map: MapKernel,
    pub value: Value,
    /// The axis's extent.
    pub extent: usize,
}

/// The indices by which `kernel` picks what it reads or writes.
pub(crate) fn indices(kernel: &Kernel) -> Vec<Index> {
    let mut all = Vec::new();
    for map in kernel.maps() {
        for instruction in &map.code {
            if let Step::Gather { index, extent, .. } = instruction.step {
                all.push(Index { map: map.clone(), value: index, extent });
            }
        }
    }
    if let Work::Special(s) = &kernel.work
        && let super::kernel::Special::ScatterAdd { axis } = s.special
    {
        all.push(Index { map: s.operands[0].as_map(), value: 0, extent: s.output.shape[axis] });
    }
    all
}

/// An error if the kernel met an index out of bounds (with its axis's extent), or made NaN or infinity of finite
/// numbers. `nonfinite` tells how many elements of a slot are not finite: of what it wrote, and of what it read as
/// it was before.
pub(crate) fn verdict(
    kernel: &Kernel,
    arguments: &[Argument],
    bad_index: Option<(i64, usize)>,
    nonfinite: impl Fn(Slot) -> u64,
) -> Result<()> {
    if let Some((index, extent)) = bad_index {
        let part = kernel.parts.last().expect("a kernel computes something");
        let message =
            format!("index {index} is out of bounds for an axis of {extent} ({} {})", part.op, part.shape);
        return Err(Error::at(ErrorKind::Index, message, part.origin));
    }
    let Some(part) = kernel.parts.iter().find(|p| p.stored && nonfinite(p.slot) > 0) else { return Ok(()) };
    let own = |slot: Slot| kernel.parts.iter().any(|p| p.slot == slot);
    let came_in = kernel.reads().into_iter().any(|slot| !own(slot) && nonfinite(slot) > 0);
    if came_in || uses_nonfinite_constant(kernel, arguments) {
        return Ok(());
    }
    let (count, total) = (nonfinite(part.slot), part.shape.numel());
    let message = format!(
        "{} of shape {} gave NaN or infinity in {count} of {total} elements, from finite inputs",
        part.op, part.shape
    );
    Err(Error::at(ErrorKind::NonFinite, message, part.origin))
}

fn uses_nonfinite_constant(kernel: &Kernel, arguments: &[Argument]) -> bool {
    let infinite = |step: &Step| match step {
        Step::Argument(k) => matches!(arguments[*k], Argument::Number(x) if !x.to_f64().is_finite()),
        Step::Literal(x) | Step::Load { fill: x, .. } => !x.to_f64().is_finite(),
        _ => false,
    };
    kernel.maps().any(|m| m.code.iter().any(|i| infinite(&i.step)))
}
