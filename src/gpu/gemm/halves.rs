//! f32 operands as pairs of halves. Every lane (row of A, column of B) is scaled by the power of two that
//! brings its largest magnitude to 2¹⁴ … 2¹⁵; an element is then a half, and what that one leaves of it as
//! another half: 22 bits. One dispatch finds the largest magnitudes of both operands, a second one splits.

use super::product::{Layout, Product, Source, Strided};
use super::spread::Unit;
use super::wgsl::{Digits, indented, main, sum, times, unsigned};
use crate::dtype::DType;
use crate::gpu::dispatch::{Binding, Dispatch, Lane, Lowered, Memory};
use std::fmt::Write;

const THREADS: usize = 256;

/// Units that a thread splits, and that it has on their way while it looks for the largest.
const UNITS: usize = 8;

/// Parts of a lane in which the largest are looked for, at most, and elements that deserve a part.
const PARTS: usize = 16;
const PART: usize = 512;

/// The exponent that the largest element of a lane gets: halves end at 2¹⁶, and what is lost under their
/// smallest is then 2⁻²⁸ of the largest at most.
const TOP: i32 = 14;

/// What is added to exponents in the bits of an f32, and the least that scales are made for: with less, they
/// and their inverses would not be normal numbers.
const BIAS: i32 = 127;
const LEAST: i32 = 15;

/// An operand that is split.
struct Splitter<'s> {
    name: &'static str,
    packed: &'static str,
    source: &'s Source,
    strided: &'s Strided,
    /// Items of its own: one where all share it.
    items: usize,
    lanes: usize,
    k: usize,
    /// Halves and then rests that follow each other: what a step of the product takes.
    depth: usize,
    /// What a thread takes at once, and whether with one load.
    unit: Unit,
    wide: bool,
    /// Threads along lanes and along k, and whether neighbours are along k.
    threads: [usize; 2],
    k_first: bool,
}

/// Where the scales of rows and columns are.
#[derive(Clone, Debug)]
pub(super) struct Scales {
    pub binding: Binding,
    rows: String,
    columns: String,
    last_column: usize,
}

impl Scales {
    /// Declares `value`, vec4 `sums` of row `m` and columns from `n` on without their scales. These may be
    /// out of the range of numbers together, though the result is not: so they are applied in two halves.
    pub fn apply(&self, sums: &str) -> String {
        format!(
            "let scale = load4_scales({} + min(n, {}u)) + load_scales({} + m);
let scale_half = scale >> vec4<u32>(1u);
let scale_rest = scale - scale_half;
let value = {sums} * bitcast<vec4<f32>>((scale_half + 127) << vec4<u32>(23u))
    * bitcast<vec4<f32>>((scale_rest + 127) << vec4<u32>(23u));
",
            self.columns, self.last_column, self.rows
        )
    }

    /// The same of one sum, of row `m` and column `n`.
    pub fn apply_one(&self, sum: &str) -> String {
        format!(
            "let scale = load_scales({} + n) + load_scales({} + m);
let scale_half = scale >> 1u;
let scale_rest = scale - scale_half;
let value = {sum} * bitcast<f32>((scale_half + 127) << 23u) * bitcast<f32>((scale_rest + 127) << 23u);
",
            self.columns, self.rows
        )
    }
}

impl<'s> Splitter<'s> {
    fn new(
        [name, packed]: [&'static str; 2],
        source: &'s Source,
        items: usize,
        lanes: usize,
        k: usize,
        depth: usize,
    ) -> Option<Splitter<'s>> {
        let Layout::Strided(strided) = &source.layout else { return None };
        let items = if strided.items.stride() == Some(0) { 1 } else { items };
        let (unit, wide, threads, k_first) = if strided.quads_along_k(lanes) {
            (Unit::QuadK, true, [8, 32], true)
        } else if strided.quads_along_lanes(lanes) {
            (Unit::QuadLane, true, [16, 16], false)
        } else if strided.k_is_inner() {
            (Unit::QuadK, false, [8, 32], true)
        } else {
            (Unit::QuadK, false, [32, 8], false)
        };
        Some(Splitter { name, packed, source, strided, items, lanes, k, depth, unit, wide, threads, k_first })
    }

    /// Elements of a lane, with zeros at the end.
    fn padded(&self) -> usize {
        self.k.next_multiple_of(self.depth)
    }

    /// Scales of an item.
    fn row(&self) -> usize {
        self.lanes.next_multiple_of(4)
    }

