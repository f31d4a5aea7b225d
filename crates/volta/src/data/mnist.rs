//! MNIST and Fashion-MNIST: IDX files, gzipped or not.
//!
//! An IDX file is two zero bytes, the type of its elements (8: bytes), the number of axes, their extents as big-endian
//! words, and the elements.

use super::file::{Source, find};
use super::images::LabeledImages;
use crate::call::Call;
use crate::error::Result;
use std::path::Path;

const BYTES: u8 = 8;
const CLASSES: usize = 10;

/// Extents and elements of an IDX file of `RANK` axes.
fn read_idx<const RANK: usize>(source: &mut Source<'_>) -> Result<([usize; RANK], Vec<u8>)> {
    let magic = source.read(4, "IDX magic")?;
    let wanted = [0, 0, BYTES, RANK as u8];
    if magic != wanted {
        return Err(source.damaged(&format!("it begins with {magic:?} where an IDX file has {wanted:?}")));
    }
    let mut extents = [0; RANK];
    for extent in &mut extents {
        let word = source.read(4, "IDX extents")?;
        *extent = u32::from_be_bytes([word[0], word[1], word[2], word[3]]) as usize;
    }
    let Some(count) = extents.iter().try_fold(1u64, |n, &e| n.checked_mul(e as u64)) else {
        return Err(source.damaged(&format!("nothing has extents of {extents:?}")));
    };
    let elements = source.read(count, "elements")?;
    source.end()?;
    Ok((extents, elements))
}

fn read(mut images: Source<'_>, mut labels: Source<'_>) -> Result<LabeledImages> {
    let ([count, height, width], pixels) = read_idx::<3>(&mut images)?;
    let ([labelled], classes) = read_idx::<1>(&mut labels)?;
    if count != labelled {
        let other = images.name.display();
        return Err(labels.damaged(&format!("it has {labelled} labels for the {count} images of {other}")));
    }
    LabeledImages::new(pixels, classes, [1, height, width], CLASSES, &labels.name)
}

/// Reads `<part>-images-idx3-ubyte` and `<part>-labels-idx1-ubyte`, or the same with `.gz`.
fn read_part(folder: &Path, part: &str, dataset: &str) -> Result<LabeledImages> {
    let help = format!(
        "name the folder of its files, or fetch them with {dataset}::download (feature \"download\")"
    );
    let open = |stem: &str| {
        let name = format!("{part}-{stem}-ubyte");
        Source::open(&find(folder, &[name.clone(), format!("{name}.gz")], &help)?)
    };
    read(open("images-idx3")?, open("labels-idx1")?)
}

macro_rules! datasets {
    ($($(#[$meta:meta])* $name:ident),*) => {$(
        $(#[$meta])*
        pub struct $name;

        impl $name {
            /// The 60,000 images to train on, from the folder that has the files.
            #[track_caller]
            pub fn train(folder: impl AsRef<Path>) -> Result<LabeledImages> {
                let _call = Call::enter(concat!(stringify!($name), "::train"));
                read_part(folder.as_ref(), "train", stringify!($name))
            }

            /// The 10,000 images to test on.
            #[track_caller]
            pub fn test(folder: impl AsRef<Path>) -> Result<LabeledImages> {
                let _call = Call::enter(concat!(stringify!($name), "::test"));
                read_part(folder.as_ref(), "t10k", stringify!($name))
            }

            /// The contents of a file of images and one of labels, gzipped or not: for where there are no files.
            #[track_caller]
            pub fn from_bytes(images: &[u8], labels: &[u8]) -> Result<LabeledImages> {
                let _call = Call::enter(concat!(stringify!($name), "::from_bytes"));
                read(Source::of_bytes("images", images)?, Source::of_bytes("labels", labels)?)
            }
        }
    )*};
}
datasets! {
    /// Handwritten digits: 28 × 28, one channel, ten classes.
    ///
    /// ```no_run
    /// use volta::data::{DataLoader, Dataset, Mnist, ToFloat};
    /// let train = Mnist::train("data/mnist")?;
    /// let loader = DataLoader::over(train.map(ToFloat), 64).with_shuffle(true).with_workers(2);
    /// # Ok::<(), volta::Error>(())
    /// ```
    Mnist,
    /// Pieces of clothing, in MNIST's format: 28 × 28, one channel, ten classes.
    FashionMnist
}
