//! A file's tensors as a printed table.

use super::weights::Entry;
use crate::printable::printable_cell as cell;
use std::fmt;

/// Longer names, types and shapes are cut in a table, as nobody would find the next column.
const MAX_NAME_CHARS: usize = 200;
const MAX_DTYPE_CHARS: usize = 24;
const MAX_SHAPE_CHARS: usize = 80;

/// Bytes as people read them.
fn size(bytes: usize) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    let mut amount = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if amount < 1000.0 {
            break;
        }
        (amount, unit) = (amount / 1000.0, next);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") }
}

/// A shape, as far as a table shows it: a file may say that there are millions of axes.
fn shape_text(shape: &[usize]) -> String {
    let shown = &shape[..shape.len().min(MAX_SHAPE_CHARS)];
    format!("{shown:?}")
}

/// One line a tensor, and a last one for all of them.
pub(super) fn write(f: &mut fmt::Formatter<'_>, entries: &[Entry]) -> fmt::Result {
    let titles = ["name", "type", "shape"].map(String::from);
    let cells = |e: &Entry| {
        [
            cell(e.name(), MAX_NAME_CHARS),
            cell(e.dtype_name(), MAX_DTYPE_CHARS),
            cell(&shape_text(e.shape()), MAX_SHAPE_CHARS),
        ]
    };
    let rows: Vec<[String; 3]> = std::iter::once(titles).chain(entries.iter().map(cells)).collect();
    let width = |k: usize| rows.iter().map(|row| row[k].chars().count()).max().unwrap_or(0);
    let [name, dtype, shape] = [0, 1, 2].map(width);
    let sizes = std::iter::once("size".to_string()).chain(entries.iter().map(|e| size(e.bytes())));
    for ([a, b, c], size) in rows.iter().zip(sizes) {
        writeln!(f, "{a:name$}  {b:dtype$}  {c:shape$}  {size:>9}")?;
    }
    // Shapes of types that Volta does not have may be anything.
    let count = |e: &Entry| e.shape().iter().fold(1usize, |all, &extent| all.saturating_mul(extent));
    let numbers = entries.iter().map(count).fold(0, usize::saturating_add);
    let bytes = entries.iter().map(Entry::bytes).fold(0, usize::saturating_add);
    write!(f, "{} tensors, {numbers} numbers, {}", entries.len(), size(bytes))
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_a_unit_that_suits_them() {
        assert_eq!(size(999), "999 B");
        assert_eq!(size(1500), "1.5 kB");
        assert_eq!(size(2_340_000_000), "2.3 GB");
    }
}
