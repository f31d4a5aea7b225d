//! The two products that attention is made of, from workgroup memory into registers: rows by rows (scores
//! from queries and keys), and weights by rows (outputs from weights and values).

use super::block::{Block, Incoming};
use super::tiling::Parts;
use super::view::{OperandTile, View};
use std::fmt::Write;

/// Declares quads of sums `name_i_n`, all 0.
pub(super) fn declare_sums(name: &str, rows: usize, quads: usize) -> String {
    let mut text = String::new();
    for i in 0..rows {
        for n in 0..quads {
            _ = writeln!(text, "var {name}_{i}_{n} = vec4<f32>();");
        }
    }
    text
}

impl Block<'_> {
    /// Adds to `sums` the products of the own rows and the other rows over the parts in their tiles.
    pub fn rows_by_rows(&self, parts: Parts, sums: &str) -> String {
        let (own, other, t) = (self.own_tile(parts), self.other_tile(parts), &self.tiling);
        let unroll = if parts.quads.is_multiple_of(t.unroll) { t.unroll } else { 1 };
        let mut text = format!("for (var c = 0u; c < {}u; c += {unroll}u) {{\n", parts.quads);
        for u in 0..unroll {
            let quad = format!("c + {u}u");
            for i in 0..t.thread_rows {
                _ = writeln!(text, "let a_{u}_{i} = {};", own.at("down", i, &quad));
            }
            for n in 0..t.thread_quads {
                let b = |j: usize| format!("b_{u}_{n}_{j}");
                for j in 0..4 {
                    _ = writeln!(text, "let {} = {};", b(j), other.at(&self.column_quad(n), j, &quad));
                }
                for x in ["x", "y", "z", "w"] {
                    let row = format!("d_{u}_{n}_{x}");
                    let [b0, b1, b2, b3] = [0, 1, 2, 3].map(b);
                    _ = writeln!(text, "let {row} = vec4<f32>({b0}.{x}, {b1}.{x}, {b2}.{x}, {b3}.{x});");
                    for i in 0..t.thread_rows {
                        let sum = format!("{sums}_{i}_{n}");
                        _ = writeln!(text, "{sum} = fma(vec4<f32>(a_{u}_{i}.{x}), {row}, {sum});");
                    }
                }
            }
        }
        text + "}\n"
    }

    /// Quads of sums a row that a thread has of one part.
    pub fn sum_quads(&self, parts: Parts) -> usize {
        parts.quads.div_ceil(self.tiling.across())
    }

    /// Adds to `sums` the products of the weights and the other rows in their tile.
    pub fn weights_by_rows(&self, parts: Parts, sums: &str) -> String {
        let (weights, other, t) = (self.weights(), self.other_tile(parts), &self.tiling);
        let mut text = format!("for (var c = 0u; c < {}u; c++) {{\n", weights.quads);
        for i in 0..t.thread_rows {
            _ = writeln!(text, "let a_{i} = {};", weights.at("down", i, "c"));
        }
        for n in 0..self.sum_quads(parts) {
            let mut quad = self.column_quad(n);
            if !parts.quads.is_multiple_of(t.across()) {
                // Threads beyond the last column compute it once more and drop it.
                quad = format!("min({quad}, {}u)", parts.quads - 1);
            }
            for (j, x) in ["x", "y", "z", "w"].iter().enumerate() {
                let row = format!("b_{n}_{j}");
                _ = writeln!(text, "let {row} = {};", other.at("c", j, &quad));
                for i in 0..t.thread_rows {
                    let sum = format!("{sums}_{i}_{n}");
                    _ = writeln!(text, "{sum} = fma(vec4<f32>(a_{i}.{x}), {row}, {sum});");
                }
            }
        }
        text + "}\n"
    }

    /// Adds to `sums` the products of rows of `own` and of `other`, which are brought here part by part.
    pub fn scores(&self, parts: Parts, own: &View, other: &View, sums: &str) -> String {
        let from = format!("part * {}u", parts.quads);
        let tiles = [
            Incoming { name: "own_next", tile: self.own_tile(parts), view: own, first: "first" },
            Incoming { name: "other_next", tile: self.other_tile(parts), view: other, first: "other" },
        ];
        match parts.count {
            0 => "workgroupBarrier();\n".into(),
            1 => format!("{{\n{}{}}}\n", self.bring(&tiles, "0u"), self.rows_by_rows(parts, sums)),
            count => format!(
                "for (var part = 0u; part < {count}u; part++) {{\n{}{}}}\n",
                self.bring(&tiles, &from),
                self.rows_by_rows(parts, sums)
            ),
        }
    }

    /// Adds to `sums_0`, `sums_1`, … the products of the weights and rows of `other`: one for each of the
    /// `run` parts of this slice. `there` says that the only part is in its tile already. The weights must
    /// have been written since the last barrier.
    pub fn weigh(&self, parts: Parts, run: usize, other: &View, there: bool, sums: &str) -> String {
        let mut text = String::new();
        if there || parts.count == 0 {
            text += "workgroupBarrier();\n";
        }
        for r in 0..run.min(parts.count) {
            text += "{\n";
            if !there {
                let from = self.part_start(parts, run, r);
                text += &self.bring(
                    &[Incoming {
                        name: "other_next",
                        tile: self.other_tile(parts),
                        view: other,
                        first: "other",
                    }],
                    &from,
                );
            }
            text += &self.weights_by_rows(parts, &format!("{sums}_{r}"));
            text += "}\n";
        }
        text
    }

    /// The first quad of part `r` of this slice's.
    pub fn part_start(&self, parts: Parts, run: usize, r: usize) -> String {
        if run >= parts.count {
            format!("{}u", r * parts.quads)
        } else {
            format!("(slice * {run}u + {r}u) * {}u", parts.quads)
        }
    }

    /// Stores the sums of this slice, times `scale`, as rows of `to`.
    pub fn finish_sums(&self, parts: Parts, run: usize, sums: &str, to: &OperandTile, scale: &str) -> String {
        let rows = self.tiling.thread_rows;
        let mut text = String::new();
        for i in 0..rows {
            let row = format!("(first + down * {rows}u + {i}u)");
            _ = writeln!(text, "if ({row} < {}u) {{", to.rows);
            for r in 0..run.min(parts.count) {
                let start = self.part_start(parts, run, r);
                for n in 0..self.sum_quads(parts) {
                    let quad = format!("{start} + {}", self.column_quad(n));
                    let store = to.store_quad(&row, &quad, &format!("{sums}_{r}_{i}_{n} * {scale}"));
                    text += &self.if_column(parts, n, &store);
                }
            }
            text += "}\n";
        }
        text
    }
}
