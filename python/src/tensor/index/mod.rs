//! `x[...]` and `x[...] = y` with the whole of Python's syntax, by PyTorch's rules: NumPy's, but that single elements are taken
//! first, so that `x[0, :, [1, 2]]` is `x[0][:, [1, 2]]`.
//!
//! `parse` says what Python's objects mean for each dimension, `get` and `set` do it with ops, so that gradients flow.
//! A mask must be read, since the shape of the result depends on it; so must the positions that are assigned to.

mod get;
mod parse;
mod set;

use super::PyTensor;
use crate::error::{call, run};
use pyo3::prelude::*;
use volta::{Dims, Result, Tensor};

#[pymethods]
impl PyTensor {
    fn __getitem__(slf: &Bound<'_, Self>, index: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        get::get(&slf.get().0, index)
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        set::set(&slf.get().0, index, value)
    }

    /// The positions of all elements that are not zero: a row each, or, with `as_tuple=True`, a vector for each
    /// dimension.
    #[pyo3(signature = (*, as_tuple=false))]
    fn nonzero<'py>(&self, py: Python<'py>, as_tuple: bool) -> PyResult<Bound<'py, PyAny>> {
        let found = positions(py, &self.0)?;
        if as_tuple {
            let tensors: Vec<PyTensor> = found.into_iter().map(PyTensor::from).collect();
            return Ok(pyo3::types::PyTuple::new(py, tensors)?.into_any());
        }
        let rows = super::record(|| match self.0.rank() {
            // As many rows as there are positions, and no dimensions to name them by.
            0 => found[0].try_reshape([found[0].numel(), 1])?.try_narrow(1, 0, 0),
            _ => Tensor::try_stack(&found, 1),
        })?;
        Ok(rows.into_pyobject(py)?.into_any())
    }

    /// The elements where a mask, broadcast with the tensor, is true, as a vector.
    fn masked_select(&self, py: Python<'_>, mask: &PyTensor) -> PyResult<PyTensor> {
        let both = crate::error::call(|| broadcast(&[self.0.clone(), mask.0.clone()]))?;
        let mask = PyTensor(both[1].clone()).into_pyobject(py)?;
        get::get(&both[0], mask.as_any())
    }
}

/// Where a tensor is not zero: a vector of positions for each dimension, on its device. One without dimensions counts as a
/// vector of one element.
pub fn positions(py: Python<'_>, x: &Tensor) -> PyResult<Vec<Tensor>> {
    let x = &if x.rank() == 0 { call(|| x.try_reshape([1usize]))? } else { x.clone() };
    let (shape, device) = (x.shape(), x.device());
    let found = parse::nonzero(py, x)?;
    let dtype = super::device::integer(device)?;
    run(py, || {
        let vector = |k: usize| {
            let along: Vec<i64> = found.iter().map(|&at| parse::coordinate(at, &shape, k) as i64).collect();
            let count = along.len();
            let here = volta::with_device(volta::Device::Cpu, || Tensor::try_from_vec(along, [count]))?;
            super::device::as_index(&here.try_to_dtype(dtype)?.try_to_device(device)?, shape[k])
        };
        (0..shape.rank()).map(vector).collect()
    })
}

/// The shape that several shapes broadcast to.
fn common(shapes: &[Vec<usize>]) -> Option<Vec<usize>> {
    let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
    let mut out = vec![1; rank];
    for shape in shapes {
        let added = rank - shape.len();
        for (k, &extent) in shape.iter().enumerate() {
            match out[added + k] {
                1 => out[added + k] = extent,
                other if other == extent || extent == 1 => {}
                _ => return None,
            }
        }
    }
    Some(out)
}

/// Tensors expanded to their common shape.
pub fn broadcast(tensors: &[Tensor]) -> Result<Vec<Tensor>> {
    let shapes: Vec<Vec<usize>> = tensors.iter().map(|t| t.shape().to_vec()).collect();
    let Some(shape) = common(&shapes) else {
        // The op that fails says which two do not fit.
        let mut sum = tensors[0].try_to_dtype(volta::DType::Bool)?;
        for t in &tensors[1..] {
            sum = sum.try_logical_or(t)?;
        }
        return Ok(tensors.to_vec());
    };
    tensors.iter().map(|t| t.try_expand(Dims::from(&shape[..]))).collect()
}
