//! Scattering by sorted lists of positions: a list is sorted by place, stably; then one invocation a sum
//! walks through the values of its place. A list often serves a whole slab: all columns of a table's
//! gradient.
//!
//! Places that many values meet (the padding of a batch of texts) would keep one invocation busy for long. So
//! the list is also cut into blocks, and the sums of blocks with one place only are made in between; where all places
//! have many values, the sums of all parts of blocks are.

use super::element_type::{Number, place_at};
use super::scatter::Scatter;
use super::scatter_radix_sort::{BEGINS, Lists, SORTED};
use super::scatter_segmented_reduce;
use super::workgroup::{POSITIONS, dispatch_each, operand, output, scratch_in, scratch_out};
use crate::dispatch::{Binding, Dispatch, Lowered};

/// The scratch memory behind those of the lists: sums of blocks.
pub(super) const BLOCKS: usize = 2;

pub(super) struct Sorted<'a> {
    pub s: &'a Scatter<'a>,
    pub lists: Lists,
    pub number: Number,
    /// Positions of a block; none if there are no blocks.
    block: Option<usize>,
    /// Neighbouring columns that an invocation sums.
    pub width: usize,
}

pub(super) fn lower(s: &Scatter, lists: Lists) -> Lowered {
    let number = Number::of(s.kernel.output.dtype);
    let count = s.values.count;
    let block = (count as f64).sqrt() as usize;
    let block = (count >= 256).then(|| block.next_power_of_two());
    let width = if lists == Lists::PerLine { 1 } else { s.width() };
    let sorted = Sorted { s, lists, number, block, width };
    let mut scratch = lists.scratch(s);
    let mut dispatches = vec![lists.sort(s)];
    if let Some(length) = scatter_segmented_reduce::length(count, s.extent) {
        scratch.push(sorted.part_sums(length) as u64 * sorted.number.size);
        dispatches.extend([sorted.sum_parts(length), sorted.add_parts(length)]);
        return Lowered { dispatches, scratch };
    }
    if let Some(block) = block {
        let sums = s.values.before * (count / block) * s.values.behind;
        scratch.push(sums as u64 * sorted.number.size);
        dispatches.push(sorted.blocks(block));
    }
    dispatches.push(sorted.sums());
    Lowered { dispatches, scratch }
}

