//! What becomes of the sums: they pass through workgroup memory, to be finished by position.

use super::{BLOCK, CoopTile, MOST_STAGED, SUBGROUP, Terms};
use crate::gpu::gemm::product::Product;
use crate::gpu::gemm::wgsl::indented;
use crate::gpu::gemm::write::Writer;
use std::fmt::Write;

/// Fours of a block, and of a row of it.
const QUADS: usize = BLOCK * BLOCK / 4;
const ACROSS: usize = BLOCK / 4;

/// Fours between rows: so four of them, of which a subgroup stores eight columns at once, are in different banks.
const BETWEEN: usize = 2;

/// Where the blocks of results lie that a subgroup finishes at once.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    /// Blocks.
    count: usize,
    /// Whether they lie side by side, so that rows reach over all of them.
    in_rows: bool,
    /// Fours from one row to the next.
    row: usize,
}

impl Stage {
    /// What there are so many bytes of memory for, each subgroup. Where results are written by `fours`, as broad rows as can
    /// be, or else as many blocks; single ones are always written row by row.
    pub fn new(tile: &CoopTile, bytes: usize, fours: bool) -> Option<Stage> {
        let broad = tile.blocks()[1];
        let rows =
            |count: usize, between: usize| Stage { count, in_rows: true, row: count * ACROSS + between };
        let fits = |stage: &Stage| 16 * stage.quads() <= bytes;
        if fours {
            let most = broad.min(MOST_STAGED);
            let blocks = |count: usize| Stage { count, in_rows: false, row: ACROSS };
            let in_rows = (2..=most).rev().map(|count| rows(count, BETWEEN));
            return in_rows.chain((1..=MOST_STAGED).rev().map(blocks)).find(fits);
        }
        // A subgroup shares rows of 16, 32 or 64 out.
        let all = [4, 2, 1].into_iter().filter(|&count| broad.is_multiple_of(count));
        all.flat_map(|count| [rows(count, BETWEEN), rows(count, 0)]).find(fits)
    }

    /// Fours of a subgroup.
    pub fn quads(&self) -> usize {
        if self.in_rows { BLOCK * self.row } else { self.count * QUADS }
    }

    /// Fours from one block to the next.
    fn apart(&self) -> usize {
        if self.in_rows { ACROSS } else { QUADS }
    }
}

/// Blocks that lie side by side, and in which place the first of them is stored.
#[derive(Clone, Copy)]
struct Row {
    i: usize,
    first: usize,
    count: usize,
    place: usize,
}

/// Every subgroup lays some blocks of results out in its part of workgroup memory, its threads finish them, and so on.
pub(super) fn finish(
    product: &Product,
    tile: &CoopTile,
    writer: &Writer,
    stage: &Stage,
    terms: &Terms,
) -> String {
    let [tall, broad] = tile.blocks();
    let mut text = writer.begin(product);
    let _ = writeln!(text, "let stage = subgroup * {}u;\nlet stride = {}u;", stage.quads(), stage.row);
    // Where a matrix is stored must have a name: an expression is lost in translation.
    for number in 0..stage.count {
        let _ = writeln!(text, "let stage{number} = stage + {}u;", number * stage.apart());
    }
    let rounds: Vec<Vec<Row>> = if stage.in_rows {
        let firsts = |i| (0..broad).step_by(stage.count).map(move |first| (i, first));
        let row = |(i, first)| vec![Row { i, first, count: stage.count.min(broad - first), place: 0 }];
        (0..tall).flat_map(firsts).map(row).collect()
    } else {
        let blocks: Vec<(usize, usize)> = tile.each_block().collect();
        let row = |(place, &(i, first))| Row { i, first, count: 1, place };
        blocks.chunks(stage.count).map(|some| some.iter().enumerate().map(row).collect()).collect()
    };
    for rows in rounds {
        for Row { i, first, count, place } in &rows {
            for j in 0..*count {
                let _ =
                    writeln!(text, "coopStoreT(c{i}_{}, &results[stage{}], stride);", first + j, place + j);
            }
        }
        text += "workgroupBarrier();\n";
        let write = if writer.width() == 4 { write_quads } else { write_singly };
        text.extend(rows.iter().map(|row| write(product, tile, writer, terms, row)));
        text += "workgroupBarrier();\n";
    }
    text
}

/// Writes blocks of results four neighbours at a time. All of a thread's are written out one after the other, so that
/// what the epilogue loads for them is on its way at once.
fn write_quads(product: &Product, tile: &CoopTile, writer: &Writer, terms: &Terms, row: &Row) -> String {
    let (row_edge, column_edge) = edges(product, tile);
    let Row { i, first, count, place } = row;
    let across = ACROSS * count;
    let mut text = String::new();
    for some in (0..BLOCK * across).step_by(SUBGROUP) {
        let at = format!("results[stage{place} + place / {across}u * stride + place % {across}u]");
        let mut one = format!("let n = n0 + own_n + {}u + place % {across}u * 4u;\n", first * BLOCK);
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
    let place = {some}u + tid % {SUBGROUP}u;
    let m = m0 + own_m + {}u + place / {across}u;
{}}}
",
            i * BLOCK,
            indented(&one, 1)
        );
    }
    text
}

/// The same one by one, where rows do not begin at fours: neighbours of a subgroup write neighbours. A thread
/// stays in its column, and reads the results of some rows before it writes any.
fn write_singly(product: &Product, tile: &CoopTile, writer: &Writer, terms: &Terms, row: &Row) -> String {
    /// Rows that are read at once.
    const AT_ONCE: usize = 4;
    let (row_edge, column_edge) = edges(product, tile);
    let Row { i, first, count, .. } = row;
    let across = (BLOCK * count).min(SUBGROUP);
    let down = SUBGROUP / across;
    let mut text = String::new();
    for side in (0..BLOCK * count).step_by(across) {
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
    text
}

/// Whether tiles reach beyond the last row, and the last column.
fn edges(product: &Product, tile: &CoopTile) -> (bool, bool) {
    (!product.m.is_multiple_of(tile.m), !product.n.is_multiple_of(tile.n))
}

#[cfg(test)]
mod tests {
    use super::super::TILES;
    use super::*;

    #[test]
    fn results_lie_within_their_memory() {
        for (tile, _) in TILES {
            let broad = tile.blocks()[1];
            for (bytes, fours) in (0..6000).step_by(128).flat_map(|bytes| [(bytes, true), (bytes, false)]) {
                let Some(stage) = Stage::new(&tile, bytes, fours) else {
                    assert!(bytes < 16 * QUADS, "{tile:?} has no room in {bytes} bytes");
                    continue;
                };
                assert!(16 * stage.quads() <= bytes && stage.count > 0);
                assert!(fours || stage.in_rows && broad.is_multiple_of(stage.count));
                let last = (stage.count - 1) * stage.apart() + (BLOCK - 1) * stage.row + ACROSS;
                assert!(last <= stage.quads(), "{tile:?} in {bytes} bytes");
            }
        }
    }
}
