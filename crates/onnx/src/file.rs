//! Reading files, whole or a part, with errors that name them.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use volta::{Error, Result};
use volta_ir::{bail, regular_file};

/// All of a regular file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |e: std::io::Error| Error::io(path, &e, "read the file");
    let mut file = regular_file::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A part of a regular file, which must be that long.
pub(crate) fn read_part(path: &Path, offset: u64, length: usize) -> Result<Vec<u8>> {
    let failed = |e: std::io::Error| Error::io(path, &e, "read the model's data");
    let mut file = regular_file::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if offset.checked_add(length as u64).is_none_or(|end| end > size) {
        bail!(
            Data,
            "{}: a tensor of {length} bytes at {offset} reaches beyond the file's {size} bytes",
            path.display()
        );
    }
    let mut bytes = vec![0; length];
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    file.read_exact(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