    /// Numbers of the operand as pairs of halves.
    fn numbers(&self) -> usize {
        self.items * self.lanes * 2 * self.padded()
    }

    /// Lanes and ks that a workgroup takes at once.
    fn tile(&self) -> [usize; 2] {
        [self.threads[0] * self.unit.lanes(), self.threads[1] * self.unit.depth()]
    }

    fn lane_tiles(&self) -> usize {
        self.lanes.div_ceil(self.tile()[0])
    }

    /// Turns of a workgroup that looks for the largest, and parts of a lane.
    fn turns(&self) -> (usize, usize) {
        let parts = (self.k / PART).clamp(1, PARTS);
        let turns = self.k.div_ceil(parts).div_ceil(self.tile()[1]).next_multiple_of(UNITS);
        (turns, self.k.div_ceil(turns * self.tile()[1]))
    }

    fn groups(&self, deep: usize) -> u64 {
        (self.items * self.lane_tiles() * deep) as u64
    }

    /// Declares `item`, `part`, `lane`, `k_thread`, and `base`, where the lane begins.
    fn begin(&self, parts: usize) -> String {
        let ([along_lanes, along_k], tiles) = (self.threads, self.lane_tiles());
        let (lane, k) = if self.k_first {
            (format!("tid / {along_k}u"), format!("tid % {along_k}u"))
        } else {
            (format!("tid % {along_lanes}u"), format!("tid / {along_lanes}u"))
        };
        let base = [
            unsigned(self.strided.offset),
            self.strided.items.position("item"),
            times(&format!("min(lane, {}u)", self.lanes - self.unit.lanes()), self.strided.lane),
        ];
        format!(
            "let part = group % {parts}u;
let item = group / {}u;
let lane_thread = {lane};
let k_thread = {k};
let lane = group / {parts}u % {tiles}u * {}u + lane_thread * {}u;
let base = {};
",
            parts * tiles,
            self.tile()[0],
            self.unit.lanes(),
            sum(&base)
        )
    }

    /// Declares `value{j}`, the four elements from `k{j}` on, or what stands before the end.
    fn fetch(&self, j: usize) -> String {
        let (name, last) = (self.name, self.k - if self.wide { self.unit.depth() } else { 1 });
        let place = |k: &str| sum(&["base".into(), self.strided.k.position(k)]);
        if self.wide {
            return format!(
                "let near{j} = min(k{j}, {last}u);\nlet value{j} = load4_{name}({});\n",
                place(&format!("near{j}"))
            );
        }
        let mut text = String::new();
        for s in 0..4 {
            let _ = writeln!(text, "let near{j}_{s} = min(k{j} + {s}u, {last}u);");
        }
        let one = |s: usize| format!("load_{name}({})", place(&format!("near{j}_{s}")));
        let all: Vec<String> = (0..4).map(one).collect();
        let _ = writeln!(text, "let value{j} = vec4<f32>({});", all.join(", "));
        text
    }

