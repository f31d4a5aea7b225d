//! Batches of a dataset: in which order, how many at once, made by whom, and where they arrive.

use super::array::Array;
use super::batch::Walk;
use super::batches::{Batches, TryBatches};
use super::dataset::{Dataset, Pass};
use super::sample_rng::{SampleRng, Stream};
use super::tensors::TensorDataset;
use crate::call::{Call, Origin};
use crate::default_device::default_device;
use crate::device::Device;
use crate::error::{Result, bail};
use crate::state::{State, Stateful};
use crate::tensor::{Tensor, next_key};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Walks through a dataset in batches, again and again.
///
/// ```
/// use volta::data::{DataLoader, Dataset, SyntheticDigits, ToFloat};
/// let loader = DataLoader::over(SyntheticDigits::new(100, 0).map(ToFloat), 32)
///     .with_shuffle(true)
///     .with_workers(2);
/// for _epoch in 0..2 {
///     for (images, classes) in &loader {
///         assert_eq!(images.shape()[1..], [1, 28, 28]);
///         assert_eq!(images.size(0), classes.size(0));
///     }
/// }
/// assert_eq!(loader.epoch(), 2);
/// ```
///
/// A loop goes through what is left of the epoch: after a `break`, or after [`Stateful::load_state`], the next one
/// goes on with the very next batch. The order depends on the seed and the epoch alone.
pub struct DataLoader {
    dataset: Arc<dyn Dataset>,
    batch_size: usize,
    shuffle: bool,
    drop_last: bool,
    seed: u64,
    device: Option<Device>,
    workers: Option<usize>,
    prefetch: Option<usize>,
    progress: Arc<Progress>,
    /// Which part of each batch it hands out, of how many.
    shard: (usize, usize),
}

/// Where a loader stands, told by whoever walks.
#[derive(Default)]
pub(super) struct Progress {
    place: Mutex<EpochPosition>,
    waited: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EpochPosition {
    pub epoch: u64,
    /// Batches of this epoch that were handed out.
    pub batch: usize,
}

impl Progress {
    pub fn place(&self) -> EpochPosition {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, place: EpochPosition) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    pub fn add_wait(&self, time: Duration) {
        self.waited.fetch_add(time.as_nanos() as u64, Relaxed);
    }
}

impl DataLoader {
    /// Samples that lie in memory one after the other: inputs, targets, the shapes of one of each, the batch size,
    /// and whether to shuffle. `DataLoader::new(images, classes, &[28, 28], &[10], 64, true)`.
    #[track_caller]
    pub fn new(
        data: Vec<f32>,
        targets: Vec<f32>,
        sample_shape: &[usize],
        target_shape: &[usize],
        batch_size: usize,
        shuffle: bool,
    ) -> DataLoader {
        DataLoader::try_new(data, targets, sample_shape, target_shape, batch_size, shuffle)
            .unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(
        data: Vec<f32>,
        targets: Vec<f32>,
        sample_shape: &[usize],
        target_shape: &[usize],
        batch_size: usize,
        shuffle: bool,
    ) -> Result<DataLoader> {
        let _call = Call::enter("DataLoader::new");
        let dataset = TensorDataset::try_new(rows(data, sample_shape)?, rows(targets, target_shape)?)?;
        Ok(DataLoader::try_over(dataset, batch_size)?.with_shuffle(shuffle))
    }

    /// The samples of a dataset in order, `batch_size` at once. To keep the dataset too, hand over an `Arc` of it.
    #[track_caller]
    pub fn over(dataset: impl Dataset + 'static, batch_size: usize) -> DataLoader {
        DataLoader::try_over(dataset, batch_size).unwrap_or_else(|e| e.raise())
    }

    /// [`over`](Self::over) that returns its error.
    #[track_caller]
    pub fn try_over(dataset: impl Dataset + 'static, batch_size: usize) -> Result<DataLoader> {
        let _call = Call::enter("DataLoader::over");
        if batch_size == 0 {
            bail!(Argument, "a batch needs at least one sample");
        }
        let [low, high] = next_key();
        Ok(DataLoader {
            dataset: Arc::new(dataset),
            batch_size,
            shuffle: false,
            drop_last: false,
            seed: u64::from(high) << 32 | u64::from(low),
            device: None,
            workers: None,
            prefetch: None,
            progress: Arc::default(),
            shard: (0, 1),
        })
    }

    /// In another order every epoch, or always in that of the indices, which is the default.
    #[must_use]
    pub fn with_shuffle(mut self, shuffle: bool) -> DataLoader {
        self.shuffle = shuffle;
        self
    }

    /// Where the random numbers of the order and of the transforms start. Unless said, the seed is drawn from what
    /// [`manual_seed`](crate::manual_seed) started.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> DataLoader {
        self.seed = seed;
        self
    }

