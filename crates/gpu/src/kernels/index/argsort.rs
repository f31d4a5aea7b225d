//! The stable order of every line. Runs that fit into workgroup memory are sorted there by a bitonic network
//! of (key, position) pairs, which makes it stable; longer lines are runs that `merge` then joins. What is in order already is
//! only joined.

use super::element_type::{Number, Order};
use super::merge;
use super::view::Lines;
use super::workgroup::{POSITIONS, SIZE, dispatch, dispatch_each, operand, output, scratch_out};
use crate::dispatch::{Dispatch, Lowered};
use volta_ir::plan::kernel::NativeKernel;

/// Bytes of workgroup memory for pairs: every adapter has as many.
const BYTES: usize = 16384;

pub(super) fn lower(kernel: &NativeKernel, axis: usize, descending: bool, sorted: usize) -> Lowered {
    let lines = Lines::of(&kernel.operands[0], axis);
    let order = Number::of(kernel.operands[0].dtype).order();
    let most = if order.size == 4 { BYTES / 8 } else { BYTES / 16 };
    let (first, run) = if (2..lines.count).contains(&sorted) {
        (keys(kernel, &lines, &order, descending), sorted)
    } else {
        let run = lines.count.next_power_of_two().min(most);
        (runs(kernel, &lines, &order, run, descending), run)
    };
    let mut dispatches = vec![first];
    let scratch = merge::lower(kernel, &lines, &order, run, &mut dispatches);
    Lowered { dispatches, scratch }
}

/// Writes keys and positions as they are: in runs that are in order.
fn keys(kernel: &NativeKernel, lines: &Lines, order: &Order, descending: bool) -> Dispatch {
    let (count, behind) = (lines.count, lines.behind);
    let bindings = vec![
        operand(kernel, 0, "x"),
        scratch_out(0, "keys", order.scratch),
        scratch_out(1, "order", POSITIONS),
    ];
    let statements = format!(
        "    let place = at % {count}u;
    let before = at / {count}u / {behind}u;
    let behind = at / {count}u % {behind}u;
    store_keys(at, {flip}order_of(load_x({first} + place * {step})));
    store_order(at, i32(place));
",
        flip = if descending { "~" } else { "" },
        first = lines.first("before", "behind"),
        step = lines.step(),
    );
    dispatch_each(lines.number() * count, bindings, order.function, &statements)
}

/// Sorts runs of a power of two of elements: whole lines into the output, parts of them into scratch memory.
fn runs(kernel: &NativeKernel, lines: &Lines, order: &Order, run: usize, descending: bool) -> Dispatch {
    let (count, behind) = (lines.count, lines.behind);
    let whole = count <= run;
    let runs = count.div_ceil(run);
    // Short lines share a workgroup.
    let pairs = run.max(4 * SIZE);
    let together = pairs / run;
    let number = lines.number() * runs;
    // Neighbouring invocations read neighbouring lines where those are neighbours in memory.
    let across = behind > 1 && together > 1;
    let split = if across {
        format!("let i = e / {together}u;\n        let r = e % {together}u;")
    } else {
        format!("let i = e % {run}u;\n        let r = e / {run}u;")
    };
    let (key, last, flip) = (order.name, order.last, if descending { "~" } else { "" });
    let write = if whole {
        "store_out((before * COUNT + place) * BEHIND + behind, i32(tile_positions[slot]));".to_string()
    } else {
        "store_keys(line * COUNT + place, tile_keys[slot]);
            store_order(line * COUNT + place, i32(tile_positions[slot]));"
            .to_string()
    };
    let bindings = if whole {
        vec![operand(kernel, 0, "x"), output(kernel)]
    } else {
        vec![
            operand(kernel, 0, "x"),
            scratch_out(0, "keys", order.scratch),
            scratch_out(1, "order", POSITIONS),
        ]
    };
    let declarations = format!(
        "\
const COUNT = {count}u;
const BEHIND = {behind}u;
var<workgroup> tile_keys: array<{key}, {pairs}>;
var<workgroup> tile_positions: array<u32, {pairs}>;

{function}
fn put_in_order(a: u32, b: u32) {{
    let key_a = tile_keys[a];
    let key_b = tile_keys[b];
    let position_a = tile_positions[a];
    let position_b = tile_positions[b];
    if (key_a > key_b || (key_a == key_b && position_a > position_b)) {{
        tile_keys[a] = key_b;
        tile_keys[b] = key_a;
        tile_positions[a] = position_b;
        tile_positions[b] = position_a;
    }}
}}
",
        function = order.function,
    );
    let locate = format!(
        "{split}
        let slot = r * {run}u + i;
        let unit = group * {together}u + r;
        let line = unit / {runs}u;
        let place = unit % {runs}u * {run}u + i;
        let before = line / BEHIND;
        let behind = line % BEHIND;"
    );
    let statements = format!(
        "    for (var e = lane; e < {pairs}u; e += {SIZE}u) {{
        {locate}
        tile_keys[slot] = {last};
        // Positions behind the line put its padding behind all equal keys.
        tile_positions[slot] = place;
        if (unit < {number}u && place < COUNT) {{
            tile_keys[slot] = {flip}order_of(load_x({first} + place * {step}));
        }}
    }}
    workgroupBarrier();
    for (var size = 2u; size <= {run}u; size <<= 1u) {{
        // Against the mirror image first, so that every half is sorted upwards.
        for (var t = lane; t < {half}u; t += {SIZE}u) {{
            let start = t / (size >> 1u) * size;
            let r = t % (size >> 1u);
            put_in_order(start + r, start + size - 1u - r);
        }}
        workgroupBarrier();
        for (var apart = size >> 2u; apart > 0u; apart >>= 1u) {{
            for (var t = lane; t < {half}u; t += {SIZE}u) {{
                let a = t / apart * apart + t;
                put_in_order(a, a + apart);
            }}
            workgroupBarrier();
        }}
    }}
    for (var e = lane; e < {pairs}u; e += {SIZE}u) {{
        {locate}
        if (unit < {number}u && place < COUNT) {{
            {write}
        }}
    }}
",
        first = lines.first("before", "behind"),
        step = lines.step(),
        half = pairs / 2,
    );
    dispatch(number.div_ceil(together), bindings, &declarations, &statements)
}
