//! Writing a tile's results: through `finish`, or as partial sums.

use super::output_view::Columns;
use super::output_view::OutputView;
use super::product::Product;
use super::split_k;
use super::wgsl::{Digits, indented, sum};
use std::fmt::Write;
use volta_ir::dtype::DType;

/// How results are written.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    target: OutputView,
    /// Columns that may be written, and how many at a time: 1, 4 or 8.
    columns: usize,
    width: u32,
    partial: bool,
}

impl Writer {
    /// To the output, once.
    pub fn finish(product: &Product) -> Writer {
        let quads = product.target.quads() && product.n.is_multiple_of(4);
        let width = if quads { 4 } else { 1 };
        Writer { target: product.target.clone(), columns: product.n, width, partial: false }
    }

    /// The same eight at a time where they are halves and lie so: what stores 16 bytes at once has half as much to do.
    pub fn in_eights(self, dtype: DType) -> Writer {
        let eights =
            dtype == DType::F16 && self.target.has_runs(8) && self.columns.is_multiple_of(8) && !self.partial;
        Writer { width: if eights { 8 } else { self.width }, ..self }
    }

    /// As the sums of one part; its rows are padded to whole fours.
    pub fn partial(product: &Product) -> Writer {
        let columns = product.n.next_multiple_of(4);
        let target = OutputView {
            items: Digits::line(product.items, (product.m * columns) as i64),
            row: columns as i64,
            columns: Columns::Strided(Digits::line(columns, 1)),
        };
        Writer { target, columns, width: 4, partial: true }
    }

    pub fn width(&self) -> u32 {
        self.width
    }

    /// Declares `out_item`, where the item begins.
    pub fn begin(&self, product: &Product) -> String {
        let item = self.target.item("item");
        let part = if self.partial {
            format!("part * {}u", split_k::numbers(&product.results()))
        } else {
            "0u".into()
        };
        format!("let out_item = {};\n", sum(&[item, part]))
    }

    /// Where row `m` begins.
    pub fn row(&self, m: &str) -> String {
        sum(&["out_item".into(), self.target.row(m)])
    }

    /// Writes `value` at row `m` and column `n`.
    pub fn one(&self, m: &str, n: &str, value: &str) -> String {
        let (column, inside) = self.target.column("column", n);
        let row = self.row(m);
        let call = if self.partial { "store_partial" } else { "finish" };
        let call = format!("{call}({row} + column, {value});");
        match inside {
            Some(inside) => format!("{column}if ({inside}) {{ {call} }}\n"),
            None => format!("{column}{call}\n"),
        }
    }

    /// Writes vec4 `value` at the row that begins at `row` and columns from `n` on (all names); `edge` where
    /// some of them may not exist.
    pub fn quad(&self, row: &str, n: &str, value: &str, edge: bool) -> String {
        if self.width > 1 {
            let call = if self.partial { "store4_partial" } else { "finish4" };
            return self.run(call, row, n, value, edge);
        }
        let mut text = String::new();
        for (s, part) in ["x", "y", "z", "w"].iter().enumerate() {
            let name = format!("{n}_{s}");
            let (column, inside) = self.target.column(&format!("{name}_at"), &name);
            let mut one = column;
            let call = format!("finish({row} + {name}_at, {value}.{part});");
            one += &match inside {
                Some(inside) => format!("if ({inside}) {{ {call} }}\n"),
                None => call + "\n",
            };
            let _ = writeln!(text, "let {name} = {n} + {s}u;");
            text += &if edge || s > 0 && !self.columns.is_multiple_of(4) {
                format!("if ({name} < {}u) {{\n{}}}\n", self.columns, indented(&one, 1))
            } else {
                one
            };
        }
        text
    }

    /// The same of eight, `low` and `high`.
    pub fn eight(&self, row: &str, n: &str, [low, high]: [&str; 2], edge: bool) -> String {
        debug_assert_eq!(self.width, 8, "eights were not asked for");
        self.run("finish8", row, n, &format!("{low}, {high}"), edge)
    }

    /// A call for neighbours from column `n` on.
    fn run(&self, call: &str, row: &str, n: &str, values: &str, edge: bool) -> String {
        let (column, inside) = self.target.column(&format!("{n}_at"), n);
        debug_assert!(inside.is_none(), "neighbours are of plain columns");
        let text = format!("{column}{call}({row} + {n}_at, {values});\n");
        if edge { format!("if ({n} < {}u) {{\n{}}}\n", self.columns, indented(&text, 1)) } else { text }
    }
}

/// Writes blocks of results: rows of (m, columns of (n, value)), in a tile of that size.
pub(super) fn write(
    product: &Product,
    writer: &Writer,
    tile: [usize; 2],
    rows: &[(String, Vec<(String, String)>)],
) -> String {
    let mut text = writer.begin(product);
    let (row_edge, column_edge) = (!product.m.is_multiple_of(tile[0]), !product.n.is_multiple_of(tile[1]));
    for (i, (m, columns)) in rows.iter().enumerate() {
        let _ = writeln!(text, "let row{i} = {m};");
        let mut one = String::new();
        let row = writer.row(&format!("row{i}"));
        let _ = writeln!(one, "let out_row{i} = {row};");
        for (g, (n, value)) in columns.iter().enumerate() {
            let _ = writeln!(one, "let n{i}_{g} = {n};");
            one += &writer.quad(&format!("out_row{i}"), &format!("n{i}_{g}"), value, column_edge);
        }
        text += &if row_edge {
            format!("if (row{i} < {}u) {{\n{}}}\n", product.m, indented(&one, 1))
        } else {
            one
        };
    }
    text
}
