//! Files that are written whole or not at all: under another name first, which is given up when everything is on the
//! disk. Whoever reads sees the old file or the new one, whatever happens meanwhile.
//!
//! A writer holds a lock on its unfinished file. So one that was killed can be told from one that is still writing, and
//! what the first has left may be removed at any time.

use crate::error::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the names of unfinished files end with.
const UNFINISHED: &str = ".unfinished";

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

/// Writes a file: whole, or not at all. Whatever happens meanwhile, the file at `path` is the old one or the new one.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("volta-doc-write-{}", std::process::id()));
/// volta::io::write_file(&path, b"step,loss\n")?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"step,loss\n");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), volta::Error>(())
/// ```
#[cfg(not(target_arch = "wasm32"))]
#[track_caller]
pub fn write_file(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<()> {
    write(path.as_ref(), |sink| sink(bytes.as_ref()))
}

/// Removes what writers of the file at `path` have left beside it that were killed meanwhile; not what others write now.
#[cfg(not(target_arch = "wasm32"))]
#[track_caller]
pub fn clear_unfinished(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
    clear(folder_of(path), &format!(".{name}."))
}

/// Removes every unfinished file in a folder whose name begins like this and whose writer is gone.
#[cfg(not(target_arch = "wasm32"))]
#[track_caller]
pub(super) fn clear(folder: &Path, prefix: &str) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(folder, &e, "list the folder");
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(prefix) && name.ends_with(UNFINISHED) && is_abandoned(&path) {
            match fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io(&path, &e, "remove the file"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether nobody writes an unfinished file any more.
#[cfg(not(target_arch = "wasm32"))]
fn is_abandoned(path: &Path) -> bool {
    // Where files cannot be locked nothing tells; a folder belongs to one training at a time.
    File::open(path).is_ok_and(|file| !matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A new file of this name that is locked for as long as it is open.
fn create_locked(path: &Path) -> std::io::Result<File> {
    loop {
        // A process of the same number may have left one behind.
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        // Where files cannot be locked they are written all the same.
        let _ = file.lock();
        // Somebody may have taken it for a file left behind before it was locked.
        if fs::exists(path)? {
            return Ok(file);
        }
    }
}

/// The number of this process; a tab has none.
fn process() -> u32 {
    if cfg!(target_arch = "wasm32") { 0 } else { std::process::id() }
}

/// Puts a file at `path` that `write` writes piece by piece.
#[track_caller]
pub(crate) fn write(
    path: &Path,
    write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(path, &e, "write the file");
    let folder = folder_of(path);
    let Some(name) = path.file_name() else {
        return Err(failed(std::io::Error::other("the path names no file")));
    };
    // Another name for every writer, so that two of them do not mix.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}-{number}{UNFINISHED}", process()));
    let temporary = folder.join(hidden);
    let file = create_locked(&temporary).map_err(failed)?;
    let mut unfinished = Unfinished(Some(temporary.clone()));
    let mut out = BufWriter::with_capacity(BUFFER, file);
    write(&mut |bytes| out.write_all(bytes).map_err(failed))?;
    let file = out.into_inner().map_err(|e| failed(e.into_error()))?;
    file.sync_all().map_err(failed)?;
    // Unlocked before it has its name, it could be taken for a file left behind; Windows renames no open file.
    {
        let _open = (!cfg!(windows)).then_some(file);
        fs::rename(&temporary, path).map_err(failed)?;
    }
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
    fn what_killed_writers_left_is_cleared_and_what_others_write_now_is_not() {
        let folder = std::env::temp_dir().join(format!("volta-unfinished-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        let left = |name: &str| fs::write(folder.join(name), b"cut off").unwrap();
        left(".file.1-0.unfinished");
        left(".other.1-0.unfinished");
        write_file(&path, b"old").unwrap();
        write(&path, |sink| {
            sink(b"new")?;
            clear(&folder, "")
        })
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        left(".file.1-0.unfinished");
        left(".other.1-0.unfinished");
        clear_unfinished(&path).unwrap();
        assert!(
            !folder.join(".file.1-0.unfinished").exists() && folder.join(".other.1-0.unfinished").exists()
        );
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_path_that_names_no_file_is_an_error() {
        let error = write(Path::new(".."), |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
    }
}
