//! Running sums of lines. Many short lines: one invocation each. Otherwise a workgroup walks through a line,
//! or through a few that are neighbours in memory, in chunks: every invocation sums a few elements of its
//! own, the workgroup scans those sums, and the total is carried on. A few long lines are cut into parts that
//! are first summed, so that there is work for every core.

use super::element_type::Number;
use super::view::Lines;
use super::workgroup::{SIZE, dispatch, dispatch_each, operand, output, scratch_in, scratch_out};
use crate::dispatch::{Dispatch, Lowered};
use volta_ir::plan::kernel::NativeKernel;

/// Elements that an invocation sums before the workgroup scans.
const OWN_ELEMENTS: usize = 8;
/// Lines side by side that a workgroup takes.
const COLUMNS: usize = 32;
/// Workgroups that keep an adapter busy.
const BUSY_WORKGROUPS: usize = 256;

pub(super) fn lower(kernel: &NativeKernel, axis: usize) -> Lowered {
    let lines = Lines::of(&kernel.operands[0], axis);
    let number = Number::of(kernel.operands[0].dtype);
    let many = lines.number() >= 8192;
    if lines.count <= OWN_ELEMENTS || (many && (lines.behind >= COLUMNS || lines.count <= 4 * OWN_ELEMENTS)) {
        return Lowered { dispatches: vec![serial(kernel, &lines, &number)], scratch: vec![] };
    }
    let scan = Scan::of(kernel, lines, number);
    if scan.parts == 1 {
        return Lowered { dispatches: vec![scan.sums()], scratch: vec![] };
    }
    let scratch = (scan.parts * scan.lines.number()) as u64 * scan.number.size;
    Lowered { dispatches: vec![scan.totals(), scan.sums()], scratch: vec![scratch] }
}

fn serial(kernel: &NativeKernel, lines: &Lines, number: &Number) -> Dispatch {
    let (count, behind) = (lines.count, lines.behind);
    let statements = format!(
        "    let before = at / {behind}u;
    let behind = at % {behind}u;
    let first = {first};
    let out = before * {count}u * {behind}u + behind;
    var sum = {zero};
    for (var i = 0u; i < {count}u; i++) {{
        sum += load_x(first + i * {step});
        store_out(out + i * {behind}u, {sum});
    }}
",
        first = lines.first("before", "behind"),
        step = lines.step(),
        zero = number.zero,
        sum = number.stored("sum"),
    );
    dispatch_each(lines.number(), vec![operand(kernel, 0, "x"), output(kernel)], "", &statements)
}

/// The workgroups: `columns` lines side by side, `rows` invocations along each, and `parts` of a line.
struct Scan<'a> {
    kernel: &'a NativeKernel,
    lines: Lines<'a>,
    number: Number,
    columns: usize,
    rows: usize,
    parts: usize,
    /// Elements of a part: whole chunks.
    part: usize,
}