    /// The function that finds the largest magnitudes, as the bits of numbers: these are in order, and what
    /// is not finite is above all else.
    fn largest(&self, first: usize) -> String {
        let ((turns, parts), [along_lanes, along_k]) = (self.turns(), self.threads);
        let wide = self.tile()[1];
        let mut text = self.begin(parts);
        let mut turn = String::new();
        for j in 0..UNITS {
            let at = sum(&[
                format!("part * {}u", turns * wide),
                format!("(turn + {j}u) * {wide}u"),
                times("k_thread", self.unit.depth() as i64),
            ]);
            let _ = writeln!(turn, "let k{j} = {at};");
            turn += &self.fetch(j);
        }
        for j in 0..UNITS {
            let _ = writeln!(turn, "most = max(most, bitcast<vec4<i32>>(value{j}) & vec4<i32>(0x7fffffff));");
        }
        let _ = write!(
            text,
            "var most: vec4<i32>;
for (var turn = 0u; turn < {turns}u; turn += {UNITS}u) {{
{}}}
found[k_thread * {along_lanes}u + lane_thread] = most;
workgroupBarrier();
",
            indented(&turn, 1)
        );
        let mut half = along_k / 2;
        while half > 0 {
            let other = half * along_lanes;
            let _ = write!(
                text,
                "if (tid < {other}u) {{ found[tid] = max(found[tid], found[tid + {other}u]); }}
workgroupBarrier();
"
            );
            half /= 2;
        }
        let at = format!("{first}u + (part * {}u + item) * {}u + lane", self.items, self.row());
        let store = if self.unit == Unit::QuadLane {
            format!("store4_largest({at}, all);")
        } else {
            format!("store_largest({at}, max(max(all.x, all.y), max(all.z, all.w)));")
        };
        // Neighbours along k are not those that have the results: lanes are counted anew.
        let _ = write!(
            text,
            "if (tid < {along_lanes}u) {{
    let all = found[tid];
    let lane = group / {parts}u % {}u * {}u + tid * {}u;
    if (lane < {}u) {{ {store} }}
}}
",
            self.lane_tiles(),
            self.tile()[0],
            self.unit.lanes(),
            self.lanes
        );
        self.function("largest", &text)
    }

    /// The function that splits.
    fn split(&self, largest: usize, scales: usize) -> String {
        let (packed, depth, padded) = (self.packed, self.depth, self.padded());
        let wide = self.tile()[1];
        // A scale a lane: one, or four.
        let (quad, ty, float, places) = if self.unit == Unit::QuadLane {
            ("4", "vec4<i32>", "vec4<f32>", "vec4<u32>(23u)")
        } else {
            ("", "i32", "f32", "23u")
        };
        let mut text = self.begin(self.k_tiles());
        let _ = writeln!(text, "if (lane >= {}u) {{ return; }}", self.lanes);
        for j in 0..UNITS {
            let at = sum(&[
                format!("(part * {UNITS}u + {j}u) * {wide}u"),
                times("k_thread", self.unit.depth() as i64),
            ]);
            let _ = writeln!(text, "let k{j} = {at};");
            text += &self.fetch(j);
        }
        let (_, parts) = self.turns();
        let (all, row) = (self.items * self.row(), self.row());
        let _ = write!(
            text,
            "var most: {ty};
for (var p = 0u; p < {parts}u; p++) {{
    most = max(most, load{quad}_largest({largest}u + p * {all}u + item * {row}u + lane));
}}
let exponent = max(most >> {places}, {ty}({LEAST}));
let scale = bitcast<{float}>(({ty}({}) - exponent) << {places});
if (part == 0u && k_thread == 0u) {{
    store{quad}_scales({scales}u + item * {row}u + lane, exponent - {ty}({}));
}}
",
            2 * BIAS + TOP,
            BIAS + TOP
        );
        let lanes = self.lanes;
        // The first half is rounded in the bits of the number: compilers take a number that is narrowed and
        // widened again for the number itself. What is not a number stays none in the rest.
        for j in 0..UNITS {
            let k = format!("k{j}");
            let line = format!("{k} / {depth}u * {}u + {k} % {depth}u", 2 * depth);
            let (at, rest) = if self.unit == Unit::QuadLane {
                (format!("(item * {}u + {line}) * {lanes}u + lane", 2 * padded), depth * lanes)
            } else {
                (format!("(item * {lanes}u + lane) * {}u + {line}", 2 * padded), depth)
            };
            let value = self.inside(j);
            let _ = write!(
                text,
                "if ({k} < {padded}u) {{
    let scaled = {value} * scale;
    let high = bitcast<vec4<f32>>((bitcast<vec4<u32>>(scaled) + 0x1000u) & vec4<u32>(0xffffe000u));
    let at = {at};
    store4_{packed}(at, vec4<f16>(high));
    store4_{packed}(at + {rest}u, vec4<f16>(scaled - high));
}}
"
            );
        }
        self.function("split", &text)
    }

    /// `value{j}` with zeros beyond the end.
    fn inside(&self, j: usize) -> String {
        let k = self.k;
        if self.padded() == k {
            format!("value{j}")
        } else if self.wide {
            format!("select(value{j}, vec4<f32>(), k{j} >= {k}u)")
        } else {
            let ks = format!("vec4<u32>(k{j}) + vec4<u32>(0u, 1u, 2u, 3u)");
            format!("select(value{j}, vec4<f32>(), {ks} >= vec4<u32>({k}u))")
        }
    }

    /// Workgroups along k that split.
    fn k_tiles(&self) -> usize {
        self.padded().div_ceil(self.tile()[1] * UNITS)
    }

    fn function(&self, verb: &str, text: &str) -> String {
        format!("fn {verb}_{}(group: u32, tid: u32) {{\n{}}}\n\n", self.name, indented(text, 1))
    }

    fn binding(&self) -> Binding {
        self.source.binding(self.name, Lane::F32, if self.wide { 4 } else { 1 })
    }

    /// What was made, as an operand.
    fn made(&self, scratch: usize, items: usize) -> Source {
        let (twice, lanes) = (2 * self.padded() as i64, self.lanes as i64);
        let (lane, k) = if self.unit == Unit::QuadLane { (1, lanes) } else { (twice, 1) };
        let item = if self.items == 1 { 0 } else { twice * lanes };
        let layout = Layout::Strided(Strided {
            offset: 0,
            items: Digits::line(items, item),
            lane,
            k: Digits::line(twice as usize, k),
        });
        Source { memory: Memory::Scratch(scratch), dtype: DType::F16, layout }
    }

    /// Where the scales of an item begin, after those before.
    fn item_scales(&self, first: usize) -> String {
        let item = if self.items == 1 { 0 } else { self.row() as i64 };
        sum(&[format!("{first}u"), times("item", item)])
    }
}