    /// Leaves out the last batch of an epoch if it is smaller than the others.
    #[must_use]
    pub fn with_drop_last(mut self, drop_last: bool) -> DataLoader {
        self.drop_last = drop_last;
        self
    }

    /// Batches arrive on `device`; otherwise on the default device of the thread that asks for them. Unless told how
    /// many, one worker then uploads them ahead of use to a GPU.
    #[must_use]
    pub fn with_device(mut self, device: Device) -> DataLoader {
        self.device = Some(device);
        self
    }

    /// How many threads make batches ahead of use; with none they are made where they are asked for. The batches are
    /// the same with any number. A browser's tab has one thread: there it is always none.
    #[must_use]
    pub fn with_workers(mut self, workers: usize) -> DataLoader {
        self.workers = Some(workers);
        self
    }

    /// Hands out one part of each batch, of `count`: what rank `part` of as many learns from. Batches, their order and the loader's state
    /// are the same for any number of parts.
    ///
    /// ```
    /// use volta::data::{DataLoader, TensorDataset};
    /// use volta::Tensor;
    /// let data = || TensorDataset::from_tensors(&Tensor::arange(0, 8), &Tensor::arange(0, 8)).unwrap();
    /// let batch = |part, count| {
    ///     let loader = DataLoader::over(data(), 4).with_seed(1).with_shuffle(true).with_shard(part, count);
    ///     loader.iter().next().unwrap().0.to_vec::<i64>()
    /// };
    /// assert_eq!([batch(0, 2), batch(1, 2)].concat(), batch(0, 1));
    /// ```
    #[must_use]
    pub fn with_shard(mut self, part: usize, count: usize) -> DataLoader {
        self.set_shard(part, count);
        self
    }

    pub(crate) fn set_shard(&mut self, part: usize, count: usize) {
        assert!(part < count, "there is no part {part} among {count}");
        self.shard = (part, count);
    }

    /// Which part of each batch it hands out, and of how many.
    pub fn shard(&self) -> (usize, usize) {
        self.shard
    }

    /// How many samples a batch of this epoch has, with those of all parts.
    pub fn samples_of(&self, batch: usize) -> usize {
        let first = (batch * self.batch_size).min(self.dataset.len());
        (first + self.batch_size).min(self.dataset.len()) - first
    }

    /// A batch of this epoch, without going to it.
    #[track_caller]
    pub fn try_batch(&self, number: usize) -> Result<(Tensor, Tensor)> {
        if number >= self.len() {
            bail!(Argument, "there is no batch {number} among {}", self.len());
        }
        self.walk(self.progress.place().epoch, Origin::here("DataLoader")).batch(number)
    }

    /// How many batches the workers may be ahead; two for each unless said, and at least one.
    #[must_use]
    pub fn with_prefetch(mut self, batches: usize) -> DataLoader {
        self.prefetch = Some(batches.max(1));
        self
    }

    /// How many batches an epoch has.
    pub fn len(&self) -> usize {
        let samples = self.dataset.len();
        if self.drop_last { samples / self.batch_size } else { samples.div_ceil(self.batch_size) }
    }

    /// Whether an epoch has no batches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dataset.
    pub fn dataset(&self) -> &dyn Dataset {
        &*self.dataset
    }

    /// How many samples a batch has; the last of an epoch may have fewer.
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// How many epochs were walked through to their end.
    pub fn epoch(&self) -> u64 {
        self.progress.place().epoch
    }

    /// How many batches of this epoch were handed out.
    pub fn position(&self) -> usize {
        self.progress.place().batch
    }

    /// Goes to the beginning of an epoch.
    pub fn restart(&mut self, epoch: u64) {
        self.progress.set(EpochPosition { epoch, batch: 0 });
    }

