//! Scattering not so many rows: a workgroup for every place looks at all positions, notes those that name the place as bits,
//! and adds their values up, in order. There is nothing to sort, so one dispatch does it all.

use super::element_type::{Number, place_at};
use super::scatter::Scatter;
use super::workgroup::{SIZE, dispatch, operand, output};
use crate::dispatch::{Binding, Lowered};

/// Positions, workgroups, and positions that all of these look at, at most: beyond that, sorting is less work.
const MAX_POSITIONS: usize = 1024;
const MAX_GROUPS: usize = 1 << 14;
const MAX_LOOKS: usize = 1 << 22;
/// Columns, or fours of them, that a workgroup sums.
const MAX_ACROSS: usize = 64;
/// Values that are on their way together.
const VALUES_IN_FLIGHT: usize = 4;

/// Invocations side by side, and workgroups for all columns.
fn columns(s: &Scatter) -> (usize, usize) {
    let columns = s.values.behind / s.width();
    let across = columns.next_power_of_two().min(MAX_ACROSS);
    (across, columns.div_ceil(across))
}

/// Whether that is less work than sorting, if all lines behind the axis have the same places.
pub(super) fn suits(s: &Scatter) -> bool {
    let groups = s.values.before * s.extent * columns(s).1;
    s.values.count <= MAX_POSITIONS && groups <= MAX_GROUPS && groups * s.values.count <= MAX_LOOKS
}

pub(super) fn lower(s: &Scatter) -> Lowered {
    let (number, width, (across, chunks)) = (Number::of(s.kernel.output.dtype), s.width(), columns(s));
    let (count, extent, behind) = (s.values.count, s.extent, s.values.behind);
    let (words, teams) = (count.div_ceil(32), SIZE / across);
    let (lanes, quad) =
        if width == 4 { (format!("vec4<{}>", number.name), "4") } else { (number.name.to_string(), "") };
    let declarations = format!(
        "\
var<workgroup> named: array<atomic<u32>, {words}>;
var<workgroup> sums: array<{lanes}, {SIZE}>;

{}",
        place_at(s.kernel.operands[0].dtype, extent)
    );
    let statements = format!(
        "    let place = group / {chunks}u % {extent}u;
    let before = group / {slab}u;
    let column = group % {chunks}u * {across}u + lane % {across}u;
    let behind = min(column * {width}u, {last}u);
    let team = lane / {across}u;
    let index = {index};
    let values = {values};
    for (var w = lane; w < {words}u; w += {SIZE}u) {{ atomicStore(&named[w], 0u); }}
    workgroupBarrier();
    for (var i = lane; i < {count}u; i += {SIZE}u) {{
        if (place_at(index + i * {index_step}) == place) {{ atomicOr(&named[i / 32u], 1u << (i % 32u)); }}
    }}
    workgroupBarrier();
    // Every team has a part of the positions.
    var sum: {lanes};
    for (var w = team * {share}u; w < min((team + 1u) * {share}u, {words}u); w++) {{
        var bits = atomicLoad(&named[w]);
        while (bits != 0u) {{
{take}{add}        }}
    }}
    sums[lane] = sum;
    workgroupBarrier();
    if (lane < {across}u && column < {columns}u) {{
        for (var other = 1u; other < {teams}u; other++) {{ sum += sums[other * {across}u + lane]; }}
        store{quad}_out((before * {extent}u + place) * {behind}u + behind, {stored});
    }}
",
        slab = chunks * extent,
        last = behind - width,
        index = s.index.first("before", "0u"),
        values = s.values.first("before", "behind"),
        index_step = s.index.step(),
        share = words.div_ceil(teams),
        take = each(|n| take(s, n, &lanes, quad)),
        add = each(|n| format!("            sum += value{n};\n")),
        columns = behind / width,
        stored = number.stored("sum"),
    );
    let wide = |binding: Binding| Binding { width: width as u32, ..binding };
    let bindings =
        vec![operand(s.kernel, 0, "index"), wide(operand(s.kernel, 1, "values")), wide(output(s.kernel))];
    let groups = s.values.before * extent * chunks;
    Lowered { dispatches: vec![dispatch(groups, bindings, &declarations, &statements)], scratch: vec![] }
}

fn each(text: impl Fn(usize) -> String) -> String {
    (0..VALUES_IN_FLIGHT).map(text).collect()
}

/// Declares `value{n}`, of the next position among `bits`; nought if there is none any more. The nought is written out: Chromium's compiler
/// leaves what a variable without one had in the loop's last iteration.
fn take(s: &Scatter, n: usize, lanes: &str, quad: &str) -> String {
    format!(
        "            var value{n} = {lanes}();
            if (bits != 0u) {{
                value{n} = load{quad}_values(values + (w * 32u + firstTrailingBit(bits)) * {step});
                bits &= bits - 1u;
            }}
",
        step = s.values.step()
    )
}
