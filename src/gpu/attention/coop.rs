//! Products by 16×16 cooperative matrices: f16 rows in workgroup memory, f32 sums in a subgroup's registers.
//!
//! A subgroup owns 16 rows of scores. It leaves the products in `scores`, where two threads a row take them
//! up as `s` (or `dp`), and reads them back as f16 `weights`. The other rows lie in `rows`: those of the near view,
//! then those of the far one.

use super::block::Block;
use super::problem::Problem;
use super::tile::{Tile, half_pitch};
use super::tiling::{Parts, Tiling};
use super::view::{Piece, View};
use crate::dtype::DType;
use crate::gpu::dispatch::Caps;
use std::fmt::Write;

/// Rows, columns and depth of a cooperative matrix.
const SIDE: usize = 16;
const SUBGROUP: usize = 32;
const OWN: usize = 64;
/// The widest rows whose sums stay in registers.
const WIDEST: usize = 128;

/// Two threads a row, so that the 32 threads of a subgroup have its 16 rows.
fn tiling(other: usize) -> Tiling {
    Tiling {
        own: OWN,
        other,
        thread_rows: 1,
        thread_quads: other / 8,
        depth: WIDEST / 4,
        unroll: 1,
        ahead: false,
    }
}

/// The tilings for a problem, the best first; none if cooperative matrices cannot do it.
pub(super) fn tilings(p: &Problem, caps: &Caps) -> Vec<Tiling> {
    let able = caps.cooperative && caps.f16 && caps.subgroup == Some(SUBGROUP as u32);
    let halves = [&p.q, &p.k, &p.v].iter().all(|v| v.dtype == DType::F16);
    let fits = |width: usize| width.is_multiple_of(SIDE) && (SIDE..=WIDEST).contains(&width);
    if !able || !halves || !fits(p.width) || !fits(p.value_width) || p.items() * p.queries * p.keys == 0 {
        return Vec::new();
    }
    let fits = |t: &Tiling| Coop::new(p, *t, caps).bytes() <= caps.workgroup_bytes as usize;
    // Two workgroups with blocks of 32 fit where one with blocks of 64 does, and each works while the other waits.
    [32, 64].map(tiling).into_iter().filter(fits).collect()
}

pub(super) struct Coop<'a> {
    pub block: Block<'a>,
}

