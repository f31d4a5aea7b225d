//! Files that may be gzipped, read with an eye on what they claim to hold.

use crate::error::{Error, ErrorKind, Result, bail};
use crate::regular_file;
use std::io::{BufRead, BufReader, ErrorKind as Io, Read};
use std::path::{Path, PathBuf};

/// No deflate stream unfolds to more than this many times its size.
const MAX_DECOMPRESSION_RATIO: u64 = 1032;

/// What gzip packed.
#[cfg(feature = "gzip")]
fn unzip<'a>(_: &Path, reader: impl BufRead + 'a) -> Result<Box<dyn Read + 'a>> {
    Ok(Box::new(flate2::bufread::MultiGzDecoder::new(reader)))
}

#[cfg(not(feature = "gzip"))]
fn unzip<'a>(name: &Path, _: impl BufRead + 'a) -> Result<Box<dyn Read + 'a>> {
    bail!(Data, "{} is gzipped: unzip it, or enable the feature `gzip` of volta-ml", name.display());
}

/// Bytes from a file or from memory, unzipped if they begin as gzip does.
pub(super) struct Source<'a> {
    /// What errors call it.
    pub name: PathBuf,
    reader: Box<dyn Read + 'a>,
    /// More bytes than it can have.
    most: u64,
}

impl<'a> Source<'a> {
    pub fn open(path: &Path) -> Result<Source<'static>> {
        let failed = |e| Error::io(path, &e, "open a data file");
        let file = regular_file::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Source::new(path, BufReader::with_capacity(1 << 16, file), bytes)
    }

    pub fn of_bytes(name: &str, bytes: &'a [u8]) -> Result<Source<'a>> {
        Source::new(Path::new(name), bytes, bytes.len() as u64)
    }

    fn new(name: &Path, mut reader: impl BufRead + 'a, bytes: u64) -> Result<Source<'a>> {
        let start = reader.fill_buf().map_err(|e| Error::io(name, &e, "read a data file"))?;
        let zipped = start.starts_with(&[0x1f, 0x8b]);
        let most = if zipped { bytes.saturating_mul(MAX_DECOMPRESSION_RATIO) } else { bytes };
        let reader: Box<dyn Read + 'a> = if zipped { unzip(name, reader)? } else { Box::new(reader) };
        Ok(Source { name: name.to_path_buf(), reader, most })
    }

    /// The next `count` bytes, which `what` names.
    pub fn read(&mut self, count: u64, what: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // A count that the file cannot hold is not worth reading for.
        if count <= self.most {
            self.read_up_to(count, &mut bytes)?;
        }
        if (bytes.len() as u64) < count {
            return Err(self.damaged(&format!("it should have {count} bytes of {what}, and has fewer")));
        }
        Ok(bytes)
    }

    /// All that is left.
    pub fn rest(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_up_to(u64::MAX, &mut bytes)?;
        Ok(bytes)
    }

    fn read_up_to(&mut self, count: u64, bytes: &mut Vec<u8>) -> Result<()> {
        match self.reader.by_ref().take(count).read_to_end(bytes) {
            Ok(_) => Ok(()),
            // What the unzipper says about bytes that are no gzip stream.
            Err(e) if matches!(e.kind(), Io::InvalidData | Io::InvalidInput | Io::UnexpectedEof) => {
                Err(self.damaged(&format!("its gzip stream is broken or cut off ({e})")))
            }
            Err(e) => Err(Error::io(&self.name, &e, "read a data file")),
        }
    }

    /// Passes over the next `count` bytes.
    pub fn skip(&mut self, count: u64, what: &str) -> Result<()> {
        const STEP: u64 = 1 << 20;
        let mut left = count;
        while left > 0 {
            left -= self.read(left.min(STEP), what)?.len() as u64;
        }
        Ok(())
    }

    /// An error unless everything was read.
    pub fn end(&mut self) -> Result<()> {
        let mut more = Vec::new();
        self.read_up_to(1, &mut more)?;
        if more.is_empty() { Ok(()) } else { Err(self.damaged("it goes on after its end")) }
    }

    pub fn damaged(&self, how: &str) -> Error {
        damaged(&self.name, how)
    }
}

/// A file that is not what it should be.
pub(super) fn damaged(path: &Path, how: &str) -> Error {
    Error::new(ErrorKind::Data, format!("{}: {how}; the file is damaged or of another kind", path.display()))
}

/// The first of `names` that is in `folder`.
pub(super) fn find(folder: &Path, names: &[String], help: &str) -> Result<PathBuf> {
    match names.iter().map(|name| folder.join(name)).find(|path| path.exists()) {
        Some(path) => Ok(path),
        None => bail!(Io, "there is no {} in {}: {help}", names.join(" or "), folder.display()),
    }
}
