//! One number out of all gradients.

use crate::error::Result;
use crate::tensor::Tensor;

/// Tensors of at most this many elements are put behind each other and summed together.
const SMALL: usize = 4096;

/// As many as one kernel joins.
const TOGETHER: usize = 12;

/// The sum of all elements of all tensors, which are of one type and on one device, in few kernels.
pub(super) fn sum_of_all(tensors: &[Tensor]) -> Result<Option<Tensor>> {
    let (small, large): (Vec<&Tensor>, Vec<&Tensor>) = tensors.iter().partition(|t| t.numel() <= SMALL);
    // The plan makes a few kernels of all these sums, which differ in their sizes only.
    let mut sums = large.into_iter().map(Tensor::try_sum).collect::<Result<Vec<_>>>()?;
    for some in small.chunks(TOGETHER) {
        sums.push(sum_of_few(some)?);
    }
    while sums.len() > TOGETHER {
        let few: Vec<&Tensor> = sums.iter().collect();
        sums = few.chunks(TOGETHER).map(sum_of_few).collect::<Result<_>>()?;
    }
    let mut sums = sums.into_iter();
    let Some(first) = sums.next() else { return Ok(None) };
    sums.try_fold(first, |total, sum| total.try_add(&sum)).map(Some)
}

/// The sum of what one kernel reads.
fn sum_of_few(tensors: &[&Tensor]) -> Result<Tensor> {
    let flat = tensors.iter().map(|t| t.try_flatten(0, -1)).collect::<Result<Vec<_>>>()?;
    Tensor::try_cat(&flat, 0)?.try_sum()
}
