//! Where results go: positions of (item, row, column) in the output, or in partial sums.

use super::wgsl::{Digits, sum, times};

#[derive(Clone, Debug)]
pub(super) struct OutputView {
    pub items: Digits,
    /// From one row to the next.
    pub row: i64,
    pub columns: Columns,
}

#[derive(Clone, Debug)]
pub(super) enum Columns {
    Strided(Digits),
    /// Pixels of images of which a phase has every few: (image, row, column) of its `grid`.
    Phased {
        grid: [usize; 2],
        image: i64,
        stride: [usize; 2],
        extent: [usize; 2],
    },
}

impl OutputView {
    /// Whether runs of four columns are neighbours.
    pub fn quads(&self) -> bool {
        self.has_runs(4)
    }

    /// Whether runs of so many columns are neighbours.
    pub fn has_runs(&self, length: usize) -> bool {
        let columns = matches!(&self.columns, Columns::Strided(digits) if digits.has_runs(length));
        columns && self.row % length as i64 == 0 && self.items.are_multiples(length)
    }

    /// The position of the first element of `item`.
    pub fn item(&self, item: &str) -> String {
        self.items.position(item)
    }

    pub fn row(&self, row: &str) -> String {
        times(row, self.row)
    }

    /// Lines that declare `NAME`, the position of column `n`, and a condition under which there is one.
    pub fn column(&self, name: &str, n: &str) -> (String, Option<String>) {
        match &self.columns {
            Columns::Strided(digits) => (format!("let {name} = {};\n", digits.position(n)), None),
            Columns::Phased { grid: [rows, columns], image, stride, extent } => {
                let pixels = rows * columns;
                let image = times(&format!("({n} / {pixels}u)"), *image);
                let at = sum(&[image, format!("{name}_y * {}u", extent[1]), format!("{name}_x")]);
                let text = format!(
                    "let {name}_y = ({n} % {pixels}u) / {columns}u * {}u + start_y;
let {name}_x = ({n} % {columns}u) * {}u + start_x;
let {name} = {at};
",
                    stride[0], stride[1]
                );
                let inside = format!("{name}_y < {}u && {name}_x < {}u", extent[0], extent[1]);
                (text, Some(inside))
            }
        }
    }
}
