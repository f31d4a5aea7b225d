//! Products by 16×16 cooperative matrices: f16 rows in workgroup memory, f32 sums in a subgroup's registers.
//!
//! Four subgroups share a block of scores: two by two, so that a matrix that one of them loads serves it twice, or each its
//! own rows where widths cannot be halved, or memory counts for more. They leave products in `scores`, where two threads a
//! row take them up as `s` (or `dp`), and read them back as f16 `weights`. The other rows lie in `rows`: those of the near
//! view, then those of the far one.

use super::block::Block;
use super::problem::Problem;
use super::tile::{Tile, half_pitch};
use super::tiling::{Parts, Tiling};
use super::view::{OperandTile, View};
use crate::caps::Caps;
use std::fmt::Write;
use std::ops::Add;
use volta_ir::dtype::DType;

/// Rows, columns and depth of a cooperative matrix.
const SIDE: usize = 16;
const SUBGROUP: usize = 32;
pub(super) const OWN_ROWS: usize = 64;
/// The widest rows whose sums stay in registers.
const WIDEST: usize = 128;

/// Two threads a row: as many as the four subgroups have.
fn tiling(other: usize) -> Tiling {
    Tiling {
        own: OWN_ROWS,
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
    let is_supported =
        Caps::KNOWS_COOPERATIVE && caps.cooperative && caps.f16 && caps.subgroup == Some(SUBGROUP as u32);
    let halves = [&p.q, &p.k, &p.v].iter().all(|v| v.dtype == DType::F16);
    let fits = |width: usize| width.is_multiple_of(SIDE) && (SIDE..=WIDEST).contains(&width);
    if !is_supported
        || !halves
        || !fits(p.width)
        || !fits(p.value_width)
        || p.items() * p.queries * p.keys == 0
    {
        return Vec::new();
    }
    let fits = |t: &Tiling| Coop::new(p, *t, caps).bytes() <= caps.workgroup_bytes as usize;
    // Two workgroups with blocks of 32 fit where one with blocks of 64 does, and each works while the other waits.
    [32, 64].map(tiling).into_iter().filter(fits).collect()
}

pub(super) struct Coop<'a> {
    pub block: Block<'a>,
    /// Subgroups that share their rows, and matrices that each has of them one below the other.
    columns: usize,
    /// Matrices of a subgroup that `scores` holds side by side.
    staged: usize,
}

