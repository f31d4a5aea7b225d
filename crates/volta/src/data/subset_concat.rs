//! Parts of datasets, and datasets one after the other.

use super::dataset::{Dataset, Pass, Sample};
use super::sample_rng::{SampleRng, Stream};
use crate::call::Call;
use crate::error::{Result, bail};
use std::sync::Arc;

/// Some samples of a dataset, in an order of choice.
#[derive(Clone, Debug)]
pub struct Subset<D> {
    dataset: Arc<D>,
    indices: Vec<usize>,
}

impl<D: Dataset> Subset<D> {
    /// The samples of these indices, in this order.
    #[track_caller]
    pub fn new(dataset: Arc<D>, indices: Vec<usize>) -> Subset<D> {
        Subset::try_new(dataset, indices).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(dataset: Arc<D>, indices: Vec<usize>) -> Result<Subset<D>> {
        let _call = Call::enter("Subset");
        let len = dataset.len();
        if let Some(index) = indices.iter().find(|&&k| k >= len) {
            bail!(Argument, "there is no sample {index} in a dataset of {len}");
        }
        Ok(Subset { dataset, indices })
    }

    /// Where its samples stand in the dataset.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, index: usize) -> Result<Sample<'_>> {
        self.dataset.get(self.indices[index])
    }

    fn get_in(&self, index: usize, pass: Pass) -> Result<Sample<'_>> {
        self.dataset.get_in(self.indices[index], pass)
    }

    fn maps(&self) -> u32 {
        self.dataset.maps()
    }
}

#[track_caller]
pub(super) fn split<D: Dataset>(dataset: D, validation: f64, seed: u64) -> Result<(Subset<D>, Subset<D>)> {
    let _call = Call::enter("split");
    if !(0.0..=1.0).contains(&validation) {
        bail!(Argument, "{validation} is not a share: it must lie in 0..=1");
    }
    let len = dataset.len();
    let mut order = SampleRng::new(Pass { seed, epoch: 0 }, Stream::Split, 0).permutation(len);
    let rest = order.split_off(len - (len as f64 * validation).round() as usize);
    let dataset = Arc::new(dataset);
    Ok((Subset { dataset: dataset.clone(), indices: order }, Subset { dataset, indices: rest }))
}

/// Datasets one after the other.
#[derive(Clone)]
pub struct Concat {
    parts: Vec<Arc<dyn Dataset>>,
    /// How many samples there are up to the end of each part.
    ends: Vec<usize>,
}

impl Concat {
    /// The samples of all parts, in order.
    pub fn new(parts: Vec<Arc<dyn Dataset>>) -> Concat {
        let mut end = 0;
        let ends = parts
            .iter()
            .map(|part| {
                end += part.len();
                end
            })
            .collect();
        Concat { parts, ends }
    }

    /// The part that has a sample, and the sample's index there.
    fn place(&self, index: usize) -> (&dyn Dataset, usize) {
        let part = self.ends.partition_point(|&end| end <= index);
        (&*self.parts[part], index - if part > 0 { self.ends[part - 1] } else { 0 })
    }
}

impl Dataset for Concat {
    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn get(&self, index: usize) -> Result<Sample<'_>> {
        let (part, index) = self.place(index);
        part.get(index)
    }

    fn get_in(&self, index: usize, pass: Pass) -> Result<Sample<'_>> {
        let (part, index) = self.place(index);
        part.get_in(index, pass)
    }

    fn maps(&self) -> u32 {
        self.parts.iter().map(|part| part.maps()).max().unwrap_or(0)
    }
}
