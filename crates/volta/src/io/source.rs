//! The bytes of a file, mapped into memory or held there, and what to call it in messages.

#[cfg(not(target_arch = "wasm32"))]
use crate::error::Result;
use crate::error::{Error, ErrorKind};
#[cfg(not(target_arch = "wasm32"))]
use crate::regular_file;
use std::ops::Deref;
#[cfg(not(target_arch = "wasm32"))]
use std::path::Path;

pub(super) struct Source {
    label: String,
    data: Data,
}

enum Data {
    #[cfg(not(target_arch = "wasm32"))]
    Mapped(memmap2::Mmap),
    Held(Vec<u8>),
}

impl Source {
    /// The bytes of a regular file; the system reads them when they are first looked at.
    #[cfg(not(target_arch = "wasm32"))]
    #[track_caller]
    pub fn open(path: &Path) -> Result<Source> {
        let failed = |e: std::io::Error| Error::io(path, &e, "read the file");
        let file = regular_file::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        let label = path.display().to_string();
        if about.len() == 0 {
            return Ok(Source { label, data: Data::Held(Vec::new()) });
        }
        // SAFETY: the bytes are only read, and copied before anything is concluded from them that memory safety
        // depends on. Volta itself never writes into a file that exists but puts a new one in its place; another
        // program that cuts the file short meanwhile ends this one, as it would with any mapped file.
        let data = Data::Mapped(unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?);
        Ok(Source { label, data })
    }

    /// Bytes that did not come from a file.
    pub fn held(bytes: Vec<u8>) -> Source {
        Source { label: "the given bytes".to_string(), data: Data::Held(bytes) }
    }

    /// The path, or what else it is called.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// An error that says what is wrong with this file.
    #[track_caller]
    pub fn wrong(&self, what: impl AsRef<str>) -> Error {
        Error::new(ErrorKind::Data, format!("{}: {}", self.label, what.as_ref()))
    }
}

impl Deref for Source {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.data {
            #[cfg(not(target_arch = "wasm32"))]
            Data::Mapped(map) => map,
            Data::Held(bytes) => bytes,
        }
    }
}
