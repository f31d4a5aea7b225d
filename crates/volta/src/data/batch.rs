//! Many samples as one tensor: their elements are copied once, and uploaded once.

use super::array::{Array, Elements};
use super::dataset::{Dataset, Pass};
use crate::call::Origin;
use crate::default_device::with_device;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::shape::{MAX_RANK, Shape};
use crate::tensor::Tensor;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A walk through a dataset: which samples make which batch, and where batches go.
pub(super) struct Walk {
    pub dataset: Arc<dyn Dataset>,
    pub pass: Pass,
    /// The order of the samples; without one they follow their indices.
    pub order: Option<Vec<usize>>,
    pub batch_size: usize,
    /// The part of each batch that is made, of how many.
    pub shard: (usize, usize),
    pub device: Device,
    /// The call that errors name: the loop over the loader.
    pub origin: Origin,
}

impl Walk {
    /// The n-th batch, on the device.
    pub fn batch(&self, number: usize) -> Result<(Tensor, Tensor)> {
        let (first, last) = self.range(number)?;
        let mut halves: Option<[Collated; 2]> = None;
        for place in first..last {
            let index = self.order.as_ref().map_or(place, |order| order[place]);
            let about = |e: Error| self.error(e.kind(), format!("sample {index}: {}", e.message()));
            let read = || {
                let sample = self.dataset.get_in(index, self.pass)?;
                let count = last - first;
                let [inputs, targets] = halves.get_or_insert_with(|| {
                    [&sample.input, &sample.target].map(|array| Collated::new(array, count, index))
                });
                inputs.push(&sample.input, "input")?;
                targets.push(&sample.target, "target")
            };
            catch_unwind(AssertUnwindSafe(read))
                .map_err(|panic| {
                    self.error(
                        ErrorKind::Data,
                        format!("sample {index}: the dataset panicked: {}", said(&*panic)),
                    )
                })?
                .map_err(about)?;
        }
        let upload = || -> Result<(Tensor, Tensor)> {
            let [inputs, targets] = halves.as_ref().expect("no batch is empty");
            with_device(self.device, || Ok((inputs.upload(last - first)?, targets.upload(last - first)?)))
        };
        upload().map_err(|e| self.error(e.kind(), format!("batch {number}: {}", e.message())))
    }

    /// From which place of the order on, and up to which one.
    fn range(&self, number: usize) -> Result<(usize, usize)> {
        let first = number * self.batch_size;
        let samples = (first + self.batch_size).min(self.dataset.len()) - first;
        let (part, count) = self.shard;
        let (begin, end) = (part * samples / count, (part + 1) * samples / count);
        if begin == end {
            let message = format!(
                "batch {number}: its {samples} samples leave nothing for part {part} of {count}: make batches larger, or leave \
                 out short ones by drop_last"
            );
            return Err(self.error(ErrorKind::Argument, message));
        }
        Ok((first + begin, first + end))
    }

    pub fn error(&self, kind: ErrorKind, message: String) -> Error {
        Error::at(kind, message, self.origin)
    }
}

/// What a panic said.
pub(super) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("nothing")
}

/// The elements of several samples, one after the other.
struct Collated {
    elements: Elements<'static>,
    shape: Shape,
    /// The sample whose shape and type the others must have.
    first: usize,
}

impl Collated {
    fn new(array: &Array<'_>, count: usize, first: usize) -> Collated {
        let shape = array.shape();
        Collated { elements: array.elements().empty(count * shape.numel()), shape, first }
    }

    fn push(&mut self, array: &Array<'_>, what: &str) -> Result<()> {
        if array.shape() == self.shape && self.elements.append(array.elements()) {
            return Ok(());
        }
        let message = format!(
            "its {what} is {} {}, and that of sample {} in the same batch is {} {}: make them alike, by a \
             transform for example",
            array.dtype(),
            array.shape(),
            self.first,
            self.elements.dtype(),
            self.shape
        );
        Err(Error::new(ErrorKind::Data, message))
    }

    fn upload(&self, count: usize) -> Result<Tensor> {
        let mut extents = [count; MAX_RANK + 1];
        extents[1..=self.shape.rank()].copy_from_slice(&self.shape);
        self.elements.upload(Shape::new(&extents[..=self.shape.rank()])?)
    }
}
