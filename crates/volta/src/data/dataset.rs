//! Samples by index.

use super::array::Array;
use super::mapped::{Mapped, SampleHalf};
use super::subset_concat::{Concat, Subset};
use super::transform::Transform;
use crate::error::Result;
use std::sync::Arc;

/// An input and what a model should make of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a> {
    /// What goes in.
    pub input: Array<'a>,
    /// What should come out.
    pub target: Array<'a>,
}

/// Which walk through a dataset this is: what is drawn at random depends on it and on the sample's index, and on
/// nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// The loader's seed.
    pub seed: u64,
    /// How many walks there were before.
    pub epoch: u64,
}

/// Samples by index, read by several threads at once.
///
/// A sample may borrow from the dataset: then its elements are copied once, into the batch.
///
/// ```
/// use volta::data::{Array, DataLoader, Dataset, Sample};
///
/// /// Numbers and their squares.
/// struct Squares;
///
/// impl Dataset for Squares {
///     fn len(&self) -> usize {
///         10
///     }
///
///     fn get(&self, index: usize) -> volta::Result<Sample<'_>> {
///         let x = index as f32;
///         Ok(Sample { input: Array::scalar(x), target: Array::scalar(x * x) })
///     }
/// }
///
/// for (x, y) in DataLoader::over(Squares, 4) {
///     assert_eq!(x.square().to_vec::<f32>(), y.to_vec::<f32>());
/// }
/// ```
pub trait Dataset: Send + Sync {
    /// How many samples there are.
    fn len(&self) -> usize;

    /// The sample of an index below [`len`](Self::len).
    fn get(&self, index: usize) -> Result<Sample<'_>>;

    /// The sample as a walk finds it. Datasets that draw at random, and those around others, say more than `get`.
    fn get_in(&self, index: usize, pass: Pass) -> Result<Sample<'_>> {
        let _ = pass;
        self.get(index)
    }

    /// How many `map`s were put around the samples: each draws numbers of its own.
    #[doc(hidden)]
    fn maps(&self) -> u32 {
        0
    }

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same samples with their inputs transformed.
    fn map<T: Transform>(self, transform: T) -> Mapped<Self, T>
    where
        Self: Sized,
    {
        Mapped::new(self, transform, SampleHalf::Input)
    }

    /// The same samples with their targets transformed.
    fn map_target<T: Transform>(self, transform: T) -> Mapped<Self, T>
    where
        Self: Sized,
    {
        Mapped::new(self, transform, SampleHalf::Target)
    }

    /// The samples of these indices, in this order.
    #[track_caller]
    fn subset(self, indices: Vec<usize>) -> Subset<Self>
    where
        Self: Sized,
    {
        Subset::new(Arc::new(self), indices)
    }

    /// All samples dealt out at random to two datasets; the second, for validation, gets this share of them.
    ///
    /// ```
    /// use volta::data::{Dataset, SyntheticDigits};
    /// let (train, validation) = SyntheticDigits::new(100, 0).split(0.2, 7);
    /// assert_eq!((train.len(), validation.len()), (80, 20));
    /// ```
    #[track_caller]
    fn split(self, validation: f64, seed: u64) -> (Subset<Self>, Subset<Self>)
    where
        Self: Sized,
    {
        self.try_split(validation, seed).unwrap_or_else(|e| e.raise())
    }

    /// [`split`](Self::split) that returns its error.
    #[track_caller]
    fn try_split(self, validation: f64, seed: u64) -> Result<(Subset<Self>, Subset<Self>)>
    where
        Self: Sized,
    {
        super::subset_concat::split(self, validation, seed)
    }

    /// The samples of this one, then those of the other.
    fn concat(self, other: impl Dataset + 'static) -> Concat
    where
        Self: Sized + 'static,
    {
        Concat::new(vec![Arc::new(self), Arc::new(other)])
    }
}

macro_rules! forwarded {
    ($($pointer:ty),*) => {$(
        impl<D: Dataset + ?Sized> Dataset for $pointer {
            fn len(&self) -> usize {
                (**self).len()
            }

            fn get(&self, index: usize) -> Result<Sample<'_>> {
                (**self).get(index)
            }

            fn get_in(&self, index: usize, pass: Pass) -> Result<Sample<'_>> {
                (**self).get_in(index, pass)
            }

            fn maps(&self) -> u32 {
                (**self).maps()
            }
        }
    )*};
}
forwarded!(Arc<D>, Box<D>, &D);
