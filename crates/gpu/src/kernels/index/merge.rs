//! Sorted runs of lines, joined in pairs until a line is one run: every element finds its rank in the other
//! run by bisection. Elements of the left run come first where keys are equal, which keeps the order stable.

use super::element_type::Order;
use super::view::Lines;
use super::workgroup::{POSITIONS, dispatch_each, output, scratch_in, scratch_out};
use crate::dispatch::{Binding, Dispatch};
use volta_ir::plan::kernel::NativeKernel;

/// Adds the passes over runs of `run` elements, which lie in scratch 0 (keys) and 1 (positions); says the
/// bytes of scratch memory. Passes go from 0 and 1 to 2 and 3, and back.
pub(super) fn lower(
    kernel: &NativeKernel,
    lines: &Lines,
    order: &Order,
    mut run: usize,
    dispatches: &mut Vec<Dispatch>,
) -> Vec<u64> {
    let elements = (lines.number() * lines.count) as u64;
    let mut passes = 0;
    while run < lines.count {
        let last = run * 2 >= lines.count;
        let (from, to) = if passes % 2 == 0 { (0, 2) } else { (2, 0) };
        let mut bindings =
            vec![scratch_in(from, "keys", order.scratch), scratch_in(from + 1, "order", POSITIONS)];
        if last {
            bindings.push(output(kernel));
        } else {
            bindings.push(scratch_out(to, "merged_keys", order.scratch));
            bindings.push(scratch_out(to + 1, "merged", POSITIONS));
        }
        dispatches.push(pass(lines, run, last, bindings));
        run *= 2;
        passes += 1;
    }
    let pair = [elements * order.size, elements * 4];
    match passes {
        0 => vec![],
        1 => pair.to_vec(),
        _ => [pair, pair].concat(),
    }
}

fn pass(lines: &Lines, run: usize, last: bool, bindings: Vec<Binding>) -> Dispatch {
    let (count, behind) = (lines.count, lines.behind);
    let write = if last {
        format!(
            "let row = line / {behind}u * {count}u + place;
    store_out(row * {behind}u + line % {behind}u, load_order(own));"
        )
    } else {
        "store_merged_keys(start + place, key);\n    store_merged(start + place, load_order(own));"
            .to_string()
    };
    let statements = format!(
        "    let line = at / {count}u;
    let i = at % {count}u;
    let start = line * {count}u;
    let own = at;
    let key = load_keys(own);
    let first = i / {run}u * {run}u;
    let left = (i / {run}u) % 2u == 0u;
    // The other run: it may be short, or missing, at the end of the line.
    let others = select(first - {run}u, min(first + {run}u, {count}u), left);
    var low = others;
    var high = select(first, min(first + {two}u, {count}u), left);
    while (low < high) {{
        let middle = (low + high) / 2u;
        let other = load_keys(start + middle);
        if (other < key || (!left && other == key)) {{
            low = middle + 1u;
        }} else {{
            high = middle;
        }}
    }}
    let place = min(first, others) + (i - first) + (low - others);
    {write}
",
        two = run * 2,
    );
    dispatch_each(lines.number() * count, bindings, "", &statements)
}
