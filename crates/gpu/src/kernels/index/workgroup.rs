//! What all bodies have in common: 256 invocations that know their workgroup, and bindings.

use super::element_type::Number;
use crate::dispatch::{Binding, ComputeType, Dispatch, Memory};
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::NativeKernel;

/// Invocations of a workgroup: every adapter has as many.
pub(super) const SIZE: usize = 256;

/// A dispatch of `groups` workgroups. `statements` see `group` and `lane`.
pub(super) fn dispatch(
    groups: usize,
    bindings: Vec<Binding>,
    declarations: &str,
    statements: &str,
) -> Dispatch {
    let body = format!(
        "\
{declarations}
@compute @workgroup_size({SIZE})
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) nwg: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {{
    let group = wg.x + wg.y * nwg.x;
    if (group >= {groups}u) {{ return; }}
{statements}}}
"
    );
    Dispatch { body, bindings, groups: groups as u64 }
}

/// A dispatch with an invocation for each of `count` things, which `statements` see as `at`.
pub(super) fn dispatch_each(
    count: usize,
    bindings: Vec<Binding>,
    declarations: &str,
    statements: &str,
) -> Dispatch {
    let counted =
        format!("    let at = group * {SIZE}u + lane;\n    if (at >= {count}u) {{ return; }}\n{statements}");
    dispatch(count.div_ceil(SIZE), bindings, declarations, &counted)
}

/// Makes `scanned`, a number of every invocation `lane`, running sums, each with its own number in it. What was written to
/// workgroup memory before can be read after.
pub(super) fn scan() -> String {
    format!(
        "    workgroupBarrier();
    for (var apart = 1u; apart < {SIZE}u; apart <<= 1u) {{
        var sum = scanned[lane];
        if (lane >= apart) {{ sum += scanned[lane - apart]; }}
        workgroupBarrier();
        scanned[lane] = sum;
        workgroupBarrier();
    }}
"
    )
}

fn binding(name: &'static str, memory: Memory, dtype: DType, lane: ComputeType) -> Binding {
    Binding { name, memory, dtype, lane, width: 1, reads: false, writes: false }
}

/// An operand, in the lane of its type.
pub(super) fn operand(kernel: &NativeKernel, number: usize, name: &'static str) -> Binding {
    let dtype = kernel.operands[number].dtype;
    let lane = Number::of(dtype).lane;
    Binding { reads: true, ..binding(name, Memory::Operand(number), dtype, lane) }
}

/// The result, named `out`.
pub(super) fn output(kernel: &NativeKernel) -> Binding {
    let dtype = kernel.output.dtype;
    Binding { writes: true, ..binding("out", Memory::Output, dtype, Number::of(dtype).lane) }
}

/// Scratch memory that is written.
pub(super) fn scratch_out(number: usize, name: &'static str, (dtype, lane): (DType, ComputeType)) -> Binding {
    Binding { writes: true, ..binding(name, Memory::Scratch(number), dtype, lane) }
}

/// Scratch memory that is read.
pub(super) fn scratch_in(number: usize, name: &'static str, (dtype, lane): (DType, ComputeType)) -> Binding {
    Binding { reads: true, ..binding(name, Memory::Scratch(number), dtype, lane) }
}

/// How positions lie in scratch memory.
pub(super) const POSITIONS: (DType, ComputeType) = (DType::I32, ComputeType::I32);
