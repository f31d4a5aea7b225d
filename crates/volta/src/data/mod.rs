//! Data: samples by index, transforms on their way, and loaders that make batches of them.
//!
//! | file | holds |
//! |---|---|
//! | `array` `dataset` | plain arrays; samples, and where they come from |
//! | `subset_concat` `mapped` `transform` | parts, joins and changes of datasets |
//! | `tensors` `mnist` `cifar` `image` `windows` `digits` | datasets: in memory, from files, drawn by rule |
//! | `loader` `batches` `batch` `workers` | walks through a dataset: order and place, loops, batches, threads |
//! | `sample_rng` | random numbers by seed, epoch and sample |
//! | `file` `tar` | files, zipped or not, that may be damaged |
//! | `download` | fetching files, when asked to (feature `download`) |
//!
//! ```
//! use volta::data::{DataLoader, Dataset, SyntheticDigits, ToFloat};
//!
//! let loader = DataLoader::over(SyntheticDigits::new(100, 0).map(ToFloat), 32).with_shuffle(true);
//! for (images, classes) in &loader {
//!     assert_eq!(images.shape()[1..], [1, 28, 28]);
//!     assert_eq!(images.size(0), classes.size(0));
//! }
//! ```

mod array;
mod batch;
mod batches;
mod cifar;
mod dataset;
mod digits;
#[cfg(all(feature = "download", not(target_arch = "wasm32")))]
mod download;
mod file;
mod image;
mod images;
mod loader;
mod mapped;
mod mnist;
mod sample_rng;
mod subset_concat;
mod tar;
mod tensors;
mod transform;
mod windows;
mod workers;

pub use array::{Array, Elements};
pub use batches::{Batches, TryBatches};
pub use cifar::{Cifar10, Cifar100};
pub use dataset::{Dataset, Pass, Sample};
pub use digits::SyntheticDigits;
#[cfg(all(feature = "download", not(target_arch = "wasm32")))]
pub use download::{Download, download};
pub use image::{ImageFolder, decode_image, read_image};
pub use images::LabeledImages;
pub use loader::DataLoader;
pub use mapped::Mapped;
pub use mnist::{FashionMnist, Mnist};
pub use sample_rng::SampleRng;
/// The old name of [`SampleRng`].
#[deprecated(note = "it is called `SampleRng` now")]
pub type Draw = SampleRng;
pub use subset_concat::{Concat, Subset};
pub use tensors::TensorDataset;
pub use transform::{
    CenterCrop, FromFn, Normalize, OneHot, Pad, RandomCrop, RandomHorizontalFlip, Resize, ToFloat, Transform,
    from_fn,
};
pub use windows::TokenWindows;