impl<'a> Coop<'a> {
    pub fn new(problem: &'a Problem, tiling: Tiling, caps: &Caps) -> Coop<'a> {
        Coop { block: Block::new(problem, tiling, caps) }
    }

    /// Quads of the widest row in workgroup memory.
    fn widest(&self) -> usize {
        half_pitch(self.block.width.quads.max(self.block.value.quads))
    }

    /// Rows of the near view of the other side in workgroup memory.
    pub fn near(&self, parts: Parts) -> Tile {
        Tile {
            name: "rows",
            first: 0,
            rows: self.block.tiling.other,
            quads: parts.quads,
            group: 1,
            half: true,
        }
    }

    /// The same of the far view.
    pub fn far(&self, parts: Parts) -> Tile {
        Tile { first: self.block.tiling.other * self.widest(), ..self.near(parts) }
    }

    /// Own rows on their way to registers.
    fn stage(&self, parts: Parts) -> Tile {
        Tile { rows: OWN, ..self.near(parts) }
    }

    /// Quads from row to row of scores and weights.
    fn pitch(&self) -> usize {
        half_pitch(self.block.tiling.other / 4)
    }

    /// Quads of `rows`, and of both scores and weights.
    fn sizes(&self) -> [usize; 2] {
        [OWN.max(2 * self.block.tiling.other) * self.widest(), OWN * self.pitch()]
    }

    fn bytes(&self) -> usize {
        let [rows, block] = self.sizes();
        rows * 8 + block * (16 + 8)
    }

    pub fn memory(&self) -> String {
        let [rows, block] = self.sizes();
        format!(
            r"var<workgroup> rows: array<vec4<f16>, {rows}>;
var<workgroup> scores: array<vec4<f32>, {block}>;
var<workgroup> weights: array<vec4<f16>, {block}>;
"
        )
    }

    /// Four numbers of the workgroup behind row `row` of the scores, where rows lie apart for the banks' sake.
    pub fn aside(&self, row: &str) -> String {
        format!("scores[({row}) * {}u + {}u]", self.pitch(), self.block.tiling.other / 4)
    }

    /// Declares what statements here rely on.
    pub fn names(&self) -> String {
        format!("let subgroup_row = lane / {SUBGROUP}u * {SIDE}u;\nlet pitch = {}u;\n", self.pitch())
    }

    /// Cooperative matrices of a width.
    fn count(&self, parts: Parts) -> usize {
        parts.quads * 4 / SIDE
    }

    /// Loads the subgroup's rows of `view` as left operands `name_0`, `name_1`, …
    pub fn own(&self, parts: Parts, view: &View, name: &str) -> String {
        let stage = self.stage(parts);
        let mut text = String::from("workgroupBarrier();\n{\n");
        text += &self.block.declare("own_next", &stage, view);
        text += &self.block.fetch("own_next", &stage, view, "first", "0u");
        text += &self.block.place("own_next", &stage);
        text += "}\nworkgroupBarrier();\n";
        _ = writeln!(text, "let {name}_pitch = {}u;", stage.pitch());
        for m in 0..self.count(parts) {
            _ = writeln!(text, "let {name}_at_{m} = subgroup_row * {name}_pitch + {}u;", m * SIDE / 4);
            _ = writeln!(
                text,
                "let {name}_{m} = coopLoadT<coop_mat16x16<f16, A>>(&rows[{name}_at_{m}], {name}_pitch);"
            );
        }
        text
    }

    /// Declares sums `name_0`, `name_1`, …, one a matrix of the width.
    pub fn declare(&self, parts: Parts, name: &str) -> String {
        (0..self.count(parts)).map(|m| format!("var {name}_{m} = coop_mat16x16<f32, C>();\n")).collect()
    }

    /// Leaves the products of the own rows `own` and the rows in `tile` in `scores`.
    pub fn rows_by_rows(&self, parts: Parts, own: &str, tile: &Tile) -> String {
        let pitch = tile.pitch();
        let mut text = format!("{{\nlet row_pitch = {pitch}u;\n");
        let blocks = 0..self.block.tiling.other / SIDE;
        for n in blocks.clone() {
            _ = writeln!(text, "var product_{n} = coop_mat16x16<f32, C>();");
        }
        // Products of several sums follow each other: none waits for the one before.
        for m in 0..self.count(parts) {
            for n in blocks.clone() {
                let at = tile.first + n * SIDE * pitch + m * SIDE / 4;
                _ = writeln!(
                    text,
                    "let b_{n}_{m} = coopLoad<coop_mat16x16<f16, B>>(&{}[{at}u], row_pitch);
product_{n} = coopMultiplyAdd({own}_{m}, b_{n}_{m}, product_{n});",
                    tile.name
                );
            }
        }
        for n in blocks {
            _ = writeln!(text, "let at_{n} = subgroup_row * pitch + {}u;", n * SIDE / 4);
            _ = writeln!(text, "coopStoreT(product_{n}, &scores[at_{n}], pitch);");
        }
        text + "}\n"
    }

    /// Takes the thread's cells of `scores` up as `name`.
    pub fn take(&self, name: &str) -> String {
        let b = &self.block;
        b.cells()
            .map(|(i, n)| format!("var {name}_{i}_{n} = scores[lane / 2u * pitch + {}];\n", b.column_quad(n)))
            .collect()
    }

    /// Leaves the cells `name` as weights.
    pub fn write_weights(&self, name: &str) -> String {
        let b = &self.block;
        b.cells()
            .map(|(i, n)| {
                let quad = b.column_quad(n);
                format!("weights[lane / 2u * pitch + {quad}] = vec4<f16>({name}_{i}_{n});\n")
            })
            .collect()
    }

    /// Adds the products of the weights and the rows in `tile` to `sums`.
    pub fn weights_by_rows(&self, parts: Parts, tile: &Tile, sums: &str) -> String {
        let pitch = tile.pitch();
        let mut text = format!("{{\nlet row_pitch = {pitch}u;\n");
        for n in 0..self.block.tiling.other / SIDE {
            _ = writeln!(text, "let at_{n} = subgroup_row * pitch + {}u;", n * SIDE / 4);
            _ = writeln!(text, "let a_{n} = coopLoadT<coop_mat16x16<f16, A>>(&weights[at_{n}], pitch);");
            for m in 0..self.count(parts) {
                let at = tile.first + n * SIDE * pitch + m * SIDE / 4;
                _ = writeln!(
                    text,
                    "let b_{n}_{m} = coopLoadT<coop_mat16x16<f16, B>>(&{}[{at}u], row_pitch);
{sums}_{m} = coopMultiplyAdd(a_{n}, b_{n}_{m}, {sums}_{m});",
                    tile.name
                );
            }
        }
        text + "}\n"
    }

    /// Runs of sums that `scores` holds at once.
    fn runs(&self, parts: Parts) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.count(parts)).collect();
        all.chunks(self.block.tiling.other / SIDE).map(<[usize]>::to_vec).collect()
    }

    /// Multiplies every row of the sums by the `factor` of its threads. All must have finished with `scores`.
    pub fn scale_rows(&self, parts: Parts, sums: &str, factor: &str) -> String {
        let mut text = String::new();
        for run in self.runs(parts) {
            text += &self.put(&run, sums);
            for n in 0..run.len() * 2 {
                let quad = self.block.column_quad(n);
                _ = writeln!(text, "scores[lane / 2u * pitch + {quad}] *= {factor};");
            }
            text += "workgroupBarrier();\n";
            for (k, m) in run.iter().enumerate() {
                _ = writeln!(text, "let back_{m} = subgroup_row * pitch + {}u;", k * SIDE / 4);
                _ = writeln!(
                    text,
                    "{sums}_{m} = coopLoadT<coop_mat16x16<f32, C>>(&scores[back_{m}], pitch);"
                );
            }
            text += "workgroupBarrier();\n";
        }
        text
    }

    /// Lays sums out in `scores`, for all to see.
    fn put(&self, run: &[usize], sums: &str) -> String {
        let mut text = String::new();
        for (k, m) in run.iter().enumerate() {
            _ = writeln!(text, "let {sums}_put_{m} = subgroup_row * pitch + {}u;", k * SIDE / 4);
            _ = writeln!(text, "coopStoreT({sums}_{m}, &scores[{sums}_put_{m}], pitch);");
        }
        text + "workgroupBarrier();\n"
    }

    /// Stores the sums, times `factor`, as rows of `to`. All must have finished with `scores`.
    pub fn finish(&self, parts: Parts, sums: &str, to: &Piece, factor: &str) -> String {
        let row = "(first + lane / 2u)";
        let mut text = String::new();
        for (k, run) in self.runs(parts).iter().enumerate() {
            text += &self.put(run, sums);
            _ = writeln!(text, "if ({row} < {}u) {{", to.rows);
            for n in 0..run.len() * 2 {
                let quad = self.block.column_quad(n);
                let from = format!("scores[lane / 2u * pitch + {quad}] * {factor}");
                let start = k * self.block.tiling.other / 4;
                text += &to.store_quad(row, &format!("{start}u + {quad}"), &from);
            }
            text += "}\nworkgroupBarrier();\n";
        }
        text
    }

    /// The loop over blocks of other rows, from `start` to `end`, with those of both views in `near` and `far`: the next
    /// block is on its way while `body` works on this one.
    pub fn sweep(&self, sweep: Sweep, body: &str) -> String {
        let (b, step) = (&self.block, self.block.tiling.other);
        let Sweep { start, end, near, far, more } = sweep;
        let tiles = [("near_next", self.near(near.0), near.1), ("far_next", self.far(far.0), far.1)];
        let each = |f: &dyn Fn(&str, &Tile, &View) -> String| -> String {
            tiles.iter().map(|(name, tile, view)| f(name, tile, view)).collect()
        };
        let declare = each(&|name, tile, view| b.declare(name, tile, view)) + &more.declare;
        let fetch = each(&|name, tile, view| b.fetch(name, tile, view, "next", "0u")) + &more.fetch;
        let place = each(&|name, tile, _| b.place(name, tile)) + &more.place;
        // At the end the last block is read once more: a branch around loads would cost more.
        format!(
            r"{declare}{{
let next = {start};
if (next < {end}) {{
{fetch}}}
}}
for (var other = {start}; other < {end}; other += {step}u) {{
workgroupBarrier();
{place}workgroupBarrier();
{{
let next = select(other, other + {step}u, other + {step}u < {end});
{fetch}}}
{body}}}
"
        )
    }
}

/// What a loop over blocks of other rows brings to workgroup memory.
pub(super) struct Sweep<'a> {
    pub start: &'a str,
    pub end: &'a str,
    pub near: (Parts, &'a View),
    pub far: (Parts, &'a View),
    pub more: Carried,
}

/// Statements that declare, read and place something of the block `next`.
#[derive(Default)]
pub(super) struct Carried {
    pub declare: String,
    pub fetch: String,
    pub place: String,
}
