//! The first position that names each place: every workgroup owns some places, looks at all positions, and keeps the
//! smallest of each in workgroup memory.

use super::element_type::{OUTSIDE, place_at};
use super::scatter_radix_sort::{BUSY_WORKGROUPS, MAX_PLACES_PER_WORKGROUP};
use super::view::Lines;
use super::workgroup::{SIZE, dispatch, operand, output};
use crate::dispatch::Lowered;
use volta_ir::plan::kernel::NativeKernel;

/// Positions that an invocation reads before it looks at the first.
const HELD: usize = 4;

pub(super) fn lower(kernel: &NativeKernel) -> Lowered {
    let index = Lines::of(&kernel.operands[0], 0);
    let (count, extent) = (index.count, kernel.output.shape[0]);
    let places = extent.div_ceil(BUSY_WORKGROUPS).next_power_of_two().min(MAX_PLACES_PER_WORKGROUP);
    let all = |each: &dyn Fn(usize) -> String| (0..HELD).map(each).collect::<String>();
    let read = all(&|h| {
        format!(
            "        let at{h} = at + {skip}u;
        let place{h} = select({OUTSIDE}, place_at(first + min(at{h}, COUNT - 1u) * {step}), at{h} < COUNT);
",
            skip = h * SIZE,
            step = index.step(),
        )
    });
    let look = all(&|h| {
        format!(
            "        if (place{h} >= low && place{h} < low + {places}u) {{ \
             atomicMin(&firsts[place{h} - low], at{h}); }}\n"
        )
    });
    let declarations = format!(
        "\
const COUNT = {count}u;
const EXTENT = {extent}u;
var<workgroup> firsts: array<atomic<u32>, {places}>;

{}",
        place_at(kernel.operands[0].dtype, extent),
    );
    let statements = format!(
        "    let low = group * {places}u;
    let first = {first};
    for (var p = lane; p < {places}u; p += {SIZE}u) {{ atomicStore(&firsts[p], COUNT); }}
    workgroupBarrier();
    for (var at = lane; at < COUNT; at += {turn}u) {{
{read}{look}    }}
    workgroupBarrier();
    for (var p = lane; p < min({places}u, EXTENT - low); p += {SIZE}u) {{
        let found = atomicLoad(&firsts[p]);
        store_out(low + p, select(-1i, i32(found), found < COUNT));
    }}
",
        first = index.first("0u", "0u"),
        turn = HELD * SIZE,
    );
    let bindings = vec![operand(kernel, 0, "index"), output(kernel)];
    let dispatches = vec![dispatch(extent.div_ceil(places), bindings, &declarations, &statements)];
    Lowered { dispatches, scratch: vec![] }
}
