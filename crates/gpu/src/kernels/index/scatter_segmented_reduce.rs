//! Sums of few places from sorted lists: the list is cut at multiples of a length and where places begin, so that
//! however many values a place has, an invocation adds few of them. Places add their parts in order.
//!
//! A place and the blocks that it reaches into make the parts: block `b` of place `p` is part `b + p`, since from one
//! part to the next either the place or the block is the next one.

use super::scatter_radix_sort::{BEGINS, SORTED};
use super::scatter_sorted::{BLOCKS, Sorted};
use super::workgroup::{POSITIONS, dispatch_each, operand, output, scratch_in, scratch_out};
use crate::dispatch::Dispatch;

/// Values a place, on average, that are worth it.
const MIN_VALUES_PER_PLACE: usize = 4;
/// The shortest blocks.
const MIN_SEGMENT: usize = 16;

/// Positions of a block, where places have many values.
pub(super) fn length(count: usize, extent: usize) -> Option<usize> {
    let length = ((count as f64).sqrt() as usize / 4).next_power_of_two().max(MIN_SEGMENT);
    (count >= MIN_SEGMENT * MIN_SEGMENT && count >= MIN_VALUES_PER_PLACE * extent).then_some(length)
}

impl Sorted<'_> {
    /// Parts of a list in blocks of `length`.
    fn parts(&self, length: usize) -> usize {
        self.s.values.count.div_ceil(length) + self.s.extent
    }

    /// How many sums of parts there are.
    pub fn part_sums(&self, length: usize) -> usize {
        self.s.values.before * self.parts(length) * self.s.values.behind
    }

    /// The sums of parts.
    pub fn sum_parts(&self, length: usize) -> Dispatch {
        let s = self.s;
        let (count, extent, parts) = (s.values.count, s.extent, self.parts(length));
        let columns = s.values.behind / self.width;
        let statements = format!(
            "    let behind = at % {columns}u * {width}u;
    let part = at / {columns}u % {parts}u;
    let before = at / {slab}u;
    let list = {list};
    let begins = list * {stride}u;
    var place = 0u;
    var beyond = {extent}u;
    while (beyond - place > 1u) {{
        let middle = (place + beyond) / 2u;
        if (u32(load_begins(begins + middle)) / {length}u + middle <= part) {{
            place = middle;
        }} else {{
            beyond = middle;
        }}
    }}
    let block = part - place;
    let begin = max(u32(load_begins(begins + place)), block * {length}u);
    let end = min(u32(load_begins(begins + place + 1u)), (block + 1u) * {length}u);
    if (begin >= end) {{ return; }}
    let start = list * {count}u;
    let sum = sum_of(start + begin, start + end, {values}, {zero});
    {store}(at * {width}u, sum);
",
            width = self.width,
            slab = columns * parts,
            list = self.lists.of_line(s),
            stride = extent + 1,
            values = s.values.first("before", "behind"),
            zero = self.zero(),
            store = if self.width == 4 { "store4_blocks" } else { "store_blocks" },
        );
        let bindings = vec![
            self.wide(operand(s.kernel, 1, "values")),
            scratch_in(SORTED, "sorted", POSITIONS),
            scratch_in(BEGINS, "begins", POSITIONS),
            self.wide(scratch_out(BLOCKS, "blocks", self.number.scratch)),
        ];
        dispatch_each(s.values.before * parts * columns, bindings, &self.sum_of(), &statements)
    }

    /// The sums of the parts of each place.
    pub fn add_parts(&self, length: usize) -> Dispatch {
        let s = self.s;
        let (extent, behind, parts) = (s.extent, s.values.behind, self.parts(length));
        let columns = behind / self.width;
        let load = if self.width == 4 { "load4_blocks" } else { "load_blocks" };
        let part = |n: usize| format!("{load}((before * {parts}u + part + {n}u) * {behind}u + behind)");
        let statements = format!(
            "    let behind = at % {columns}u * {width}u;
    let place = at / {columns}u % {extent}u;
    let before = at / {slab}u;
    let begins = ({list}) * {stride}u + place;
    let begin = u32(load_begins(begins));
    let end = u32(load_begins(begins + 1u));
    var sum = {zero};
    if (begin < end) {{
        var part = begin / {length}u + place;
        let beyond = (end - 1u) / {length}u + place + 1u;
        for (; part + 4u <= beyond; part += 4u) {{
            let part0 = {part0};
            let part1 = {part1};
            let part2 = {part2};
            let part3 = {part3};
            sum += part0;
            sum += part1;
            sum += part2;
            sum += part3;
        }}
        for (; part < beyond; part++) {{ sum += {part0}; }}
    }}
    {store}(at * {width}u, {stored});
",
            width = self.width,
            slab = columns * extent,
            list = self.lists.of_line(s),
            stride = extent + 1,
            zero = self.zero(),
            part0 = part(0),
            part1 = part(1),
            part2 = part(2),
            part3 = part(3),
            store = if self.width == 4 { "store4_out" } else { "store_out" },
            stored = self.number.stored("sum"),
        );
        let bindings = vec![
            scratch_in(BEGINS, "begins", POSITIONS),
            self.wide(scratch_in(BLOCKS, "blocks", self.number.scratch)),
            self.wide(output(s.kernel)),
        ];
        dispatch_each(s.values.before * extent * columns, bindings, "", &statements)
    }
}
