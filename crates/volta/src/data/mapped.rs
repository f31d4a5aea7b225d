//! A dataset whose samples are transformed as they are read.

use super::dataset::{Dataset, Pass, Sample};
use super::sample_rng::{SampleRng, Stream};
use super::transform::Transform;
use crate::error::Result;

/// Which half of a sample is transformed.
#[derive(Clone, Copy, Debug)]
pub(super) enum SampleHalf {
    Input,
    Target,
}

/// A dataset whose inputs or targets are transformed; made by [`Dataset::map`] and [`Dataset::map_target`].
#[derive(Clone, Debug)]
pub struct Mapped<D, T> {
    dataset: D,
    transform: T,
    part: SampleHalf,
}

impl<D, T> Mapped<D, T> {
    pub(super) fn new(dataset: D, transform: T, part: SampleHalf) -> Self {
        Mapped { dataset, transform, part }
    }
}

impl<D: Dataset, T: Transform> Dataset for Mapped<D, T> {
    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn get(&self, index: usize) -> Result<Sample<'_>> {
        self.get_in(index, Pass::default())
    }

    fn get_in(&self, index: usize, pass: Pass) -> Result<Sample<'_>> {
        let Sample { input, target } = self.dataset.get_in(index, pass)?;
        let mut draw = SampleRng::new(pass, Stream::Transform(self.dataset.maps()), index);
        Ok(match self.part {
            SampleHalf::Input => Sample { input: self.transform.apply(input, &mut draw)?, target },
            SampleHalf::Target => Sample { input, target: self.transform.apply(target, &mut draw)? },
        })
    }

    fn maps(&self) -> u32 {
        self.dataset.maps() + 1
    }
}
