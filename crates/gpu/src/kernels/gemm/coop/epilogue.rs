//! What becomes of the sums: they pass through workgroup memory, to be finished by position.

use super::{BLOCK, CoopTile, OperandType, SUBGROUP};
use crate::kernels::gemm::product::Product;
use crate::kernels::gemm::wgsl::indented;
use crate::kernels::gemm::write::Writer;
use std::fmt::Write;

/// Fours of a block's row.
const ACROSS: usize = BLOCK / 4;

/// Fours between rows: so four of them, of which a subgroup stores eight columns at once, are in different banks.
const BETWEEN: usize = 2;

/// Columns of results that are written side by side, where there is memory for them: halves then fill lines of 128 bytes.
const LINE: usize = 64;

/// Where results lie while they are finished: some blocks of every subgroup at once, those of subgroups that share their
/// rows side by side.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    /// Blocks of a subgroup.
    count: usize,
    /// Fours from one row to the next.
    row: usize,
}

impl Stage {
    /// What there are so many bytes of memory for.
    pub fn new(tile: &CoopTile, bytes: usize) -> Option<Stage> {
        let ([_, broad], sharing) = (tile.blocks(), tile.subgroups[1]);
        let is_line = |count: usize| count * sharing * BLOCK >= LINE;
        let stage = |count: usize, between| Stage { count, row: count * sharing * ACROSS + between };
        let fits = |stage: &Stage| 16 * stage.quads(tile) <= bytes;
        let counts =
            [4, 2, 1].into_iter().filter(|&count| broad.is_multiple_of(count) && !is_line(count / 2));
        counts.flat_map(|count| [stage(count, BETWEEN), stage(count, 0)]).find(fits)
    }

    /// Fours of all subgroups.
    pub fn quads(&self, tile: &CoopTile) -> usize {
        tile.subgroups[0] * self.shared()
    }

    /// Fours of the subgroups that share rows.
    fn shared(&self) -> usize {
        BLOCK * self.row
    }
}

/// Blocks of all subgroups that share rows, side by side: the row of blocks, and the first of every subgroup's own.
#[derive(Clone, Copy)]
struct Row {
    i: usize,
    first: usize,
    /// Columns, and threads that write them.
    columns: usize,
    threads: usize,
}

/// Subgroups lay some blocks of results out in workgroup memory, those that share rows finish these together, and so on.
pub(super) fn finish(
    product: &Product,
    tile: &CoopTile,
    writer: &Writer,
    stage: &Stage,
    terms: &OperandType,
) -> String {
    let ([tall, broad], sharing) = (tile.blocks(), tile.subgroups[1]);
    let mut text = writer.begin(product);
    let _ = write!(
        text,
        "let stage = subgroup / {sharing}u * {}u;
let stride = {}u;
let thread = tid % {}u;
",
        stage.shared(),
        stage.row,
        sharing * SUBGROUP
    );
    // Where a matrix is stored must have a name: an expression is lost in translation.
    for j in 0..stage.count {
        let at = j * sharing * ACROSS;
        let _ = writeln!(text, "let stage{j} = stage + subgroup % {sharing}u * {ACROSS}u + {at}u;");
    }
    let write = if writer.width() > 1 { write_runs } else { write_singly };
    let (columns, threads) = (stage.count * sharing * BLOCK, sharing * SUBGROUP);
    for (i, first) in (0..tall).flat_map(|i| (0..broad).step_by(stage.count).map(move |first| (i, first))) {
        for j in 0..stage.count {
            let _ = writeln!(text, "coopStoreT(c{i}_{}, &results[stage{j}], stride);", first + j);
        }
        text += "workgroupBarrier();\n";
        text += &write(product, tile, writer, terms, &Row { i, first, columns, threads });
        text += "workgroupBarrier();\n";
    }
    text
}

