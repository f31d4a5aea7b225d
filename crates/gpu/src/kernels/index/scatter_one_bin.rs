//! Sorted lists for few places: every workgroup finds the positions of one place. An invocation looks at a run of
//! neighbours, twice: it counts, and then it knows where its own positions go.

use super::element_type::{OUTSIDE, place_at};
use super::scatter::Scatter;
use super::scatter_radix_sort::Lists;
use super::workgroup::{SIZE, dispatch, scan};
use crate::dispatch::Dispatch;

/// Places that are read before the first is looked at.
const HELD: usize = 8;

/// The dispatch that sorts `lists`.
pub(super) fn sort(s: &Scatter, lists: Lists) -> Dispatch {
    let (count, extent) = (s.values.count, s.extent);
    let (before, behind) = lists.line(s);
    // `each` for every one of the held.
    let all = |each: &dyn Fn(usize) -> String| (0..HELD).map(each).collect::<String>();
    let find = all(&|h| {
        format!(
            "        let read{h} = place_at(first + min(at + {h}u, COUNT - 1u) * {step});
        let place{h} = select({OUTSIDE}, read{h}, at + {h}u < end);
",
            step = s.index.step()
        )
    });
    let count_up =
        all(&|h| format!("        less += u32(place{h} < own);\n        times += u32(place{h} == own);\n"));
    let put = all(&|h| {
        format!(
            "        if (place{h} == own) {{
            store_sorted(list * COUNT + next, i32(at + {h}u));
            next++;
        }}
"
        )
    });
    let declarations = format!(
        "\
const COUNT = {count}u;
const EXTENT = {extent}u;
var<workgroup> earlier: atomic<u32>;
var<workgroup> scanned: array<u32, {SIZE}>;

{place_at}",
        place_at = place_at(s.kernel.operands[0].dtype, extent),
    );
    let statements = format!(
        "    let list = group / EXTENT;
    let own = group % EXTENT;
    let before = {before};
    let behind = {behind};
    let first = {first};
    let begin = lane * {run}u;
    let end = min(begin + {run}u, COUNT);
    if (lane == 0u) {{ atomicStore(&earlier, 0u); }}
    workgroupBarrier();
    var less = 0u;
    var times = 0u;
    for (var at = begin; at < end; at += {HELD}u) {{
{find}{count_up}    }}
    atomicAdd(&earlier, less);
    scanned[lane] = times;
{scan}    var next = atomicLoad(&earlier) + scanned[lane] - times;
    if (lane == 0u) {{ store_begins(list * (EXTENT + 1u) + own, i32(next)); }}
    if (own == EXTENT - 1u && lane == {SIZE}u - 1u) {{
        store_begins(list * (EXTENT + 1u) + EXTENT, i32(next + times));
    }}
    for (var at = begin; at < end; at += {HELD}u) {{
{find}{put}    }}
",
        first = s.index.first("before", "behind"),
        scan = scan(),
        run = count.div_ceil(SIZE),
    );
    dispatch(lists.number(s) * extent, Lists::bindings(s), &declarations, &statements)
}
