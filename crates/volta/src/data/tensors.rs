//! Samples that lie in memory as two large arrays.

use super::array::Array;
use super::dataset::{Dataset, Sample};
use crate::call::Call;
use crate::error::{Result, bail};
use crate::tensor::Tensor;

/// Samples along the first axis of two arrays.
///
/// ```
/// use volta::data::{Array, Dataset, TensorDataset};
/// let data = TensorDataset::new(Array::new(vec![1f32, 2., 3., 4.], &[2, 2]), Array::new(vec![0, 1], &[2]));
/// assert_eq!(data.get(1)?.input, Array::new(vec![3f32, 4.], &[2]));
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorDataset {
    inputs: Array<'static>,
    targets: Array<'static>,
}

impl TensorDataset {
    /// Inputs and targets with one row a sample.
    #[track_caller]
    pub fn new(inputs: Array<'static>, targets: Array<'static>) -> TensorDataset {
        TensorDataset::try_new(inputs, targets).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(inputs: Array<'static>, targets: Array<'static>) -> Result<TensorDataset> {
        let _call = Call::enter("TensorDataset");
        let (ours, theirs) = (inputs.shape(), targets.shape());
        if ours.rank() == 0 || theirs.rank() == 0 || ours[0] != theirs[0] {
            bail!(
                Shape,
                "inputs {ours} and targets {theirs} must have a first axis of equal extent, the samples"
            );
        }
        Ok(TensorDataset { inputs, targets })
    }

    /// The rows of two tensors, copied to the host.
    #[track_caller]
    pub fn from_tensors(inputs: &Tensor, targets: &Tensor) -> Result<TensorDataset> {
        TensorDataset::try_new(Array::from_tensor(inputs)?, Array::from_tensor(targets)?)
    }
}

impl Dataset for TensorDataset {
    fn len(&self) -> usize {
        self.inputs.shape()[0]
    }

    fn get(&self, index: usize) -> Result<Sample<'_>> {
        Ok(Sample { input: self.inputs.row(index), target: self.targets.row(index) })
    }
}
