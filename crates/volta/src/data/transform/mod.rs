//! What is done to samples as they are read. Randomness comes from a [`SampleRng`] that knows the seed, the epoch and the
//! sample, so that any number of workers makes the same batches.
//!
//! Images are arrays whose last two axes are height and width. `geometric` moves pixels, `resize` blends
//! them, `photometric` changes numbers.

mod geometric;
mod photometric;
mod resize;

pub use geometric::{CenterCrop, Pad, RandomCrop, RandomHorizontalFlip};
pub use photometric::{Normalize, OneHot, ToFloat};
pub use resize::Resize;

use super::array::Array;
use super::sample_rng::SampleRng;
use crate::error::{Result, bail};

/// A change of an array. Tuples and vectors of transforms apply one after the other.
///
/// ```
/// use volta::data::{Dataset, Normalize, RandomCrop, RandomHorizontalFlip, SyntheticDigits, ToFloat};
/// let data = SyntheticDigits::new(10, 0).map((
///     RandomCrop::new(28, 28).with_padding(4),
///     RandomHorizontalFlip::new(0.5),
///     ToFloat,
///     Normalize::new(&[0.13], &[0.31]),
/// ));
/// assert_eq!(data.get(0)?.input.dtype(), volta::DType::F32);
/// # Ok::<(), volta::Error>(())
/// ```
pub trait Transform: Send + Sync {
    /// The array changed; what is random is drawn from `draw`.
    fn apply<'a>(&self, array: Array<'a>, draw: &mut SampleRng) -> Result<Array<'a>>;
}

impl<T: Transform + ?Sized> Transform for Box<T> {
    fn apply<'a>(&self, array: Array<'a>, draw: &mut SampleRng) -> Result<Array<'a>> {
        (**self).apply(array, draw)
    }
}

impl<T: Transform> Transform for Vec<T> {
    fn apply<'a>(&self, array: Array<'a>, draw: &mut SampleRng) -> Result<Array<'a>> {
        self.iter().try_fold(array, |array, transform| transform.apply(array, draw))
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: Transform),*> Transform for ($($name,)*) {
            #[allow(non_snake_case, reason = "a type and its value share their name")]
            fn apply<'a>(&self, array: Array<'a>, draw: &mut SampleRng) -> Result<Array<'a>> {
                let ($($name,)*) = self;
                $(let array = $name.apply(array, draw)?;)*
                Ok(array)
            }
        }
    )*};
}
tuples! {
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
}

/// A transform that a closure does; made by [`from_fn`].
#[derive(Clone, Debug)]
pub struct FromFn<F>(F);

/// A transform that `f` does.
///
/// ```
/// use volta::data::{Array, Dataset, Elements, SyntheticDigits, from_fn};
/// let inverted = SyntheticDigits::new(10, 0).map(from_fn(|image, _draw| {
///     let shape = image.shape();
///     match image.into_elements() {
///         Elements::U8(pixels) => Array::try_new(pixels.iter().map(|p| 255 - p).collect::<Vec<u8>>(), &shape),
///         _ => unreachable!("digits are bytes"),
///     }
/// }));
/// assert_eq!(inverted.len(), 10);
/// ```
pub fn from_fn<F>(f: F) -> FromFn<F>
where
    F: for<'a> Fn(Array<'a>, &mut SampleRng) -> Result<Array<'a>> + Send + Sync,
{
    FromFn(f)
}

impl<F> Transform for FromFn<F>
where
    F: for<'a> Fn(Array<'a>, &mut SampleRng) -> Result<Array<'a>> + Send + Sync,
{
    fn apply<'a>(&self, array: Array<'a>, draw: &mut SampleRng) -> Result<Array<'a>> {
        (self.0)(array, draw)
    }
}

/// Height and width of an image.
fn image_size(array: &Array<'_>, what: &str) -> Result<[usize; 2]> {
    match array.shape()[..] {
        [.., height, width] => Ok([height, width]),
        _ => bail!(Data, "{what} needs an image, and this has shape {}", array.shape()),
    }
}

/// The array's shape with another height and width.
fn resized(array: &Array<'_>, [height, width]: [usize; 2]) -> Vec<usize> {
    let shape = array.shape();
    let planes = &shape[..shape.rank() - 2];
    [planes, &[height, width]].concat()
}