impl<'a> Scan<'a> {
    fn of(kernel: &'a NativeKernel, lines: Lines<'a>, number: Number) -> Scan<'a> {
        let columns = lines.behind.next_power_of_two().min(COLUMNS);
        let rows = SIZE / columns;
        let (chunk, groups) = (rows * OWN_ELEMENTS, lines.number().div_ceil(columns));
        let parts = (BUSY_WORKGROUPS / groups).min(lines.count / (4 * chunk)).max(1);
        let part = lines.count.div_ceil(parts).next_multiple_of(chunk);
        let parts = lines.count.div_ceil(part);
        Scan { kernel, lines, number, columns, rows, parts, part }
    }

    /// The names that both dispatches begin with.
    fn locate(&self) -> String {
        format!(
            "    let row = lane / {columns}u;
    let column = group / {parts}u * {columns}u + lane % {columns}u;
    let here = column < {lines}u;
    let line = min(column, {lines}u - 1u);
    let part = group % {parts}u;
    let begin = part * {part}u;
    let end = min(begin + {part}u, {count}u);
    let before = line / {behind}u;
    let behind = line % {behind}u;
    let first = {first};
",
            columns = self.columns,
            parts = self.parts,
            lines = self.lines.number(),
            part = self.part,
            count = self.lines.count,
            behind = self.lines.behind,
            first = self.lines.first("before", "behind"),
        )
    }

    fn groups(&self) -> usize {
        self.lines.number().div_ceil(self.columns) * self.parts
    }

    fn shared(&self) -> String {
        format!("var<workgroup> totals: array<{}, {SIZE}>;\n", self.number.name)
    }

    /// The sum of every part.
    fn totals(&self) -> Dispatch {
        let statements = format!(
            "{locate}    var sum = {zero};
    if (here) {{
        for (var i = begin + row; i < end; i += {rows}u) {{
            sum += load_x(first + i * {step});
        }}
    }}
    totals[lane] = sum;
    workgroupBarrier();
    for (var half = {half}u; half > 0u; half >>= 1u) {{
        if (row < half) {{ totals[lane] += totals[lane + half * {columns}u]; }}
        workgroupBarrier();
    }}
    if (here && row == 0u) {{ store_parts(part * {lines}u + line, totals[lane]); }}
",
            locate = self.locate(),
            zero = self.number.zero,
            rows = self.rows,
            step = self.lines.step(),
            half = self.rows / 2,
            columns = self.columns,
            lines = self.lines.number(),
        );
        let bindings = vec![operand(self.kernel, 0, "x"), scratch_out(0, "parts", self.number.scratch)];
        dispatch(self.groups(), bindings, &self.shared(), &statements)
    }

    /// The running sums, from the totals of earlier parts on.
    fn sums(&self) -> Dispatch {
        let (mut loads, mut stores) = (String::new(), String::new());
        let step = self.lines.step();
        let zero = self.number.zero;
        // All are read before the first is added; those beyond the end are read at the end and left out.
        for i in 0..OWN_ELEMENTS {
            let at = format!("min(start + {i}u, end - 1u)");
            loads += &format!("        let x{i} = load_x(first + {at} * {step});\n");
        }
        for i in 0..OWN_ELEMENTS {
            let inside = format!("here && start + {i}u < end");
            loads += &format!("        sum += select({zero}, x{i}, {inside});\n");
            loads += &format!("        let sum{i} = sum;\n");
            let at = format!("out + (start + {i}u) * {}u", self.lines.behind);
            let value = self.number.stored(&format!("base + sum{i}"));
            stores += &format!("        if ({inside}) {{ store_out({at}, {value}); }}\n");
        }
        let mut bindings = vec![operand(self.kernel, 0, "x"), output(self.kernel)];
        let mut earlier = String::new();
        if self.parts > 1 {
            bindings.push(scratch_in(0, "parts", self.number.scratch));
            earlier = format!(
                "    if (here) {{
        for (var p = 0u; p < part; p++) {{ carry += load_parts(p * {}u + line); }}
    }}
",
                self.lines.number()
            );
        }
        let statements = format!(
            "{locate}    let out = before * {slab}u + behind;
    var carry = {zero};
{earlier}    for (var chunk = begin; chunk < end; chunk += {chunk}u) {{
        let start = chunk + row * {OWN_ELEMENTS}u;
        var sum = {zero};
{loads}        totals[lane] = sum;
        workgroupBarrier();
        for (var apart = 1u; apart < {rows}u; apart <<= 1u) {{
            var earlier = {zero};
            if (row >= apart) {{ earlier = totals[lane - apart * {columns}u]; }}
            workgroupBarrier();
            totals[lane] = earlier + totals[lane];
            workgroupBarrier();
        }}
        var base = carry;
        if (row > 0u) {{ base += totals[lane - {columns}u]; }}
        carry += totals[{last}u + lane % {columns}u];
{stores}        workgroupBarrier();
    }}
",
            locate = self.locate(),
            slab = self.lines.count * self.lines.behind,
            chunk = self.rows * OWN_ELEMENTS,
            rows = self.rows,
            columns = self.columns,
            last = (self.rows - 1) * self.columns,
        );
        dispatch(self.groups(), bindings, &self.shared(), &statements)
    }
}
