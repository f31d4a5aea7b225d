//! What the guards say of a kernel that ran, from what its executor found: the same words on every device.

use super::Plan;
use super::executor::Argument;
use super::kernel::{Kernel, Slot, Step};
use crate::error::{Error, ErrorKind, Result};

/// Slots to count NaN and infinity in before the first kernel.
pub fn inputs(plan: &Plan) -> impl Iterator<Item = Slot> {
    plan.layout.inputs.iter().copied().filter(|&slot| plan.slot_dtypes[slot].is_float())
}

/// Slots to count NaN and infinity in after `kernel`.
pub fn results(kernel: &Kernel) -> impl Iterator<Item = Slot> {
    kernel.parts.iter().filter(|p| p.stored && p.dtype.is_float()).map(|p| p.slot)
}

/// An error if an assertion of the kernel `failed`, or if it made NaN or infinity of finite numbers. `nonfinite` tells how many elements of a slot are not finite: of what it wrote, and of what it read as
/// it was before.
pub fn verdict(
    kernel: &Kernel,
    arguments: &[Argument],
    failed: Option<Error>,
    nonfinite: impl Fn(Slot) -> u64,
) -> Result<()> {
    if let Some(error) = failed {
        return Err(error);
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
