//! What was found to be the fastest variant for each problem, in memory and in a file beside the compiled pipelines. A file
//! belongs to one adapter, driver, version of Volta and set of abilities; one that is damaged or another's is as good as
//! none, and said once.

use super::disk_cache::{checksum, unwrap, wrap, write_whole};
use crate::caps::Caps;
use crate::lower::selections::Selections;
use std::path::{Path, PathBuf};
use std::sync::Once;
use volta_ir::error::{Error, ErrorKind, Result};
use volta_ir::regular_file::{self, MAX_HEADER_BYTES};

/// The first bytes of a file, with the version of its form.
const MAGIC: &[u8; 8] = b"voltatn1";

/// What a file holds: nothing if there is none; an error if it is not whole or not the owner's.
fn read(file: &Path, owner: &str) -> Result<Selections> {
    let bytes = match regular_file::read(file, MAX_HEADER_BYTES) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Selections::default()),
        Err(e) => return Err(unusable(file, &format!("cannot be read: {e}"))),
    };
    let text = unwrap(MAGIC, &bytes).and_then(|data| std::str::from_utf8(data).ok());
    let text = text.ok_or_else(|| unusable(file, "is damaged"))?;
    Selections::from_text(text, owner).ok_or_else(|| unusable(file, "is of another device or version"))
}

fn unusable(file: &Path, why: &str) -> Error {
    let message = format!(
        "the file of tuned choices {} {why}; delete it, or tune again (`volta tune --help`)",
        file.display()
    );
    Error::new(ErrorKind::Data, message)
}

/// A device's choices and where they stay.
pub(crate) struct TuningCache {
    pub selections: Selections,
    /// Counts changes: programs made before are of no use then.
    pub revision: u64,
    owner: String,
    /// None where nobody wants files.
    file: Option<PathBuf>,
}

impl TuningCache {
    /// The choices for an adapter with these abilities, as far as the disk has them.
    pub fn open(info: &wgpu::AdapterInfo, caps: &Caps) -> TuningCache {
        let owner = owner(info, caps);
        let name = format!("tuned-{:016x}", checksum(owner.as_bytes()));
        let file = volta_ir::environment::values().kernel_cache.as_ref().map(|folder| folder.join(name));
        TuningCache::of(owner, file)
    }

    fn of(owner: String, file: Option<PathBuf>) -> TuningCache {
        let mut kept = TuningCache { selections: Selections::default(), revision: 0, owner, file };
        kept.selections = kept.on_disk();
        kept
    }

    fn on_disk(&self) -> Selections {
        static WARNED: Once = Once::new();
        let read = self.file.as_ref().map(|file| read(file, &self.owner));
        read.unwrap_or_else(|| Ok(Selections::default())).unwrap_or_else(|error| {
            WARNED.call_once(|| volta_ir::warn::warn(error.message()));
            Selections::default()
        })
    }

    /// Adds choices, here and in the file, which others may have added to meanwhile.
    pub fn add(&mut self, new: Selections) -> Result<()> {
        let mut all = self.on_disk();
        all.extend(std::mem::take(&mut self.selections));
        all.extend(new);
        self.selections = all;
        self.revision += 1;
        let Some(file) = &self.file else { return Ok(()) };
        let bytes = wrap(MAGIC, self.selections.to_text(&self.owner).as_bytes());
        write_whole(file, &bytes).map_err(|e| {
            let message = format!("the tuned choices could not be written to {}: {e}", file.display());
            Error::new(ErrorKind::Io, message)
        })
    }

    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

/// Whose choices these are, in one line.
fn owner(info: &wgpu::AdapterInfo, caps: &Caps) -> String {
    let wgpu::AdapterInfo { name, vendor, device, backend, driver, driver_info, .. } = info;
    let version = env!("CARGO_PKG_VERSION");
    format!("volta {version}, {name} {vendor:x}:{device:x}, {backend}, {driver} {driver_info}, {caps:?}")
        .replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::selections::DEFAULT;

    #[test]
    fn a_file_gives_back_what_was_written_to_its_owner_alone() {
        let folder = std::env::temp_dir().join(format!("volta-choices-{}", std::process::id()));
        let file = folder.join("tuned");
        let open = |owner: &str| TuningCache::of(owner.into(), Some(file.clone()));
        assert_eq!(open("me").selections, Selections::default());
        open("me").add(Selections::only("a product", "tiled")).unwrap();
        // Whoever opened it before adds to what is there.
        let mut first = open("me");
        open("me").add(Selections::only("another", DEFAULT)).unwrap();
        first.add(Selections::only("a product", "plain")).unwrap();
        let again = open("me");
        assert_eq!(again.selections.get("a product"), Some("plain"));
        assert_eq!(again.selections.get("another"), Some(DEFAULT));
        assert_eq!(open("you").selections, Selections::default());
        assert!(read(&file, "you").unwrap_err().message().contains("another device"));

        let whole = std::fs::read(&file).unwrap();
        for cut in [0, 3, 8, 15, 16, 20, whole.len() - 1] {
            std::fs::write(&file, &whole[..cut]).unwrap();
            assert!(read(&file, "me").unwrap_err().message().contains("damaged"), "cut off at {cut}");
            let mut scribbled = whole.clone();
            scribbled[cut] ^= 1;
            std::fs::write(&file, scribbled).unwrap();
            assert!(read(&file, "me").is_err(), "scribbled on at {cut}");
        }
        // Tuning again mends it.
        let mut damaged = open("me");
        assert_eq!(damaged.selections, Selections::default());
        damaged.add(Selections::only("a product", "tiled")).unwrap();
        assert_eq!(open("me").selections, Selections::only("a product", "tiled"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn without_a_file_choices_last_as_long_as_the_device() {
        let mut kept = TuningCache::of("me".into(), None);
        kept.add(Selections::only("a product", "tiled")).unwrap();
        assert_eq!((kept.selections.get("a product"), kept.revision), (Some("tiled"), 1));
    }
}
