//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// All files below a folder with this ending, in order; not those that were built or installed.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    add(folder, ending, &mut found);
    found.sort();
    found
}

fn add(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !["target", "node_modules", "dist"].contains(&&*name) && !name.starts_with('.') {
            add(&path, ending, found);
        } else if path.extension().is_some_and(|e| e == ending) {
            found.push(path);
        }
    }
}

/// A file's text.
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The path of a file, from the repository's folder on, with slashes.
pub fn name(path: &Path) -> String {
    let name = path.strip_prefix(root()).unwrap_or(path).to_string_lossy();
    name.replace('\\', "/")
}
