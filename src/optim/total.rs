//! One number out of all gradients.

use crate::error::Result;
use crate::tensor::Tensor;

/// Tensors of at most this many elements are summed together: a kernel of its own costs more than the elements do.
const SMALL: usize = 1024;

/// As many as one kernel joins.
const TOGETHER: usize = 12;

/// The sum of all elements of all tensors, which are of one type and on one device, in few kernels.
pub(super) fn sum_of_all(tensors: &[Tensor]) -> Result<Option<Tensor>> {
    let (small, large): (Vec<&Tensor>, Vec<&Tensor>) = tensors.iter().partition(|t| t.numel() <= SMALL);
    let mut sums = large.into_iter().map(Tensor::try_sum).collect::<Result<Vec<_>>>()?;
    for some in small.chunks(TOGETHER) {
        let flat = some.iter().map(|t| t.try_flatten(0, -1)).collect::<Result<Vec<_>>>()?;
        sums.push(Tensor::try_cat(&flat, 0)?.try_sum()?);
    }
    let mut sums = sums.into_iter();
    let Some(first) = sums.next() else { return Ok(None) };
    sums.try_fold(first, |total, sum| total.try_add(&sum)).map(Some)
}