impl<'a> Coop<'a> {
    pub fn new(problem: &'a Problem, tiling: Tiling, caps: &Caps) -> Coop<'a> {
        let halved = |width: usize| width.is_multiple_of(2 * SIDE);
        let columns = if halved(problem.width) && halved(problem.value_width) { 2 } else { 1 };
        let staged = tiling.other / SIDE / columns;
        Coop { block: Block::new(problem, tiling, caps), columns, staged }
    }

    /// Subgroups with rows of their own, that only finish sums in `scores`, which is as small as can be.
    pub fn of_sums(problem: &'a Problem, tiling: Tiling, caps: &Caps) -> Coop<'a> {
        Coop { block: Block::new(problem, tiling, caps), columns: 1, staged: 1 }
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
        Tile { rows: OWN_ROWS, ..self.near(parts) }
    }

    /// Quads of a row of scores.
    fn score_quads(&self) -> usize {
        self.columns * self.staged * SIDE / 4
    }

    /// Quads from row to row of scores and weights.
    pub fn pitch(&self) -> usize {
        half_pitch(self.score_quads())
    }

    /// Quads of `rows`, and of both scores and weights.
    fn sizes(&self) -> [usize; 2] {
        [OWN_ROWS.max(2 * self.block.tiling.other) * self.widest(), OWN_ROWS * self.pitch()]
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
        format!("scores[({row}) * {}u + {}u]", self.pitch(), self.score_quads())
    }

    /// Declares what statements here rely on.
    pub fn names(&self) -> String {
        let (columns, pitch) = (self.columns, self.pitch());
        format!(
            "let subgroup_row = lane / {}u * {}u;
let subgroup_column = lane / {SUBGROUP}u % {columns}u;
let pitch = {pitch}u;\n",
            columns * SUBGROUP,
            columns * SIDE
        )
    }

    /// Cooperative matrices of a width.
    fn count(&self, parts: Parts) -> usize {
        parts.quads * 4 / SIDE
    }

    /// Those of them that a subgroup has sums of.
    fn sums(&self, parts: Parts) -> usize {
        self.count(parts) / self.columns
    }

    /// The quad of `scores` and `weights` where the subgroup's matrix number `r` of rows begins, in column `column`.
    fn place(&self, r: usize, column: &str) -> String {
        format!("(subgroup_row + {}u) * pitch + ({column}) * {}u", r * SIDE, SIDE / 4)
    }

    /// The same for products: column `n` of the subgroup's own.
    fn place_own(&self, r: usize, n: usize) -> String {
        self.place(r, &format!("subgroup_column * {}u + {n}u", self.staged))
    }

    /// Loads the subgroup's rows of `view` as left operands `name_0_0`, `name_0_1`, …, by row and column.
    pub fn own(&self, parts: Parts, view: &View, name: &str) -> String {
        let stage = self.stage(parts);
        let mut text = String::from("workgroupBarrier();\n{\n");
        text += &self.block.declare("own_next", &stage, view);
        text += &self.block.fetch("own_next", &stage, view, "first", "0u");
        text += &self.block.place("own_next", &stage, view);
        text += "}\nworkgroupBarrier();\n";
        _ = writeln!(text, "let {name}_pitch = {}u;", stage.pitch());
        for (r, m) in self.each(self.count(parts)) {
            let (row, quad) = (r * SIDE, m * SIDE / 4);
            _ = writeln!(
                text,
                "let {name}_at_{r}_{m} = (subgroup_row + {row}u) * {name}_pitch + {quad}u;
let {name}_{r}_{m} = coopLoadT<coop_mat16x16<f16, A>>(&rows[{name}_at_{r}_{m}], {name}_pitch);"
            );
        }
        text
    }

    /// The subgroup's matrices of rows, with `columns` of columns each.
    fn each(&self, columns: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        (0..self.columns).flat_map(move |r| (0..columns).map(move |m| (r, m)))
    }

    /// Declares sums `name_0_0`, `name_0_1`, …, by row and column.
    pub fn declare(&self, parts: Parts, name: &str) -> String {
        self.each(self.sums(parts))
            .map(|(r, m)| format!("var {name}_{r}_{m} = coop_mat16x16<f32, C>();\n"))
            .collect()
    }

    /// Leaves the products of the own rows `own` and the rows in `tile` in `scores`.
    pub fn rows_by_rows(&self, parts: Parts, own: &str, tile: &Tile) -> String {
        let (pitch, products) = (tile.pitch(), self.staged);
        debug_assert_eq!(products * self.columns * SIDE, self.block.tiling.other, "all products at once");
        let mut text = format!(
            "{{\nlet row_pitch = {pitch}u;\nlet row_first = {}u + subgroup_column * {}u;\n",
            tile.first,
            products * SIDE * pitch
        );
        for (r, n) in self.each(products) {
            _ = writeln!(text, "var product_{r}_{n} = coop_mat16x16<f32, C>();");
        }
        // Products of several sums follow each other: none waits for the one before.
        for m in 0..self.count(parts) {
            for n in 0..products {
                let at = n * SIDE * pitch + m * SIDE / 4;
                _ = writeln!(
                    text,
                    "let b_{n}_{m} = coopLoad<coop_mat16x16<f16, B>>(&{}[row_first + {at}u], row_pitch);",
                    tile.name
                );
                for r in 0..self.columns {
                    _ = writeln!(
                        text,
                        "product_{r}_{n} = coopMultiplyAdd({own}_{r}_{m}, b_{n}_{m}, product_{r}_{n});"
                    );
                }
            }
        }
        for (r, n) in self.each(products) {
            _ = writeln!(text, "let at_{r}_{n} = {};", self.place_own(r, n));
            _ = writeln!(text, "coopStoreT(product_{r}_{n}, &scores[at_{r}_{n}], pitch);");
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
        let weights = |r: usize, n: usize| {
            format!(
                "let at_{r}_{n} = {};
let a_{r}_{n} = coopLoadT<coop_mat16x16<f16, A>>(&weights[at_{r}_{n}], pitch);\n",
                self.place(r, &format!("{n}u"))
            )
        };
        self.add_products(parts, weights, tile, sums)
    }

    /// The same for weights that lie in the columns of `turned`.
    pub fn turned_by_rows(&self, parts: Parts, turned: &Tile, tile: &Tile, sums: &str) -> String {
        let pitch = turned.pitch();
        let weights = |r: usize, n: usize| {
            format!(
                "let at_{r}_{n} = subgroup_row / 4u + {}u;
let a_{r}_{n} = coopLoad<coop_mat16x16<f16, A>>(&{}[at_{r}_{n}], {pitch}u);\n",
                turned.first + n * SIDE * pitch + r * SIDE / 4,
                turned.name
            )
        };
        self.add_products(parts, weights, tile, sums)
    }

    /// Adds the products of left operands and the rows in `tile` to `sums`; `left` declares operand `a_r_n` of row r and
    /// column n.
    fn add_products(
        &self,
        parts: Parts,
        left: impl Fn(usize, usize) -> String,
        tile: &Tile,
        sums: &str,
    ) -> String {
        let (pitch, each) = (tile.pitch(), self.sums(parts));
        let mut text = format!(
            "{{\nlet row_pitch = {pitch}u;\nlet row_first = {}u + subgroup_column * {}u;\n",
            tile.first,
            each * SIDE / 4
        );
        for n in 0..self.block.tiling.other / SIDE {
            text.extend((0..self.columns).map(|r| left(r, n)));
            for m in 0..each {
                let at = n * SIDE * pitch + m * SIDE / 4;
                _ = writeln!(
                    text,
                    "let b_{n}_{m} = coopLoadT<coop_mat16x16<f16, B>>(&{}[row_first + {at}u], row_pitch);",
                    tile.name
                );
                for r in 0..self.columns {
                    _ = writeln!(
                        text,
                        "{sums}_{r}_{m} = coopMultiplyAdd(a_{r}_{n}, b_{n}_{m}, {sums}_{r}_{m});"
                    );
                }
            }
        }
        text + "}\n"
    }

    /// Runs of a subgroup's sums that `scores` holds at once.
    fn runs(&self, parts: Parts) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.sums(parts)).collect();
        all.chunks(self.staged).map(<[usize]>::to_vec).collect()
    }

    /// The thread's quads of a row of `scores` that hold a run, and those of the width that they are.
    fn quads_of_run(&self, parts: Parts, run: &[usize]) -> Vec<(String, String)> {
        let half = SIDE / 8;
        let quads = (0..self.columns).flat_map(|column| {
            (0..half * run.len()).map(move |k| {
                let place = self.block.column_quad(column * half * self.staged + k);
                let first = (column * self.sums(parts) + run[0]) * SIDE / 4;
                (place, format!("{first}u + {}", self.block.column_quad(k)))
            })
        });
        quads.collect()
    }

    /// Multiplies every row of the sums by the `factor` of its threads. All must have finished with `scores`.
    pub fn scale_rows(&self, parts: Parts, sums: &str, factor: &str) -> String {
        let mut text = String::new();
        for run in self.runs(parts) {
            text += &self.put(&run, sums);
            for (quad, _) in self.quads_of_run(parts, &run) {
                _ = writeln!(text, "scores[lane / 2u * pitch + {quad}] *= {factor};");
            }
            text += "workgroupBarrier();\n";
            for (r, k) in self.each(run.len()) {
                let m = run[k];
                _ = writeln!(text, "let back_{r}_{m} = {};", self.place_own(r, k));
                _ = writeln!(
                    text,
                    "{sums}_{r}_{m} = coopLoadT<coop_mat16x16<f32, C>>(&scores[back_{r}_{m}], pitch);"
                );
            }
            text += "workgroupBarrier();\n";
        }
        text
    }

    /// Lays sums out in `scores`, for all to see.
    fn put(&self, run: &[usize], sums: &str) -> String {
        let mut text = String::new();
        for (r, k) in self.each(run.len()) {
            let m = run[k];
            _ = writeln!(text, "let {sums}_put_{r}_{m} = {};", self.place_own(r, k));
            _ = writeln!(text, "coopStoreT({sums}_{r}_{m}, &scores[{sums}_put_{r}_{m}], pitch);");
        }
        text + "workgroupBarrier();\n"
    }

    /// Stores the sums, times `factor`, as rows of `to`. All must have finished with `scores`.
    pub fn finish(&self, parts: Parts, sums: &str, to: &OperandTile, factor: &str) -> String {
        let row = "(first + lane / 2u)";
        let mut text = String::new();
        for run in self.runs(parts) {
            text += &self.put(&run, sums);
            _ = writeln!(text, "if ({row} < {}u) {{", to.rows);
            for (quad, column) in self.quads_of_run(parts, &run) {
                let from = format!("scores[lane / 2u * pitch + {quad}] * {factor}");
                text += &to.store_quad(row, &column, &from);
            }
            text += "}\nworkgroupBarrier();\n";
        }
        text
    }

    /// The rows of `view` on their way to `tile`, called `name`.
    pub fn rows(&self, name: &str, tile: &Tile, view: &View) -> Carried {
        let b = &self.block;
        Carried {
            declare: b.declare(name, tile, view),
            fetch: b.fetch(name, tile, view, "next", "0u"),
            place: b.place(name, tile, view),
        }
    }

    /// The loop over blocks of other rows, from `start` to `end`: while `body` works on one block, as many others are on
    /// their way as there are `carried`, each under names of its own.
    pub fn sweep(&self, [start, end]: [&str; 2], carried: &[Carried], body: &str) -> String {
        let step = self.block.tiling.other;
        let ahead = step * carried.len();
        // What is not there is the first block once more: a branch around loads would cost more.
        let next = |other: &str, by: usize| {
            format!("let next = select({start}, {other} + {by}u, {other} + {by}u < {end});\n")
        };
        let mut text = String::new();
        for (k, Carried { declare, fetch, .. }) in carried.iter().enumerate() {
            let next = next(start, k * step);
            _ = writeln!(text, "{declare}if ({start} < {end}) {{\n{next}{fetch}}}");
        }
        _ = writeln!(text, "for (var turn = {start}; turn < {end}; turn += {ahead}u) {{");
        for (k, Carried { fetch, place, .. }) in carried.iter().enumerate() {
            let (by, next) = (k * step, next("other", ahead));
            let leave = if k > 0 { format!("if (other >= {end}) {{ break; }}\n") } else { String::new() };
            _ = writeln!(
                text,
                "{{\nlet other = turn + {by}u;\n{leave}workgroupBarrier();\n{place}workgroupBarrier();
{{\n{next}{fetch}}}\n{body}}}"
            );
        }
        text + "}\n"
    }
}

/// Statements that declare, read and place something of the block `next`.
#[derive(Default)]
pub(super) struct Carried {
    pub declare: String,
    pub fetch: String,
    pub place: String,
}

impl Add for Carried {
    type Output = Carried;

    fn add(self, other: Carried) -> Carried {
        Carried {
            declare: self.declare + &other.declare,
            fetch: self.fetch + &other.fetch,
            place: self.place + &other.place,
        }
    }
}
