//! Loops over a loader: what is left of an epoch, batch by batch.

use super::batch::Walk;
use super::loader::{DataLoader, EpochPosition, Progress};
use super::workers::Workers;
use crate::error::Result;
use crate::tensor::Tensor;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// The batches that an epoch has left, as results.
pub struct TryBatches<'a> {
    walk: Arc<Walk>,
    place: EpochPosition,
    end: usize,
    /// An error, or the end of the epoch, was given.
    finished: bool,
    progress: Arc<Progress>,
    /// Threads that make batches ahead; started with the first batch.
    workers: Option<Workers>,
    worker_count: usize,
    ahead: usize,
    /// Nobody may move the loader meanwhile.
    loader: PhantomData<&'a DataLoader>,
}

impl TryBatches<'_> {
    pub(super) fn new(
        walk: Walk,
        place: EpochPosition,
        end: usize,
        progress: Arc<Progress>,
        worker_count: usize,
        ahead: usize,
    ) -> Self {
        TryBatches {
            walk: Arc::new(walk),
            place,
            end,
            finished: false,
            progress,
            workers: None,
            worker_count,
            ahead,
            loader: PhantomData,
        }
    }

    fn make(&mut self) -> Result<(Tensor, Tensor)> {
        if self.worker_count == 0 {
            return self.walk.batch(self.place.batch);
        }
        if self.workers.is_none() {
            let numbers = self.place.batch..self.end;
            self.workers = Some(Workers::start(&self.walk, numbers, self.worker_count, self.ahead)?);
        }
        self.workers.as_mut().expect("started above").next()
    }
}

impl Iterator for TryBatches<'_> {
    type Item = Result<(Tensor, Tensor)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        if self.place.batch >= self.end {
            self.finished = true;
            self.workers = None;
            self.progress.set(EpochPosition { epoch: self.place.epoch + 1, batch: 0 });
            return None;
        }
        let (batch, time) = timed(|| self.make());
        self.progress.add_wait(time);
        if batch.is_ok() {
            self.place.batch += 1;
            self.progress.set(self.place);
        } else {
            self.finished = true;
            self.workers = None;
        }
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = if self.finished { 0 } else { self.end.saturating_sub(self.place.batch) };
        (0, Some(left))
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn timed<R>(f: impl FnOnce() -> R) -> (R, Duration) {
    let start = crate::clock::Instant::now();
    let result = f();
    (result, start.elapsed())
}

/// The standard library has no clock there.
#[cfg(target_arch = "wasm32")]
fn timed<R>(f: impl FnOnce() -> R) -> (R, Duration) {
    (f(), Duration::ZERO)
}

/// The batches that an epoch has left; one that fails panics with the whole message.
pub struct Batches<'a>(pub(super) TryBatches<'a>);

impl Iterator for Batches<'_> {
    type Item = (Tensor, Tensor);

    #[track_caller]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|batch| batch.unwrap_or_else(|e| e.raise()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<'a> IntoIterator for &'a DataLoader {
    type Item = (Tensor, Tensor);
    type IntoIter = Batches<'a>;

    #[track_caller]
    fn into_iter(self) -> Batches<'a> {
        self.iter()
    }
}

impl IntoIterator for DataLoader {
    type Item = (Tensor, Tensor);
    type IntoIter = Batches<'static>;

    #[track_caller]
    fn into_iter(self) -> Batches<'static> {
        let TryBatches { walk, place, end, finished, progress, workers, worker_count, ahead, .. } =
            self.try_iter();
        let loader = PhantomData;
        Batches(TryBatches { walk, place, end, finished, progress, workers, worker_count, ahead, loader })
    }
}
