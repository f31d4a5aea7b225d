//! Convolutions and pooling over images and sequences.

use super::functional::{Maybe, inner};
use crate::tensor::{PyTensor, record};
use pyo3::prelude::*;
use volta::{ConvOptions, PoolOptions, Result, Tensor};

/// `f` of a batch with `rank` axes; an example without the axis of the batch is a batch of one.
fn batched(x: &Tensor, rank: usize, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    if x.rank() + 1 != rank {
        return f(x);
    }
    f(&x.try_unsqueeze(0)?)?.try_squeeze(0)
}

#[pyfunction]
fn conv1d(
    x: PyRef<'_, PyTensor>,
    weight: PyRef<'_, PyTensor>,
    bias: Maybe<'_>,
    stride: usize,
    padding: usize,
    dilation: usize,
    groups: usize,
) -> PyResult<PyTensor> {
    let (stride, padding, dilation) = ([stride; 2], [padding; 2], [dilation; 2]);
    let options = ConvOptions { stride, padding, dilation, groups, ..ConvOptions::default() };
    record(|| batched(&x.0, 3, |x| x.try_conv1d(&weight.0, inner(&bias), options)))
}

#[pyfunction]
fn conv2d(
    x: PyRef<'_, PyTensor>,
    weight: PyRef<'_, PyTensor>,
    bias: Maybe<'_>,
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
) -> PyResult<PyTensor> {
    let options = ConvOptions { stride, padding, dilation, groups, ..ConvOptions::default() };
    record(|| batched(&x.0, 4, |x| x.try_conv2d(&weight.0, inner(&bias), options)))
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the arguments of PyTorch's function")]
fn conv_transpose2d(
    x: PyRef<'_, PyTensor>,
    weight: PyRef<'_, PyTensor>,
    bias: Maybe<'_>,
    stride: [usize; 2],
    padding: [usize; 2],
    output_padding: [usize; 2],
    groups: usize,
    dilation: [usize; 2],
) -> PyResult<PyTensor> {
    let options = ConvOptions { stride, padding, dilation, groups, output_padding };
    record(|| batched(&x.0, 4, |x| x.try_conv_transpose2d(&weight.0, inner(&bias), options)))
}

#[pyfunction]
fn max_pool1d(
    x: PyRef<'_, PyTensor>,
    kernel: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    ceil_mode: bool,
) -> PyResult<PyTensor> {
    let (stride, padding, dilation) = (Some([stride; 2]), [padding; 2], [dilation; 2]);
    let options = PoolOptions { stride, padding, dilation, ceil_mode, ..PoolOptions::default() };
    record(|| x.0.try_max_pool1d(kernel, options))
}

#[pyfunction]
fn avg_pool1d(
    x: PyRef<'_, PyTensor>,
    kernel: usize,
    stride: usize,
    padding: usize,
    ceil_mode: bool,
    count_include_pad: bool,
) -> PyResult<PyTensor> {
    let (stride, padding) = (Some([stride; 2]), [padding; 2]);
    let options = PoolOptions { stride, padding, ceil_mode, count_include_pad, ..PoolOptions::default() };
    record(|| x.0.try_avg_pool1d(kernel, options))
}

#[pyfunction]
fn max_pool2d(
    x: PyRef<'_, PyTensor>,
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    ceil_mode: bool,
) -> PyResult<PyTensor> {
    let options =
        PoolOptions { stride: Some(stride), padding, dilation, ceil_mode, ..PoolOptions::default() };
    record(|| x.0.try_max_pool2d(kernel, options))
}

#[pyfunction]
fn avg_pool2d(
    x: PyRef<'_, PyTensor>,
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    ceil_mode: bool,
    count_include_pad: bool,
) -> PyResult<PyTensor> {
    let stride = Some(stride);
    let options = PoolOptions { stride, padding, ceil_mode, count_include_pad, ..PoolOptions::default() };
    record(|| x.0.try_avg_pool2d(kernel, options))
}

#[pyfunction]
fn adaptive_avg_pool2d(x: PyRef<'_, PyTensor>, size: [usize; 2]) -> PyResult<PyTensor> {
    record(|| x.0.try_adaptive_avg_pool2d(size))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(conv1d, module)?)?;
    module.add_function(wrap_pyfunction!(conv2d, module)?)?;
    module.add_function(wrap_pyfunction!(conv_transpose2d, module)?)?;
    module.add_function(wrap_pyfunction!(max_pool1d, module)?)?;
    module.add_function(wrap_pyfunction!(avg_pool1d, module)?)?;
    module.add_function(wrap_pyfunction!(max_pool2d, module)?)?;
    module.add_function(wrap_pyfunction!(avg_pool2d, module)?)?;
    module.add_function(wrap_pyfunction!(adaptive_avg_pool2d, module)?)
}
