//! Opening files that are files. A named pipe makes whoever opens it wait, a device may never end, and both can have the
//! name of a model.

use std::fs::{File, FileType, Metadata};
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// What is parsed as a whole (headers, tokenizers, indices, pickles) is refused beyond this many bytes.
pub const MAX_HEADER_BYTES: usize = 100_000_000;

/// What a file is, if it is no regular one.
fn kind(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a named pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    if kind.is_dir() { "a folder" } else { "something else" }
}

/// Opens what `is_allowed`. Looked at before it is opened, which is when a pipe would wait, and once more afterwards.
fn open_if(path: &Path, is_allowed: impl Fn(&Metadata) -> bool) -> Result<File> {
    let check = |about: &Metadata| {
        if is_allowed(about) {
            return Ok(());
        }
        let what = format!("it is {}, not a regular file", kind(about.file_type()));
        Err(Error::new(ErrorKind::InvalidInput, what))
    };
    check(&std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Opens a regular file, or what a link to one leads to.
pub fn open(path: &Path) -> Result<File> {
    open_if(path, Metadata::is_file)
}

/// The bytes of a regular file of at most so many.
pub fn read(path: &Path, most: usize) -> Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    let too_long = || {
        let what = format!("it has {length} bytes, and at most {most} are read");
        Err(Error::new(ErrorKind::InvalidData, what))
    };
    if length > most as u64 {
        return too_long();
    }
    let mut bytes = Vec::with_capacity(length as usize);
    // It may grow meanwhile.
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most { too_long() } else { Ok(bytes) }
}

/// [`read`] as text.
pub fn read_text(path: &Path, most: usize) -> Result<String> {
    String::from_utf8(read(path, most)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Error::new(ErrorKind::InvalidData, format!("it is not UTF-8 text: byte {at} cannot be"))
    })
}

/// All bytes of a regular file, or of a pipe that somebody was told to read from.
pub fn read_file_or_pipe(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_if(path, is_file_or_pipe)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_file_or_pipe(about: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if about.file_type().is_fifo() {
            return true;
        }
    }
    about.is_file()
}
