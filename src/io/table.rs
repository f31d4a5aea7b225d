//! A file's tensors as a printed table.

use super::weights::Entry;
use std::fmt;

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

/// One line a tensor, and a last one for all of them.
pub(super) fn write(f: &mut fmt::Formatter<'_>, entries: &[Entry]) -> fmt::Result {
    let shapes: Vec<String> = entries.iter().map(|e| format!("{:?}", e.shape())).collect();
    let widest = |texts: &mut dyn Iterator<Item = usize>, title: usize| texts.max().unwrap_or(0).max(title);
    let name = widest(&mut entries.iter().map(|e| e.name().chars().count()), 4);
    let dtype = widest(&mut entries.iter().map(|e| e.dtype_name().len()), 4);
    let shape = widest(&mut shapes.iter().map(String::len), 5);
    writeln!(f, "{:name$}  {:dtype$}  {:shape$}  {:>9}", "name", "type", "shape", "size")?;
    for (e, text) in entries.iter().zip(&shapes) {
        writeln!(f, "{:name$}  {:dtype$}  {text:shape$}  {:>9}", e.name(), e.dtype_name(), size(e.bytes()))?;
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
