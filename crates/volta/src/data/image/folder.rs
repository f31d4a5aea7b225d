//! A folder with a folder of images for every class.

use super::read_image;
use crate::call::Call;
use crate::data::array::Array;
use crate::data::dataset::{Dataset, Sample};
use crate::error::{Error, Result, bail};
use std::path::{Path, PathBuf};

const EXTENSIONS: [&str; 7] = ["png", "jpg", "jpeg", "bmp", "ppm", "pgm", "pnm"];

/// Images in folders, one for each class: `cats/1.png`, `dogs/2.jpg`. They are read when they are asked for, as bytes
/// of `[3, height, width]`; bring them to one size with [`Resize`](crate::data::Resize) or a crop. Classes are numbered
/// in the order of their names. Images in folders inside of a class belong to it, unless these are links. Files of other
/// kinds, and those whose names begin with a dot, are left out.
#[derive(Clone, Debug)]
pub struct ImageFolder {
    classes: Vec<String>,
    samples: Vec<(PathBuf, i32)>,
}

/// What a folder holds, by name, without hidden things.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| Error::io(folder, &e, "list a folder of images");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn is_image(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension))
}

/// The images of a class, those in folders inside of it too.
fn images(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in entries(folder)? {
        if !path.is_dir() {
            all.extend(is_image(&path).then_some(path));
        } else if !path.is_symlink() {
            all.extend(images(&path)?);
        }
    }
    Ok(all)
}

impl ImageFolder {
    /// Lists the classes and the images of a folder.
    #[track_caller]
    pub fn open(folder: impl AsRef<Path>) -> Result<ImageFolder> {
        let _call = Call::enter("ImageFolder::open");
        let folder = folder.as_ref();
        let (mut classes, mut samples) = (Vec::new(), Vec::new());
        for path in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
            let class = classes.len() as i32;
            classes.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            samples.extend(images(&path)?.into_iter().map(|p| (p, class)));
        }
        if samples.is_empty() {
            bail!(
                Data,
                "there are no images in the folders inside of {}: it needs one folder a class, with files ending in {}",
                folder.display(),
                EXTENSIONS.join(", ")
            );
        }
        Ok(ImageFolder { classes, samples })
    }

    /// The names of the classes; a target is an index into them.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The file of a sample.
    pub fn path(&self, index: usize) -> &Path {
        &self.samples[index].0
    }
}

impl Dataset for ImageFolder {
    fn len(&self) -> usize {
        self.samples.len()
    }

    fn get(&self, index: usize) -> Result<Sample<'_>> {
        let (path, class) = &self.samples[index];
        Ok(Sample { input: read_image(path)?, target: Array::scalar(*class) })
    }
}
