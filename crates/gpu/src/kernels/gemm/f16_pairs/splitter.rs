//! An operand that is split, and the functions that do it.

use crate::dispatch::{AbsMax, Binding, ComputeType, Memory};
use crate::kernels::gemm::product::{GemmOperand, OperandLayout, Strided};
use crate::kernels::gemm::scales;
use crate::kernels::gemm::thread_mapping::Unit;
use crate::kernels::gemm::wgsl::{Digits, indented, sum, times, unsigned};
use std::fmt::Write;
use volta_ir::dtype::DType;

pub(super) const THREADS: usize = 256;

/// Units that a thread splits, and that it has on their way while it looks for the largest.
const UNITS: usize = 8;

/// Parts of a lane in which the largest are looked for, at most, and elements that deserve a part.
const PARTS: usize = 16;
const PART: usize = 512;

/// Parts whose largest are on their way together.
const PARTS_IN_FLIGHT: usize = 8;

/// Workgroups under which twice as many parts are worth it.
const BUSY_WORKGROUPS: usize = 128;

/// Threads of a subgroup, which has a short lane in its registers.
const SUBGROUP: usize = 32;

/// How an operand becomes f16 pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The largest of every lane are looked for, and then elements are split.
    Twice,
    /// Elements are split by subgroups that have whole lanes in registers.
    Once,
    /// The largest are looked for, and scales made of them: the product splits what it reads.
    Later,
}

/// An operand that is split.
pub(super) struct OperandSplitter<'s> {
    pub(super) name: &'static str,
    pub(super) packed: &'static str,
    noted: &'static str,
    source: &'s GemmOperand,
    strided: &'s Strided,
    /// Items of its own: one where all share it.
    pub(super) items: usize,
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
    pub(super) variant: Way,
}

impl<'s> OperandSplitter<'s> {
    pub(super) fn new(
        [name, packed, noted]: [&'static str; 3],
        source: &'s GemmOperand,
        items: usize,
        lanes: usize,
        k: usize,
        depth: usize,
        later: bool,
    ) -> Option<OperandSplitter<'s>> {
        let OperandLayout::Strided(strided) = &source.layout else { return None };
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
        let short = unit == Unit::QuadK && wide && k <= UNITS * threads[1] * unit.depth();
        let variant = if later {
            Way::Later
        } else if short {
            Way::Once
        } else {
            Way::Twice
        };
        let splitter = OperandSplitter {
            name,
            packed,
            noted,
            source,
            strided,
            items,
            lanes,
            k,
            depth,
            unit,
            wide,
            threads,
            k_first,
            variant,
        };
        Some(splitter)
    }

    /// Whether the largest of its lanes are yet to be found before it is split.
    pub(super) fn looks(&self) -> bool {
        self.variant != Way::Once && self.source.largest.is_none()
    }

    /// The largest that are known, if they are asked for.
    pub(super) fn known(&self) -> Option<Binding> {
        let largest = self.source.largest.filter(|_| self.variant != Way::Once)?;
        Some(Binding {
            name: self.noted,
            memory: largest.memory,
            dtype: DType::I32,
            lane: ComputeType::I32,
            width: 4,
            reads: true,
            writes: false,
        })
    }

    /// Elements of a lane, with zeros at the end.
    fn padded(&self) -> usize {
        self.k.next_multiple_of(self.depth)
    }

    /// Scales of an item.
    pub(super) fn row(&self) -> usize {
        AbsMax::list(self.lanes)
    }

    /// Numbers of the operand as f16 pairs, where these are stored.
    pub(super) fn numbers(&self) -> usize {
        if self.variant == Way::Later { 0 } else { self.items * self.lanes * 2 * self.padded() }
    }

    /// Lanes and ks that a workgroup takes at once.
    fn tile(&self) -> [usize; 2] {
        [self.threads[0] * self.unit.lanes(), self.threads[1] * self.unit.depth()]
    }

    pub(super) fn lane_tiles(&self) -> usize {
        self.lanes.div_ceil(self.tile()[0])
    }

