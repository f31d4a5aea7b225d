//! One number out of all gradients.

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// Tensors of at most this many elements are put behind each other and summed together.
const SMALL_TENSOR: usize = 4096;

/// As many as one kernel joins.
const MAX_TENSORS_PER_KERNEL: usize = 12;

/// The sum of all elements of all tensors, which are of one type and on one device, in few kernels.
pub(super) fn sum_of_all(tensors: &[Tensor]) -> Result<Option<Tensor>> {
    let (small, large): (Vec<&Tensor>, Vec<&Tensor>) =
        tensors.iter().partition(|t| t.numel() <= SMALL_TENSOR);
    // The plan makes a few kernels of all these sums, which differ in their sizes only.
    let mut sums = large.into_iter().map(Tensor::try_sum).collect::<Result<Vec<_>>>()?;
    for some in small.chunks(MAX_TENSORS_PER_KERNEL) {
        sums.push(sum_of_few(some)?);
    }
    // In pairs, so that few ops stand behind each other: all of them are one kernel.
    while sums.len() > 1 {
        let add =
            |pair: &[Tensor]| pair[1..].iter().try_fold(pair[0].clone(), |sum, other| sum.try_add(other));
        sums = sums.chunks(2).map(add).collect::<Result<_>>()?;
    }
    Ok(sums.pop())
}

/// The sum of what one kernel reads.
fn sum_of_few(tensors: &[&Tensor]) -> Result<Tensor> {
    let flat = tensors.iter().map(|t| t.try_flatten(0, -1)).collect::<Result<Vec<_>>>()?;
    Tensor::try_cat(&flat, 0)?.try_sum()
}

/// Whether all elements of all floats among tensors of one device are finite, as one truth value; nothing without any.
pub(crate) fn try_all_finite(tensors: &[Tensor]) -> Result<Option<Tensor>> {
    let floats = tensors.iter().filter(|t| t.dtype().is_float());
    // Zero times anything finite is zero, of anything else NaN.
    let traces =
        floats.map(|t| t.detach().try_mul(0.0)?.try_to_dtype(DType::F32)).collect::<Result<Vec<_>>>()?;
    sum_of_all(&traces)?.map(|total| total.try_eq(0.0)).transpose()
}
