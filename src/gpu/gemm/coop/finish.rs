//! What becomes of the sums: they pass through workgroup memory, to be finished by position.

use super::{BLOCK, CoopTile, SUBGROUP, Terms};
use crate::gpu::gemm::product::Product;
use crate::gpu::gemm::wgsl::indented;
use crate::gpu::gemm::write::Writer;
use std::fmt::Write;

/// Fours of a block.
const QUADS: usize = BLOCK * BLOCK / 4;

/// Every subgroup lays `staged` blocks of results out in its part of workgroup memory, its threads finish them, and so
/// on.
pub(super) fn finish(
    product: &Product,
    tile: &CoopTile,
    writer: &Writer,
    staged: usize,
    terms: &Terms,
) -> String {
    let [tall, broad] = tile.blocks();
    let fours = writer.width() == 4;
    // A subgroup shares rows of 16, 32 or 64 out.
    let side_by_side = |wide: &usize| *wide <= staged && broad.is_multiple_of(*wide);
    let wide = [4, 2, 1].into_iter().find(side_by_side).expect("there is room for one");
    // Fours are found by their block, single ones by their column.
    let (stride, apart) = if fours { (BLOCK / 4, QUADS) } else { (BLOCK / 4 * wide, BLOCK / 4) };
    let mut text = writer.begin(product);
    let _ = writeln!(text, "let stage = subgroup * {}u;\nlet stride = {stride}u;", staged * QUADS);
    // Where a matrix is stored must have a name: an expression is lost in translation.
    for number in 0..if fours { staged } else { wide } {
        let _ = writeln!(text, "let stage{number} = stage + {}u;", number * apart);
    }
    if fours {
        let blocks: Vec<(usize, usize)> = tile.each_block().collect();
        for some in blocks.chunks(staged) {
            text += &write_quads(product, tile, writer, terms, some);
        }
        return text;
    }
    for i in 0..tall {
        for first in (0..broad).step_by(wide) {
            for j in 0..wide {
                let _ = writeln!(text, "coopStoreT(c{i}_{}, &results[stage{j}], stride);", first + j);
            }
            text += &write_singly(product, tile, writer, wide, terms, [i, first]);
        }
    }
    text
}

/// Writes blocks of results four neighbours at a time. All of a thread's are written out one after the other, so that
/// what the epilogue loads for them is on its way at once.
fn write_quads(
    product: &Product,
    tile: &CoopTile,
    writer: &Writer,
    terms: &Terms,
    blocks: &[(usize, usize)],
) -> String {
    let (row_edge, column_edge) = edges(product, tile);
    let mut text = String::new();
    for (number, (i, j)) in blocks.iter().enumerate() {
        let _ = writeln!(text, "coopStoreT(c{i}_{j}, &results[stage{number}], stride);");
    }
    text += "workgroupBarrier();\n";
    for (number, (i, j)) in blocks.iter().enumerate() {
        for first in (0..QUADS).step_by(SUBGROUP) {
            let at = format!("results[stage{number} + place]");
            let mut one = format!("let n = n0 + own_n + {}u + place % {}u * 4u;\n", j * BLOCK, BLOCK / 4);
            let _ = writeln!(one, "let out_row = {};", writer.row("m"));
            one += &match terms {
                Terms::Halves => format!("let value = {at};\n"),
                Terms::Split(split) => split.scales.apply(&at),
            };
            one += &writer.quad("out_row", "n", "value", column_edge);
            if row_edge {
                one = format!("if (m < {}u) {{\n{}}}\n", product.m, indented(&one, 1));
            }
            let _ = write!(
                text,
                "{{
    let place = {first}u + tid % {SUBGROUP}u;
    let m = m0 + own_m + {}u + place / {}u;
{}}}
",
                i * BLOCK,
                BLOCK / 4,
                indented(&one, 1)
            );
        }
    }
    text + "workgroupBarrier();\n"
}

/// The same one by one, where rows do not begin at fours: neighbours of a subgroup write neighbours. A thread
/// stays in its column, and reads the results of some rows before it writes any.
fn write_singly(
    product: &Product,
    tile: &CoopTile,
    writer: &Writer,
    wide: usize,
    terms: &Terms,
    [i, first]: [usize; 2],
) -> String {
    /// Rows that are read at once.
    const AT_ONCE: usize = 4;
    let (row_edge, column_edge) = edges(product, tile);
    let across = (BLOCK * wide).min(SUBGROUP);
    let down = SUBGROUP / across;
    let mut text = "workgroupBarrier();\n".to_string();
    for side in (0..BLOCK * wide).step_by(across) {
        let mut one = format!("let column_at = {side}u + tid % {across}u;\n");
        let _ = writeln!(one, "let n = n0 + own_n + {}u + column_at;", first * BLOCK);
        let mut rows = String::new();
        if let Terms::Split(split) = terms {
            one += &split.scales.column();
        }
        let mut writes = String::new();
        for r in 0..AT_ONCE {
            let _ = writeln!(rows, "let down{r} = turn + {}u + tid % {SUBGROUP}u / {across}u;", r * down);
            let _ = writeln!(rows, "let row_at{r} = m0 + own_m + {}u + down{r};", i * BLOCK);
            let sum = format!("results[stage + down{r} * stride + column_at / 4u][column_at % 4u]");
            rows += &match terms {
                Terms::Halves => format!("let value{r} = {sum};\n"),
                Terms::Split(split) => {
                    let last = product.m - 1;
                    let m = if row_edge { format!("min(row_at{r}, {last}u)") } else { format!("row_at{r}") };
                    split.scales.apply_one(&sum, &m, r)
                }
            };
            let write = writer.one(&format!("row_at{r}"), "n", &format!("value{r}"));
            let _ = if row_edge {
                write!(writes, "if (row_at{r} < {}u) {{\n{}}}\n", product.m, indented(&write, 1))
            } else {
                write!(writes, "{{\n{}}}\n", indented(&write, 1))
            };
        }
        rows += &writes;
        let turns = format!(
            "for (var turn = 0u; turn < {BLOCK}u; turn += {}u) {{\n{}}}\n",
            AT_ONCE * down,
            indented(&rows, 1)
        );
        one += &if column_edge {
            format!("if (n < {}u) {{\n{}}}\n", product.n, indented(&turns, 1))
        } else {
            turns
        };
        let _ = write!(text, "{{\n{}}}\n", indented(&one, 1));
    }
    text + "workgroupBarrier();\n"
}

/// Whether tiles reach beyond the last row, and the last column.
fn edges(product: &Product, tile: &CoopTile) -> (bool, bool) {
    (!product.m.is_multiple_of(tile.m), !product.n.is_multiple_of(tile.n))
}
