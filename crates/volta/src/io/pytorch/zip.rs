//! The entries of a zip archive, as far as PyTorch writes them: uncompressed, with 64-bit sizes where needed. Their
//! checksums are not looked at: PyTorch can be told not to write them.

use std::collections::HashMap;
use std::ops::Range;

const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const END_64_LOCATOR: &[u8] = b"PK\x06\x07";
const CENTRAL: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";
/// The extra field that holds 64-bit sizes.
const EXTRA_64: u16 = 1;
/// A 32-bit size of this value stands in the extra field instead.
const ELSEWHERE: u64 = u32::MAX as u64;

/// Little-endian numbers at fixed places of a record.
struct Record<'a>(&'a [u8]);

impl<'a> Record<'a> {
    /// `length` bytes at `at` that begin with `signature`.
    fn new(data: &'a [u8], at: usize, length: usize, signature: &[u8]) -> Option<Record<'a>> {
        let bytes = data.get(at..at.checked_add(length)?)?;
        bytes.starts_with(signature).then_some(Record(bytes))
    }

    fn number(&self, at: usize, bytes: usize) -> u64 {
        self.0[at..at + bytes].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
    }

    fn place(&self, at: usize, bytes: usize) -> usize {
        usize::try_from(self.number(at, bytes)).unwrap_or(usize::MAX)
    }
}

/// Where each entry's bytes lie, by its name.
pub(super) fn entries(data: &[u8]) -> Result<HashMap<String, Range<usize>>, String> {
    let cut =
        || "it begins like a zip archive but does not end like one: it is cut off or damaged".to_string();
    let (mut at, count) = directory(data).ok_or_else(cut)?;
    let mut entries = HashMap::new();
    for _ in 0..count {
        let record = Record::new(data, at, 46, CENTRAL).ok_or_else(cut)?;
        let (name, extra, comment) = (record.place(28, 2), record.place(30, 2), record.place(32, 2));
        let name_at = at + 46;
        let extra_at = name_at + name;
        let name = data.get(name_at..extra_at).ok_or_else(cut)?;
        let name = std::str::from_utf8(name).map_err(|_| "the name of an entry is not UTF-8".to_string())?;
        let extra = data.get(extra_at..extra_at + extra).ok_or_else(cut)?;
        at = extra_at + extra.len() + comment;
        if record.number(8, 2) & 1 != 0 || record.number(10, 2) != 0 {
            return Err(format!("its entry {name:?} is compressed or encrypted, which PyTorch never does"));
        }
        let range = range(data, &record, extra).ok_or_else(|| {
            format!("its entry {name:?} does not lie within the file: it is cut off or damaged")
        })?;
        if entries.insert(name.to_string(), range).is_some() {
            return Err(format!("two of its entries are called {name:?}"));
        }
    }
    Ok(entries)
}

/// Where the list of entries begins, and how many there are.
fn directory(data: &[u8]) -> Option<(usize, u64)> {
    // The record at the end may be followed by a comment of up to 65535 bytes.
    let last = data.len().checked_sub(22)?;
    let end = (last.saturating_sub(65535)..=last).rev().find(|&at| data[at..].starts_with(END))?;
    let record = Record::new(data, end, 22, END)?;
    let locator = end.checked_sub(20).and_then(|at| Record::new(data, at, 20, END_64_LOCATOR));
    if let Some(locator) = locator {
        let record = Record::new(data, locator.place(8, 8), 56, END_64)?;
        return Some((record.place(48, 8), record.number(32, 8)));
    }
    Some((record.place(16, 4), record.number(10, 2)))
}

/// Where an entry's bytes lie. The list gives the place of another record, which stands before them.
fn range(data: &[u8], record: &Record<'_>, extra: &[u8]) -> Option<Range<usize>> {
    let mut wide = wide_numbers(extra);
    // Those that do not fit 32 bits stand in the extra field, in this order.
    let mut number = |at: usize| match record.number(at, 4) {
        ELSEWHERE => wide.next(),
        n => Some(n),
    };
    let length = number(24)?;
    let stored = number(20)?;
    let offset = usize::try_from(number(42)?).ok()?;
    let local = Record::new(data, offset, 30, LOCAL)?;
    let start = offset.checked_add(30 + local.place(26, 2) + local.place(28, 2))?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (length == stored && end <= data.len()).then_some(start..end)
}

/// The numbers of the extra field for 64-bit sizes.
fn wide_numbers(mut extra: &[u8]) -> impl Iterator<Item = u64> {
    let mut found: &[u8] = &[];
    while let [a, b, c, d, rest @ ..] = extra {
        let (kind, length) = (u16::from_le_bytes([*a, *b]), usize::from(u16::from_le_bytes([*c, *d])));
        let Some((field, next)) = rest.split_at_checked(length) else { break };
        if kind == EXTRA_64 {
            found = field;
            break;
        }
        extra = next;
    }
    found.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes))
}
