//! Fused loops as generated WGSL. `elementwise` programs give every invocation its elements, `along` long rows several of
//! one row. `reduce` gives every row a `team` of invocations, as a `layout` says, and a `split` row several; a `shortcut`
//! saves a pass along it, `totals` folds all rows, `columns` every column in passing, and `joined` many tensors at once. The
//! largest of a matrix's rows and columns are `noted` while it is written. What programs that are `alike` compute is written
//! once for all. `code` writes the instructions, `expression` the ops, `slots`
//! names the memory; `epilogue` is the program that runs on a product's elements as they are finished, `prologue` the one
//! that computes an operand's as they are read.

mod alike;
mod along;
mod code;
mod columns;
mod elementwise;
mod epilogue;
mod expression;
mod joined;
mod layout;
mod noted;
mod prologue;
mod reduce;
mod rough;
mod shortcut;
mod slots;
mod split;
mod team;
mod totals;

pub(super) use code::Arguments;
pub(super) use columns::lower as lower_rows;
pub(super) use elementwise::uniforms;
pub(super) use epilogue::{finishes_eights, write as write_epilogue};
pub(super) use noted::Noted;
pub(super) use prologue::write as write_prologue;
pub(super) use slots::Slots;

use super::dispatch::{Caps, Dispatch, Memory};
use crate::dtype::DType;
use crate::plan::kernel::MapKernel;

/// A word pair of a shader's uniform memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uniform {
    /// The plan's argument of that number, seen as that type.
    Argument(usize, DType),
    /// A number known when the plan is made.
    Count(u32),
    /// The number of the plan's assertion at this site among those of all plans.
    Site(usize),
}

/// A dispatch with the uniform memory it reads.
pub(super) struct MapDispatch {
    pub dispatch: Dispatch,
    pub uniforms: Vec<Uniform>,
}

#[derive(Default)]
pub(super) struct MapLowered {
    pub dispatches: Vec<MapDispatch>,
    /// Bytes of each piece of scratch memory.
    pub scratch: Vec<u64>,
}

impl MapLowered {
    /// Adds what is to run after this, with scratch memory of its own.
    fn append(&mut self, mut other: MapLowered) {
        let before = self.scratch.len();
        other.dispatches.iter_mut().for_each(|d| d.shift_scratch(before));
        self.scratch.append(&mut other.scratch);
        self.dispatches.append(&mut other.dispatches);
    }
}

impl MapDispatch {
    /// Numbers scratch memory from `first` on.
    fn shift_scratch(&mut self, first: usize) {
        for binding in &mut self.dispatch.bindings {
            if let Memory::Scratch(n) = &mut binding.memory {
                *n += first;
            }
        }
    }
}

/// Invocations of a workgroup where nothing asks for more.
const GROUP: u32 = 256;

const BUILTINS: &str = "@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>";

/// Dispatches of `maps`, which see at most `most_slots` slots each.
pub(super) fn lower(maps: &[MapKernel], caps: &Caps, most_slots: usize) -> MapLowered {
    let simple: Vec<MapKernel> = maps.iter().filter(|m| m.rows() > 0).map(MapKernel::simplified).collect();
    match &simple[..] {
        [] => MapLowered::default(),
        // Also folds of single elements, whose loops are gone.
        [one] if one.outer < one.extents.len() || folds(one) => reduce::lower(one, caps),
        [one] => MapLowered { dispatches: elementwise::lower(one), scratch: Vec::new() },
        many if many.iter().all(folds) => joined::lower(many, caps, most_slots),
        many => MapLowered { dispatches: elementwise::lower_many(many, most_slots), scratch: Vec::new() },
    }
}

fn folds(map: &MapKernel) -> bool {
    map.code.iter().any(|i| i.step.is_fold())
}

/// Whether code can compute four lanes at once: there are no vectors of 64-bit integers.
fn can_be_wide(kernel: &MapKernel) -> bool {
    kernel.code.iter().all(|i| i.dtype != DType::I64)
}