    /// Turns of a workgroup that looks for the largest, and parts of a lane.
    pub(super) fn iterations(&self) -> (usize, usize) {
        let few = self.items * self.lane_tiles() * PARTS < BUSY_WORKGROUPS;
        let parts = (self.k / PART).clamp(1, if few { 2 * PARTS } else { PARTS });
        let iterations = self.k.div_ceil(parts).div_ceil(self.tile()[1]).next_multiple_of(UNITS);
        (iterations, self.k.div_ceil(iterations * self.tile()[1]))
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
    pub(super) fn largest(&self, first: usize) -> String {
        let ((iterations, parts), [along_lanes, along_k]) = (self.iterations(), self.threads);
        let wide = self.tile()[1];
        let mut text = self.begin(parts);
        let mut turn = String::new();
        for j in 0..UNITS {
            let at = sum(&[
                format!("part * {}u", iterations * wide),
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
for (var turn = 0u; turn < {iterations}u; turn += {UNITS}u) {{
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
        let at = format!("{first}u + (part * {}u + item) * {}u + own_lane", self.items, self.row());
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
    let own_lane = group / {parts}u % {}u * {}u + tid * {}u;
    if (own_lane < {}u) {{ {store} }}
}}
",
            self.lane_tiles(),
            self.tile()[0],
            self.unit.lanes(),
            self.lanes
        );
        self.function("largest", &text)
    }

    /// Declares `most`, the largest of a lane or of four.
    fn most(&self, first: usize) -> String {
        let (name, first, parts) = match self.source.largest {
            Some(known) => (self.noted, 0, known.parts),
            None => ("largest", first, self.iterations().1),
        };
        let (all, row) = (self.items * self.row(), self.row());
        let (quad, ty) = if self.unit == Unit::QuadLane { ("4", "vec4<i32>") } else { ("", "i32") };
        let mut text =
            format!("var most: {ty};\nfor (var p = 0u; p < {parts}u; p += {PARTS_IN_FLIGHT}u) {{\n");
        for j in 0..PARTS_IN_FLIGHT {
            let part = format!("min(p + {j}u, {}u)", parts - 1);
            let _ = writeln!(
                text,
                "    let part{j} = load{quad}_{name}({first}u + {part} * {all}u + item * {row}u + lane);"
            );
        }
        for j in 0..PARTS_IN_FLIGHT {
            let _ = writeln!(text, "    most = max(most, part{j});");
        }
        text + "}\n"
    }

    /// The function that splits, where the largest are known.
    pub(super) fn split(&self, largest: usize, scales: usize) -> String {
        let (wide, row) = (self.tile()[1], self.row());
        // A scale a lane: one, or four.
        let four = self.unit == Unit::QuadLane;
        let quad = if four { "4" } else { "" };
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
        text += &self.most(largest);
        text += &scales::exponent("most", four);
        let _ = write!(
            text,
            "let scale = {};
if (part == 0u && k_thread == 0u) {{
    store{quad}_scales({scales}u + item * {row}u + lane, exponent);
}}
",
            scales::inverse("exponent", four)
        );
        for j in 0..UNITS {
            text += &self.store(j, &format!("{} * scale", self.inside(j)), "lane");
        }
        self.function("split", &text)
    }

    /// Stores the halves of vec4 `scaled`, from `k{j}` on.
    fn store(&self, j: usize, scaled: &str, lane: &str) -> String {
        let (packed, depth, padded, lanes) = (self.packed, self.depth, self.padded(), self.lanes);
        let k = format!("k{j}");
        let line = format!("{k} / {depth}u * {}u + {k} % {depth}u", 2 * depth);
        let (at, rest) = if self.unit == Unit::QuadLane {
            (format!("(item * {}u + {line}) * {lanes}u + {lane}", 2 * padded), depth * lanes)
        } else {
            (format!("(item * {lanes}u + {lane}) * {}u + {line}", 2 * padded), depth)
        };
        format!(
            "if ({k} < {padded}u) {{
{}    let at = {at};
    store4_{packed}(at, high);
    store4_{packed}(at + {rest}u, low);
}}
",
            indented(&scales::halves(scaled, ""), 1)
        )
    }

    /// Lanes that a subgroup has in its registers at once, and units of a lane that a thread has.
    fn whole(&self) -> [usize; 2] {
        let units = self.padded().div_ceil(self.tile()[1]);
        [(UNITS / units).max(1), units]
    }

    /// Workgroups that split whole lanes.
    pub(super) fn whole_groups(&self) -> usize {
        self.lanes.div_ceil(self.whole()[0] * self.threads[0])
    }

    /// The function that splits whole lanes.
    pub(super) fn split_whole(&self, scales: usize) -> String {
        let ([each, units], groups) = (self.whole(), self.whole_groups());
        let (teams, row, lanes) = (self.threads[0], self.row(), self.lanes);
        let mut text = format!(
            "let item = group / {groups}u;
let team = group % {groups}u * {}u + tid / {SUBGROUP}u;
let k_thread = tid % {SUBGROUP}u;
",
            each * teams
        );
        for u in 0..units {
            let _ = writeln!(text, "let k{u} = {}u + k_thread * 4u;", u * self.tile()[1]);
        }
        let (name, last) = (self.name, self.k - self.unit.depth());
        for r in 0..each {
            let base = [
                unsigned(self.strided.offset),
                self.strided.items.position("item"),
                times(&format!("min(lane{r}, {}u)", lanes - 1), self.strided.lane),
            ];
            let _ = writeln!(text, "let lane{r} = team + {}u;\nlet base{r} = {};", r * teams, sum(&base));
            for u in 0..units {
                let k = self.strided.k.position(&format!("min(k{u}, {last}u)"));
                let _ = writeln!(text, "let value{r}_{u} = load4_{name}({});", sum(&[format!("base{r}"), k]));
            }
        }
        for r in 0..each {
            let mut one = "var found: vec4<i32>;\n".to_string();
            for u in 0..units {
                let bits = format!("bitcast<vec4<i32>>(value{r}_{u}) & vec4<i32>(0x7fffffff)");
                let _ = writeln!(one, "found = max(found, {bits});");
            }
            one += "let most = subgroupMax(max(max(found.x, found.y), max(found.z, found.w)));\n";
            one += &scales::exponent("most", false);
            let mut stores = format!(
                "let scale = {};
if (k_thread == 0u) {{ store_scales({scales}u + item * {row}u + lane{r}, exponent); }}
",
                scales::inverse("exponent", false)
            );
            for u in 0..units {
                let (value, k) = (format!("value{r}_{u}"), self.k);
                let inside = if self.padded() == k {
                    value
                } else {
                    format!("select({value}, vec4<f32>(), k{u} >= {k}u)")
                };
                stores += &self.store(u, &format!("{inside} * scale"), &format!("lane{r}"));
            }
            let _ = writeln!(one, "if (lane{r} < {lanes}u) {{\n{}}}", indented(&stores, 1));
            let _ = write!(text, "{{\n{}}}\n", indented(&one, 1));
        }
        self.function("split", &text)
    }

    /// Workgroups that make scales.
    pub(super) fn scale_groups(&self) -> usize {
        self.lanes.div_ceil(THREADS * self.unit.lanes())
    }

    /// The function that makes scales of the largest.
    pub(super) fn scale(&self, largest: usize, scales: usize) -> String {
        let (groups, each, row) = (self.scale_groups(), self.unit.lanes(), self.row());
        let four = self.unit == Unit::QuadLane;
        let text = format!(
            "let item = group / {groups}u;
let lane = (group % {groups}u * {THREADS}u + tid) * {each}u;
if (lane >= {}u) {{ return; }}
{}{}store{}_scales({scales}u + item * {row}u + lane, exponent);
",
            self.lanes,
            self.most(largest),
            scales::exponent("most", four),
            if four { "4" } else { "" }
        );
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
    pub(super) fn k_tiles(&self) -> usize {
        self.padded().div_ceil(self.tile()[1] * UNITS)
    }

    fn function(&self, verb: &str, text: &str) -> String {
        format!("fn {verb}_{}(group: u32, tid: u32) {{\n{}}}\n\n", self.name, indented(text, 1))
    }

    pub(super) fn binding(&self) -> Binding {
        self.source.binding(self.name, ComputeType::F32, if self.wide { 4 } else { 1 })
    }

    /// What was made, as an operand.
    pub(super) fn made(&self, scratch: usize, items: usize) -> GemmOperand {
        if self.variant == Way::Later {
            return self.source.clone();
        }
        let (twice, lanes) = (2 * self.padded() as i64, self.lanes as i64);
        let (lane, k) = if self.unit == Unit::QuadLane { (1, lanes) } else { (twice, 1) };
        let item = if self.items == 1 { 0 } else { twice * lanes };
        let layout = OperandLayout::Strided(Strided {
            offset: 0,
            items: Digits::line(items, item),
            lane,
            k: Digits::line(twice as usize, k),
        });
        GemmOperand { memory: Memory::Scratch(scratch), dtype: DType::F16, layout, largest: None }
    }

    /// Where the scales of an item begin, after those before.
    pub(super) fn item_scales(&self, first: usize) -> String {
        let item = if self.items == 1 { 0 } else { self.row() as i64 };
        sum(&[format!("{first}u"), times("item", item)])
    }
}