    /// How long loops over this loader waited for their batches, all together. Not measured in browsers.
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.progress.waited.load(Relaxed))
    }

    /// The batch that comes next, without taking it; `None` at the end of an epoch.
    #[track_caller]
    pub fn peek(&self) -> Result<Option<(Tensor, Tensor)>> {
        let place = self.progress.place();
        if place.batch >= self.len() {
            return Ok(None);
        }
        self.walk(place.epoch, Origin::here("DataLoader")).batch(place.batch).map(Some)
    }

    /// What is left of the epoch; an item that fails panics with the whole message.
    #[track_caller]
    pub fn iter(&self) -> Batches<'_> {
        Batches(self.try_iter())
    }

    /// What is left of the epoch, as results. After an error it ends, and the next walk starts with the batch that
    /// failed.
    #[track_caller]
    pub fn try_iter(&self) -> TryBatches<'_> {
        // Whoever took the last batch and did not ask for one more is done with the epoch.
        let place = self.progress.place();
        if place.batch >= self.len() && !self.is_empty() {
            self.progress.set(EpochPosition { epoch: place.epoch + 1, batch: 0 });
        }
        self.rest()
    }

    /// What is left of the epoch, also if that is nothing but its end. Whoever moves the loader drops it before.
    #[track_caller]
    pub(crate) fn rest(&self) -> TryBatches<'static> {
        let (place, device) = (self.progress.place(), self.target());
        let workers = match self.workers {
            _ if cfg!(target_arch = "wasm32") => 0,
            Some(workers) => workers,
            None => usize::from(device.is_gpu()),
        };
        let walk = self.walk(place.epoch, Origin::here("DataLoader"));
        let ahead = self.prefetch.unwrap_or(2 * workers);
        TryBatches::new(walk, place, self.len(), self.progress.clone(), workers, ahead)
    }

    fn target(&self) -> Device {
        self.device.unwrap_or_else(default_device)
    }

    fn walk(&self, epoch: u64, origin: Origin) -> Walk {
        let pass = Pass { seed: self.seed, epoch };
        let order =
            self.shuffle.then(|| SampleRng::new(pass, Stream::Shuffle, 0).permutation(self.dataset.len()));
        let (dataset, batch_size) = (self.dataset.clone(), self.batch_size);
        Walk { dataset, pass, order, batch_size, shard: self.shard, device: self.target(), origin }
    }
}

/// As many rows of a shape as the elements make.
fn rows(elements: Vec<f32>, shape: &[usize]) -> Result<Array<'static>> {
    let size = shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e)).unwrap_or(0);
    if size == 0 || !elements.len().is_multiple_of(size) {
        bail!(Shape, "{} elements are not a whole number of samples of shape {shape:?}", elements.len());
    }
    let count = elements.len() / size;
    Array::try_new(elements, &[&[count], shape].concat())
}

impl Stateful for DataLoader {
    fn state(&self) -> State {
        let place = self.progress.place();
        State::new()
            .with("epoch", place.epoch as i64)
            .with("position", place.batch as i64)
            .with("seed", self.seed as i64)
            .with("samples", self.dataset.len() as i64)
            .with("batch_size", self.batch_size as i64)
            .with("shuffle", i64::from(self.shuffle))
            .with("drop_last", i64::from(self.drop_last))
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        let (epoch, batch) = (state.int("epoch")?, state.int("position")?);
        let saved = (state.int("samples")?, state.int("batch_size")?);
        let here = (self.dataset.len() as i64, self.batch_size as i64);
        if saved != here {
            bail!(
                Data,
                "the state is of a loader over {} samples in batches of {}, and this one has {} in batches of {}",
                saved.0,
                saved.1,
                here.0,
                here.1
            );
        }
        for (name, here) in [("shuffle", self.shuffle), ("drop_last", self.drop_last)] {
            // States that were saved before do not say it.
            if state.int(name).is_ok_and(|saved| (saved != 0) != here) {
                bail!(Data, "the state is of a loader with {name} {}, and this one has {here}", !here);
            }
        }
        let batch = usize::try_from(batch).unwrap_or(usize::MAX);
        if epoch < 0 || batch > self.len() {
            bail!(Data, "the saved state stands at batch {batch} of {} in epoch {epoch}", self.len());
        }
        self.seed = state.int("seed")? as u64;
        self.progress.set(EpochPosition { epoch: epoch as u64, batch });
        Ok(())
    }
}
