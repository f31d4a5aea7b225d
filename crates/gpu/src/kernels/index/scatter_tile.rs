//! Scattering by workgroups that own a tile of the output: some lines by a range of places, in workgroup
//! memory. A workgroup walks through all values of its lines; each value for one of its sums names itself the
//! sum's next, and the smallest position wins. The winners add, the others try again. So sums are made in the
//! order of the values.

use super::element_type::{Number, OUTSIDE, place_at};
use super::scatter::Scatter;
use super::workgroup::{SIZE, dispatch, operand, output};
use crate::caps::Caps;
use crate::dispatch::Lowered;

/// Values that an invocation holds at a time.
const HELD: usize = 4;
/// Lines side by side in memory that make reading them worth its while.
const COLUMNS: usize = 16;
/// More workgroup memory than this leaves too few workgroups at a time.
const MAX_BYTES: usize = 32768;
/// Bytes for what is no tile.
const OTHER_BYTES: usize = 64;

/// How the output is cut.
pub(super) struct Tile {
    /// Lines of a tile.
    pub lines: usize,
    /// Places of a tile.
    pub places: usize,
    /// Tiles along a line.
    pub tiles: usize,
}

impl Tile {
    pub fn of(s: &Scatter, caps: &Caps) -> Tile {
        let number = Number::of(s.kernel.output.dtype);
        let bytes = MAX_BYTES.min(caps.workgroup_bytes as usize) - OTHER_BYTES;
        let slots = bytes / (4 + number.size as usize);
        let lines = if s.values.behind > 1 {
            s.values.behind.next_power_of_two().min(COLUMNS)
        } else {
            (slots / s.extent).min(HELD * SIZE / s.values.count.max(1)).clamp(1, s.values.before)
        };
        let tiles = s.extent.div_ceil(slots / lines);
        Tile { lines, places: s.extent.div_ceil(tiles), tiles }
    }
}

pub(super) fn lower(s: &Scatter, tile: &Tile) -> Lowered {
    let number = Number::of(s.kernel.output.dtype);
    let (count, extent, behind) = (s.values.count, s.extent, s.values.behind);
    let (lines, places, all) = (tile.lines, tile.places, s.values.number());
    let slots = lines * places;
    // Whichever is contiguous in memory runs fastest: a line, or its neighbours.
    let fast_lines = behind > 1;
    let of_item = |item: &str, length: usize| {
        if fast_lines {
            (format!("{item} / {lines}u"), format!("{item} % {lines}u"))
        } else {
            (format!("{item} % {length}u"), format!("{item} / {length}u"))
        }
    };
    let slot = |h: usize| {
        if fast_lines {
            format!("(place{h} - low) * {lines}u + l{h}")
        } else {
            format!("l{h} * {places}u + place{h} - low")
        }
    };
    let items = count * lines;
    // All places are read before the first is looked at; those beyond the last are read as the last and left
    // out.
    let (mut find, mut take, mut claim, mut add) =
        (String::new(), String::new(), String::new(), String::new());
    for h in 0..HELD {
        let (i, l) = of_item(&format!("item{h}"), count);
        find += &format!(
            "        let item{h} = min(chunk + {skip}u + lane, {items}u - 1u);
        let i{h} = {i};
        let l{h} = {l};
        let line{h} = min(first_line + l{h}, {all}u - 1u);
        let before{h} = line{h} / {behind}u;
        let behind{h} = line{h} % {behind}u;
        let place{h} = place_at({index} + i{h} * {step});
",
            skip = h * SIZE,
            index = s.index.first(&format!("before{h}"), &format!("behind{h}")),
            step = s.index.step(),
        );
        take += &format!(
            "        let here{h} = chunk + {skip}u + lane < {items}u && first_line + l{h} < {all}u;
        var slot{h} = {OUTSIDE};
        var value{h} = {zero};
        if (here{h} && place{h} >= low && place{h} < high) {{
            slot{h} = {slot};
            value{h} = load_values({values} + i{h} * {step});
        }}
",
            skip = h * SIZE,
            zero = number.zero,
            slot = slot(h),
            values = s.values.first(&format!("before{h}"), &format!("behind{h}")),
            step = s.values.step(),
        );
        claim += &format!("            if (slot{h} != {OUTSIDE}) {{ atomicMin(&next[slot{h}], i{h}); }}\n");
        add += &format!(
            "            if (slot{h} != {OUTSIDE}) {{
                if (atomicLoad(&next[slot{h}]) == i{h}) {{
                    sums[slot{h}] += value{h};
                    atomicStore(&next[slot{h}], {OUTSIDE});
                    slot{h} = {OUTSIDE};
                }} else {{
                    left = true;
                }}
            }}
"
        );
    }
    let (place, l) = of_item("slot", places);
    let statements = format!(
        "    let first_line = group / {tiles}u * {lines}u;
    let low = group % {tiles}u * {places}u;
    let high = min(low + {places}u, {extent}u);
    for (var slot = lane; slot < {slots}u; slot += {SIZE}u) {{
        sums[slot] = {zero};
        atomicStore(&next[slot], {OUTSIDE});
    }}
    if (lane == 0u) {{ atomicStore(&waiting, 0u); }}
    workgroupBarrier();
    for (var chunk = 0u; chunk < {items}u; chunk += {held}u) {{
{find}{take}        loop {{
{claim}            workgroupBarrier();
            var left = false;
{add}            if (left) {{ atomicStore(&waiting, 1u); }}
            workgroupBarrier();
            if (lane == 0u) {{
                again = atomicLoad(&waiting);
                atomicStore(&waiting, 0u);
            }}
            if (workgroupUniformLoad(&again) == 0u) {{ break; }}
        }}
    }}
    for (var slot = lane; slot < {slots}u; slot += {SIZE}u) {{
        let place = low + {place};
        let line = first_line + {l};
        if (place < high && line < {all}u) {{
            let out = (line / {behind}u * {extent}u + place) * {behind}u + line % {behind}u;
            store_out(out, {sum});
        }}
    }}
",
        tiles = tile.tiles,
        zero = number.zero,
        held = HELD * SIZE,
        sum = number.stored("sums[slot]"),
    );
    let declarations = format!(
        "\
var<workgroup> sums: array<{name}, {slots}>;
// The position of the value that is to be added next.
var<workgroup> next: array<atomic<u32>, {slots}>;
var<workgroup> waiting: atomic<u32>;
var<workgroup> again: u32;

{place_at}",
        name = number.name,
        place_at = place_at(s.kernel.operands[0].dtype, extent),
    );
    let bindings = vec![operand(s.kernel, 0, "index"), operand(s.kernel, 1, "values"), output(s.kernel)];
    let groups = all.div_ceil(lines) * tile.tiles;
    Lowered { dispatches: vec![dispatch(groups, bindings, &declarations, &statements)], scratch: vec![] }
}