impl Sorted<'_> {
    /// The sums of blocks that meet one place only. The others are never read.
    fn blocks(&self, block: usize) -> Dispatch {
        let s = self.s;
        let (count, behind) = (s.values.count, s.values.behind);
        let (columns, number) = (behind / self.width, count / block);
        let statements = format!(
            "    let behind = at % {columns}u * {width}u;
    let block = at / {columns}u % {number}u;
    let before = at / {slab}u;
    let list = {list};
    let begin = list * {count}u + block * {block}u;
    if ((block + 1u) * {block}u > u32(load_begins(list * {stride}u + {extent}u))) {{ return; }}
    let index = {index};
    let first = place_at(index + u32(load_sorted(begin)) * {step});
    let last = place_at(index + u32(load_sorted(begin + {block}u - 1u)) * {step});
    if (first != last) {{ return; }}
    let sum = sum_of(begin, begin + {block}u, {values}, {zero});
    {store}(at * {width}u, sum);
",
            width = self.width,
            slab = columns * number,
            list = self.lists.of_line(s),
            stride = s.extent + 1,
            extent = s.extent,
            index = s.index.first("before", "behind"),
            step = s.index.step(),
            values = s.values.first("before", "behind"),
            zero = self.zero(),
            store = if self.width == 4 { "store4_blocks" } else { "store_blocks" },
        );
        let bindings = vec![
            operand(s.kernel, 0, "index"),
            self.wide(operand(s.kernel, 1, "values")),
            scratch_in(SORTED, "sorted", POSITIONS),
            scratch_in(BEGINS, "begins", POSITIONS),
            self.wide(scratch_out(BLOCKS, "blocks", self.number.scratch)),
        ];
        let declarations = format!("{}\n{}", place_at(s.kernel.operands[0].dtype, s.extent), self.sum_of());
        dispatch_each(s.values.before * number * columns, bindings, &declarations, &statements)
    }

    fn sums(&self) -> Dispatch {
        let s = self.s;
        let (count, extent, behind) = (s.values.count, s.extent, s.values.behind);
        let columns = behind / self.width;
        let mut bindings = vec![
            self.wide(operand(s.kernel, 1, "values")),
            scratch_in(SORTED, "sorted", POSITIONS),
            scratch_in(BEGINS, "begins", POSITIONS),
            self.wide(output(s.kernel)),
        ];
        let zero = self.zero();
        let sum = match self.block {
            None => format!("let sum = sum_of(start + begin, start + end, values, {zero});"),
            Some(block) => {
                bindings.push(self.wide(scratch_in(BLOCKS, "blocks", self.number.scratch)));
                let load = if self.width == 4 { "load4_blocks" } else { "load_blocks" };
                let at =
                    format!("{load}((before * {blocks}u + b) * {behind}u + behind)", blocks = count / block);
                format!(
                    "// Where whole blocks begin and end, if there are any.
    var whole = (begin + {up}u) / {block}u;
    var rest = end / {block}u;
    if (whole >= rest) {{
        whole = 0u;
        rest = 0u;
    }}
    let head = select(end, whole * {block}u, rest > 0u);
    var sum = sum_of(start + begin, start + head, values, {zero});
    for (var b = whole; b < rest; b++) {{ sum += {at}; }}
    if (rest > 0u) {{ sum = sum_of(start + rest * {block}u, start + end, values, sum); }}",
                    up = block - 1,
                )
            }
        };
        let statements = format!(
            "    let behind = at % {columns}u * {width}u;
    let place = at / {columns}u % {extent}u;
    let before = at / {slab}u;
    let list = {list};
    let start = list * {count}u;
    let begin = u32(load_begins(list * {stride}u + place));
    let end = u32(load_begins(list * {stride}u + place + 1u));
    let values = {values};
    {sum}
    {store}(at * {width}u, {stored});
",
            width = self.width,
            slab = columns * extent,
            list = self.lists.of_line(s),
            stride = extent + 1,
            values = s.values.first("before", "behind"),
            store = if self.width == 4 { "store4_out" } else { "store_out" },
            stored = self.number.stored("sum"),
        );
        dispatch_each(s.values.before * extent * columns, bindings, &self.sum_of(), &statements)
    }

    /// The type of a sum, or of four.
    fn lanes(&self) -> String {
        let name = self.number.name;
        if self.width == 4 { format!("vec4<{name}>") } else { name.to_string() }
    }

    pub fn zero(&self) -> String {
        if self.width == 4 {
            format!("{}({})", self.lanes(), self.number.zero)
        } else {
            self.number.zero.into()
        }
    }

    pub fn wide(&self, binding: Binding) -> Binding {
        Binding { width: self.width as u32, ..binding }
    }

    /// `sum_of(begin, end, values, sum)` adds the values of a piece of the sorted lists to a sum, in order. Four
    /// are read at a time: their positions do not wait for each other.
    pub fn sum_of(&self) -> String {
        let load = if self.width == 4 { "load4_values" } else { "load_values" };
        let value =
            |n: usize| format!("{load}(values + u32(load_sorted(at + {n}u)) * {})", self.s.values.step());
        format!(
            "\
fn sum_of(begin: u32, end: u32, values: u32, start: {lanes}) -> {lanes} {{
    var sum = start;
    var at = begin;
    for (; at + 4u <= end; at += 4u) {{
        let value0 = {};
        let value1 = {};
        let value2 = {};
        let value3 = {};
        sum += value0;
        sum += value1;
        sum += value2;
        sum += value3;
    }}
    for (; at < end; at++) {{ sum += {}; }}
    return sum;
}}
",
            value(0),
            value(1),
            value(2),
            value(3),
            value(0),
            lanes = self.lanes(),
        )
    }
}