/// Writes blocks of results four or eight neighbours at a time. All of a thread's are written out one after the other, so
/// that what the epilogue loads for them is on its way at once.
fn write_runs(product: &Product, tile: &CoopTile, writer: &Writer, terms: &OperandType, row: &Row) -> String {
    let (row_edge, column_edge) = edges(product, tile);
    let Row { i, first, columns, threads } = *row;
    let width = writer.width() as usize;
    let across = columns / width;
    let mut text = String::new();
    for some in (0..BLOCK * across).step_by(threads) {
        let mut one = format!(
            "let n = n0 + {}u + place % {across}u * {width}u;
let at = stage + place / {across}u * stride + place % {across}u * {}u;
let out_row = {};
",
            tile.column(first),
            width / 4,
            writer.row("m")
        );
        one += &match terms {
            OperandType::Halves if width == 8 => {
                writer.eight("out_row", "n", ["results[at]", "results[at + 1u]"], column_edge)
            }
            OperandType::Halves => writer.quad("out_row", "n", "results[at]", column_edge),
            OperandType::Split(split) => {
                split.scales.apply("results[at]") + &writer.quad("out_row", "n", "value", column_edge)
            }
        };
        if row_edge {
            one = format!("if (m < {}u) {{\n{}}}\n", product.m, indented(&one, 1));
        }
        let _ = write!(
            text,
            "{{
    let place = {some}u + thread;
    let m = m0 + own_m + {}u + place / {across}u;
{}}}
",
            i * BLOCK,
            indented(&one, 1)
        );
    }
    text
}

/// The same one by one, where rows do not begin at fours: neighbours write neighbours. A thread
/// stays in its column, and reads the results of some rows before it writes any.
fn write_singly(
    product: &Product,
    tile: &CoopTile,
    writer: &Writer,
    terms: &OperandType,
    row: &Row,
) -> String {
    /// Rows that are read at once.
    const AT_ONCE: usize = 4;
    let (row_edge, column_edge) = edges(product, tile);
    let Row { i, first, columns, threads } = *row;
    let across = columns.min(threads);
    let down = threads / across;
    let mut text = String::new();
    for side in (0..columns).step_by(across) {
        let mut one = format!("let column_at = {side}u + thread % {across}u;\n");
        let _ = writeln!(one, "let n = n0 + {}u + column_at;", tile.column(first));
        let mut rows = String::new();
        if let OperandType::Split(split) = terms {
            one += &split.scales.column();
        }
        let mut writes = String::new();
        for r in 0..AT_ONCE {
            let _ = writeln!(rows, "let down{r} = turn + {}u + thread / {across}u;", r * down);
            let _ = writeln!(rows, "let row_at{r} = m0 + own_m + {}u + down{r};", i * BLOCK);
            let sum = format!("results[stage + down{r} * stride + column_at / 4u][column_at % 4u]");
            rows += &match terms {
                OperandType::Halves => format!("let value{r} = {sum};\n"),
                OperandType::Split(split) => {
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
        let iterations = format!(
            "for (var turn = 0u; turn < {BLOCK}u; turn += {}u) {{\n{}}}\n",
            AT_ONCE * down,
            indented(&rows, 1)
        );
        one += &if column_edge {
            format!("if (n < {}u) {{\n{}}}\n", product.n, indented(&iterations, 1))
        } else {
            iterations
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
    use super::*;
    use crate::kernels::gemm::coop::TILES;

    #[test]
    fn results_lie_within_their_memory() {
        for (tile, _) in TILES {
            let (broad, sharing) = (tile.blocks()[1], tile.subgroups[1]);
            let least = 4 * BLOCK * BLOCK * tile.subgroups[0] * sharing;
            for bytes in (0..49152).step_by(128) {
                let Some(stage) = Stage::new(&tile, bytes) else {
                    assert!(bytes < least, "{tile:?} has no room in {bytes} bytes");
                    continue;
                };
                assert!(16 * stage.quads(&tile) <= bytes);
                assert!(stage.count > 0 && broad.is_multiple_of(stage.count));
                let last = (BLOCK - 1) * stage.row + stage.count * sharing * ACROSS;
                assert!(last <= stage.shared(), "{tile:?} in {bytes} bytes");
            }
            let most = Stage::new(&tile, 1 << 20).expect("there is room");
            assert!(most.count == broad || most.count * sharing * BLOCK >= LINE, "{tile:?}");
        }
    }
}
