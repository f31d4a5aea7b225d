//! Files inside of a tar archive: blocks of 512 bytes, a header before every file.

use super::file::Source;
use crate::error::Result;

const BLOCK: usize = 512;

/// Calls `take` with the name of every file, without its folders, and a way to read it; what is not read is passed
/// over.
pub(super) fn each_file(
    source: &mut Source<'_>,
    mut take: impl FnMut(&str, u64, &mut Source<'_>) -> Result<bool>,
) -> Result<()> {
    loop {
        let header = source.read(BLOCK as u64, "a tar header")?;
        // An archive ends with blocks of zeros.
        if header.iter().all(|&b| b == 0) {
            return Ok(());
        }
        if number(&header[148..156]) != Some(checksum(&header)) {
            return Err(source.damaged("a header of the archive is wrong"));
        }
        let Some(size) = number(&header[124..136]) else {
            return Err(source.damaged("the archive does not say how long a file is"));
        };
        let name = text(&header[..100]);
        let name = name.rsplit('/').next().unwrap_or_default();
        let is_file = matches!(header[156], b'0' | 0);
        if !(is_file && take(name, size, source)?) {
            source.skip(size, "archived files")?;
        }
        source.skip(size.next_multiple_of(BLOCK as u64) - size, "archived files")?;
    }
}

/// The sum of a header's bytes, with blanks in place of the sum itself.
fn checksum(header: &[u8]) -> u64 {
    header.iter().enumerate().map(|(k, &b)| u64::from(if (148..156).contains(&k) { b' ' } else { b })).sum()
}

/// The octal number of a field.
fn number(field: &[u8]) -> Option<u64> {
    u64::from_str_radix(text(field).trim(), 8).ok().filter(|&n| n < 1 << 48)
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}
