//! Text from files and folders, with errors that name the file and the byte.

use crate::error::{Error, Result, bail};
use crate::regular_file;
use std::path::{Path, PathBuf};

/// Files of a folder that count as text.
const ENDINGS: [&str; 2] = ["txt", "md"];

/// The text of a file, or of all text files under a folder, and which files these were.
pub(super) fn read(path: &Path) -> Result<(String, Vec<PathBuf>)> {
    if !path.exists() {
        bail!(
            Io,
            "there is no file, folder or named set {}; the named sets are {}",
            path.display(),
            super::named_sets().iter().map(|set| set.name).collect::<Vec<_>>().join(", ")
        );
    }
    if !path.is_dir() {
        return Ok((read_text(path)?, vec![path.to_path_buf()]));
    }
    let mut files = Vec::new();
    collect(path, &mut files)?;
    files.sort_unstable();
    if files.is_empty() {
        bail!(Data, "there are no .txt or .md files under {}", path.display());
    }
    let texts = files.iter().map(|file| read_text(file)).collect::<Result<Vec<_>>>()?;
    Ok((texts.join("\n"), files))
}

/// Adds the text files under a folder. Links to folders are not followed: they may lead in circles.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |error| Error::io(folder, &error, "list a folder of text");
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))).map_err(failed)?;
        let is_text =
            path.extension().is_some_and(|e| ENDINGS.iter().any(|ending| e.eq_ignore_ascii_case(ending)));
        if kind.is_dir() {
            collect(&path, files)?;
        } else if is_text && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// A file's text, without the mark that some editors put before UTF-8.
pub(super) fn read_text(path: &Path) -> Result<String> {
    let bytes =
        regular_file::read_file_or_pipe(path).map_err(|error| Error::io(path, &error, "read a text"))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{FEFF}').map(String::from).unwrap_or(text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let byte = error.as_bytes()[at];
            bail!(
                Data,
                "{} is not UTF-8: byte {at} is 0x{byte:02X}; convert it, for instance with iconv -t utf-8",
                path.display()
            )
        }
    }
}
