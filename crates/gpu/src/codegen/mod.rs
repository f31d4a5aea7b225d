//! Fused loops as generated WGSL.
//!
//! `elementwise` gives every invocation a few elements; `row_blocking` gives it several of one long row. `reduce` gives every
//! row a `thread_group` by its `reduce_schedule`, and `split` gives a row several workgroups. `single_pass_reduce` saves a pass
//! over a row, `global_reduce` reduces all rows, `column_reduce` reduces columns while rows are read, `multi_tensor_reduce`
//! reduces many tensors at once, and `multi_tensor` writes programs that are equal for many tensors only once. `absmax` keeps
//! the largest of a matrix's rows and columns while it is written.
//!
//! `storage_type` tells how each type lies in memory. `code` writes the instructions, `expression` the ops, `slots` names the memory. `epilogue` is the program that runs on a
//! product's results, `prologue` the one that computes its operands as they are read. `shader` adds the declarations of
//! memory, and `wgsl` the functions that are called.

mod absmax;
mod code;
mod column_reduce;
pub(super) mod count_nonfinite;
mod elementwise;
mod epilogue;
mod expression;
mod fast_math;
mod global_reduce;
mod multi_tensor;
mod multi_tensor_reduce;
mod prologue;
mod reduce;
mod reduce_schedule;
mod row_blocking;
pub(super) mod shader;
mod single_pass_reduce;
mod slots;
mod split;
pub(super) mod storage_type;
mod thread_group;
pub(super) mod wgsl;

use crate::caps::Caps;
use crate::dispatch::{Dispatch, Memory};
pub(super) use absmax::AbsMaxProducer;
pub(super) use code::Arguments;
pub(super) use column_reduce::lower as lower_rows;
pub(super) use elementwise::uniforms;
pub(super) use epilogue::{finishes_eights, write as write_epilogue};
pub(super) use prologue::write as write_prologue;
pub(super) use slots::Slots;
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::MapKernel;

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
        many if many.iter().all(folds) => multi_tensor_reduce::lower(many, caps, most_slots),
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
