//! Files that are written whole or not at all: under another name first, which is given up when everything is on the
//! disk. Whoever reads sees the old file or the new one, whatever happens meanwhile.

use crate::error::{Error, Result};
use std::fs::{self, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the names of unfinished files end with.
pub(super) const UNFINISHED: &str = ".unfinished";

/// Small pieces are collected to this size.
const BUFFER: usize = 1 << 20;

/// Removes the unfinished file unless it was finished.
struct Unfinished(Option<PathBuf>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // The error that brought us here is the one to tell.
            let _ = fs::remove_file(path);
        }
    }
}

/// Puts a file at `path` that `write` writes piece by piece.
#[track_caller]
pub(super) fn write(
    path: &Path,
    write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(path, &e, "write the file");
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Some(name) = path.file_name() else {
        return Err(failed(std::io::Error::other("the path names no file")));
    };
    // Another name for every writer, so that two of them do not mix.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}-{number}{UNFINISHED}", std::process::id()));
    let temporary = folder.join(hidden);
    // A process of the same number may have left one behind.
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary).map_err(failed)?;
    let mut unfinished = Unfinished(Some(temporary.clone()));
    let mut out = BufWriter::with_capacity(BUFFER, file);
    write(&mut |bytes| out.write_all(bytes).map_err(failed))?;
    let file = out.into_inner().map_err(|e| failed(e.into_error()))?;
    file.sync_all().map_err(failed)?;
    drop(file);
    fs::rename(&temporary, path).map_err(failed)?;
    unfinished.0 = None;
    sync_folder(folder).map_err(failed)
}

/// The new name must be on the disk as well.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> std::io::Result<()> {
    // Elsewhere a folder cannot be opened as a file.
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn what_fails_half_way_leaves_the_old_file_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("volta-atomic-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        write(&path, |sink| sink(b"old")).unwrap();
        let failed = write(&path, |sink| {
            sink(&vec![1; 3 * BUFFER])?;
            Err(Error::new(ErrorKind::Memory, "on purpose"))
        });
        assert_eq!(failed.unwrap_err().message(), "on purpose");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        write(&path, |sink| sink(b"new").and_then(|()| sink(b"er"))).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"newer");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_path_that_names_no_file_is_an_error() {
        let error = write(Path::new(".."), |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
    }
}