/// Numbers of both operands as pairs of halves.
pub(super) fn numbers(product: &Product, depth: usize) -> Option<[usize; 2]> {
    let [a, b] = splitters(product, depth)?;
    Some([a.numbers(), b.numbers()])
}

fn splitters(product: &Product, depth: usize) -> Option<[Splitter<'_>; 2]> {
    let k = product.steps.depth();
    Some([
        Splitter::new(["a", "packed_a"], &product.a, product.items, product.m, k, depth)?,
        Splitter::new(["b", "packed_b"], &product.b, product.items, product.n, k, depth)?,
    ])
}

/// Adds the dispatches that split both operands, `depth` elements of a lane at a time, and gives these as
/// operands of twice as many terms, and the scales.
pub(super) fn split(product: &Product, depth: usize, lowered: &mut Lowered) -> ([Source; 2], Scales) {
    let both = splitters(product, depth).expect("the operands are strided");
    let [a, b] = &both;
    let first = lowered.scratch.len();
    let parts = [a.turns().1, b.turns().1];
    let large = [a.items * a.row() * parts[0], b.items * b.row() * parts[1]];
    let small = [a.items * a.row(), b.items * b.row()];
    let bytes = [2 * a.numbers(), 2 * b.numbers(), 4 * (large[0] + large[1]), 4 * (small[0] + small[1])];
    lowered.scratch.extend(bytes.map(|bytes| bytes as u64));
    let scratch = |name, number: usize, dtype, lane, writes: bool| Binding {
        name,
        memory: Memory::Scratch(first + number),
        dtype,
        lane,
        width: 4,
        reads: !writes,
        writes,
    };
    let largest = |writes| scratch("largest", 2, DType::I32, Lane::I32, writes);
    let scales = |writes| scratch("scales", 3, DType::I32, Lane::I32, writes);
    let packed = |s: &Splitter, number| scratch(s.packed, number, DType::F16, Lane::F16, true);
    let either = |verb: &str, groups: [u64; 2]| {
        let text = format!(
            "if (group < {}u) {{
    {verb}_a(group, tid);
}} else {{
    {verb}_b(group - {}u, tid);
}}
",
            groups[0], groups[0]
        );
        (main(THREADS, groups[0] + groups[1], &text), groups[0] + groups[1])
    };
    let (text, groups) = either("largest", [a.groups(parts[0]), b.groups(parts[1])]);
    let found = format!("var<workgroup> found: array<vec4<i32>, {THREADS}>;\n\n");
    let body = found + &a.largest(0) + &b.largest(large[0]) + &text;
    let bindings = vec![a.binding(), b.binding(), largest(true)];
    lowered.dispatches.push(Dispatch { body, bindings, groups });
    let (text, groups) = either("split", [a.groups(a.k_tiles()), b.groups(b.k_tiles())]);
    let body = a.split(0, 0) + &b.split(large[0], small[0]) + &text;
    let bindings = vec![a.binding(), b.binding(), largest(false), packed(a, 0), packed(b, 1), scales(true)];
    lowered.dispatches.push(Dispatch { body, bindings, groups });
    let made = [a.made(first, product.items), b.made(first + 1, product.items)];
    let scales = Scales {
        binding: scales(false),
        rows: a.item_scales(0),
        columns: b.item_scales(small[0]),
        last_column: b.row() - 4,
    };
    (made, scales)
}
