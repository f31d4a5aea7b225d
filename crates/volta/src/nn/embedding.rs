//! A table of vectors, looked up by integers.

use super::call::{forward, layer, misuse, on_device};
use super::{Module, Visitor, init};
use crate::autograd::no_grad;
use crate::device::Device;
use crate::error::{ErrorKind, Result};
use crate::tensor::Tensor;

/// A row of the table for every index: the input's shape with the row's behind it.
///
/// ```
/// use volta::{Embedding, Linear, Module, Sequential, Tensor};
/// let model = Sequential::new(vec![Box::new(Embedding::new(50, 8)), Box::new(Linear::new(8, 2, true))]);
/// let tokens = Tensor::from_slice(&[3i32, 7, 7], [1, 3]);
/// assert_eq!(model.forward(&tokens).shape()[..], [1, 3, 2]);
/// ```
pub struct Embedding {
    /// Rows × width.
    pub weight: Tensor,
    /// A row that is not trained, for padding.
    pub padding_idx: Option<usize>,
}

impl Embedding {
    /// With normal first values.
    #[track_caller]
    pub fn new(rows: usize, width: usize) -> Embedding {
        Embedding { weight: init::normal([rows, width], 1.0), padding_idx: None }
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(rows: usize, width: usize, device: Device) -> Embedding {
        on_device(device, || Embedding::new(rows, width))
    }

    /// With a row of zeros that is not trained.
    #[track_caller]
    pub fn with_padding(self, index: usize) -> Embedding {
        self.try_with_padding(index).unwrap_or_else(|e| e.raise())
    }

    /// [`with_padding`](Self::with_padding) that returns its error.
    #[track_caller]
    pub fn try_with_padding(mut self, index: usize) -> Result<Embedding> {
        let shape = self.weight.shape();
        if index >= shape[0] {
            let message = format!("row {index} for padding is not in the table {shape}");
            return Err(misuse("Embedding", ErrorKind::Argument, message));
        }
        self.padding_idx = Some(index);
        let here = self.weight.index_rule(0, shape, crate::DType::I32).try_eq(index)?;
        self.weight.try_assign(&no_grad(|| here.try_where_(0.0, &self.weight))?)?;
        Ok(self)
    }
}

impl Module for Embedding {
    forward!();

    /// The input holds integers.
    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let rows = self.weight.try_embedding(x)?;
            match self.padding_idx {
                Some(index) => x.try_eq(index)?.try_unsqueeze(-1)?.try_where_(rows.detach(), &rows),
                None => Ok(rows),
            }
        })
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
    }

    fn describe(&self) -> String {
        let padding = self.padding_idx.map_or(String::new(), |index| format!(", padding {index}"));
        format!("{} × {}{padding}", self.weight.size(0), self.weight.size(1))
    }
}
