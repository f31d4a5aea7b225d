//! CIFAR-10 and CIFAR-100, the binary version: from the extracted folder or straight from the archive.
//!
//! Every file is a row of records: the label (CIFAR-100: coarse, then fine), then 32 × 32 red, green and blue bytes.

use super::file::{Source, damaged};
use super::images::LabeledImages;
use super::tar;
use crate::call::Call;
use crate::error::{Result, bail};
use std::collections::BTreeMap;
use std::path::Path;

const SHAPE: [usize; 3] = [3, 32, 32];
const PIXELS: usize = 3 * 32 * 32;

/// One of the two datasets.
struct CifarFiles {
    name: &'static str,
    archive: &'static str,
    /// The folder that the archive holds.
    folder: &'static str,
    train: &'static [&'static str],
    test: &'static [&'static str],
    labels: usize,
}

const TEN: CifarFiles = CifarFiles {
    name: "Cifar10",
    archive: "cifar-10-binary.tar.gz",
    folder: "cifar-10-batches-bin",
    train: &[
        "data_batch_1.bin",
        "data_batch_2.bin",
        "data_batch_3.bin",
        "data_batch_4.bin",
        "data_batch_5.bin",
    ],
    test: &["test_batch.bin"],
    labels: 1,
};

const HUNDRED: CifarFiles = CifarFiles {
    name: "Cifar100",
    archive: "cifar-100-binary.tar.gz",
    folder: "cifar-100-binary",
    train: &["train.bin"],
    test: &["test.bin"],
    labels: 2,
};

impl CifarFiles {
    /// All images of `files`; `label` says which of a record's labels counts, of how many classes.
    fn read(&self, path: &Path, files: &[&str], label: usize, classes: usize) -> Result<LabeledImages> {
        let extracted = [path.to_path_buf(), path.join(self.folder)];
        let archive = if path.is_file() { path.to_path_buf() } else { path.join(self.archive) };
        let contents = if let Some(folder) = extracted.iter().find(|folder| folder.join(files[0]).exists()) {
            files.iter().map(|name| Source::open(&folder.join(name))?.rest()).collect::<Result<_>>()?
        } else if archive.exists() {
            from_archive(&archive, files)?
        } else {
            bail!(
                Io,
                "there is neither {} nor {} in {}: name the folder of its files, or fetch them with {}::download \
                 (feature \"download\")",
                files[0],
                self.archive,
                path.display(),
                self.name
            );
        };
        self.parse(path, files, contents, label, classes)
    }

    fn parse(
        &self,
        path: &Path,
        files: &[&str],
        contents: Vec<Vec<u8>>,
        label: usize,
        known: usize,
    ) -> Result<LabeledImages> {
        let record = self.labels + PIXELS;
        let count: usize = contents.iter().map(|c| c.len() / record).sum();
        let (mut pixels, mut classes) = (Vec::with_capacity(count * PIXELS), Vec::with_capacity(count));
        for (name, content) in files.iter().zip(contents) {
            if content.is_empty() || !content.len().is_multiple_of(record) {
                let how = format!("{} bytes are not a whole number of records of {record}", content.len());
                return Err(damaged(&path.join(name), &how));
            }
            for one in content.chunks_exact(record) {
                classes.push(one[label]);
                pixels.extend_from_slice(&one[self.labels..]);
            }
        }
        LabeledImages::new(pixels, classes, SHAPE, known, path)
    }
}

/// The contents of some files of an archive.
fn from_archive(archive: &Path, files: &[&str]) -> Result<Vec<Vec<u8>>> {
    let mut source = Source::open(archive)?;
    let mut found = BTreeMap::new();
    tar::each_file(&mut source, |name, size, source| {
        let Some(place) = files.iter().position(|file| *file == name) else { return Ok(false) };
        found.insert(place, source.read(size, name)?);
        Ok(true)
    })?;
    if let Some(missing) = (0..files.len()).find(|k| !found.contains_key(k)) {
        return Err(source.damaged(&format!("the archive has no {}", files[missing])));
    }
    Ok(found.into_values().collect())
}

/// 32 × 32 colour images of ten classes.
pub struct Cifar10;

/// 32 × 32 colour images of a hundred classes, or of the twenty they belong to.
pub struct Cifar100;

macro_rules! parts {
    ($($dataset:ident: $($(#[$meta:meta])* $name:ident($layout:ident.$files:ident, $label:literal, $classes:literal))*;)*) => {$(
        impl $dataset {$(
            $(#[$meta])*
            #[track_caller]
            pub fn $name(path: impl AsRef<Path>) -> Result<LabeledImages> {
                let _call = Call::enter(concat!(stringify!($dataset), "::", stringify!($name)));
                $layout.read(path.as_ref(), $layout.$files, $label, $classes)
            }
        )*}
    )*};
}
parts! {
    Cifar10:
        /// The 50,000 images to train on, from the folder that has the files or the archive, or from the archive.
        train(TEN.train, 0, 10)
        /// The 10,000 images to test on.
        test(TEN.test, 0, 10);
    Cifar100:
        /// The 50,000 images to train on, of a hundred classes; from the folder that has the files or the archive, or
        /// from the archive.
        train(HUNDRED.train, 1, 100)
        /// The 10,000 images to test on, of a hundred classes.
        test(HUNDRED.test, 1, 100)
        /// The images to train on, of twenty classes.
        train_coarse(HUNDRED.train, 0, 20)
        /// The images to test on, of twenty classes.
        test_coarse(HUNDRED.test, 0, 20);
}
