//! Shapes: views, cuts, repetitions, padding, triangles, gathering.

use super::arguments::{Dims, Number, Other, axis, axis_or_none, extents, sizes_or_named};
use super::{PyTensor, record, record_all};
use crate::error::call;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use volta::{Operand, Result, Tensor};

/// An error if a dimension is named twice.
fn once_each(op: &str, dims: &[usize]) -> PyResult<()> {
    match dims.iter().enumerate().find(|(k, dim)| dims[..*k].contains(dim)) {
        Some((_, dim)) => Err(PyValueError::new_err(format!("{op}: dimension {dim} is there twice"))),
        None => Ok(()),
    }
}

/// `x` with a number or a tensor without dimensions, wherever that lives, where a mask is true.
pub fn filled(x: &Tensor, mask: &Tensor, value: Other) -> Result<Tensor> {
    let value = match value.0 {
        Operand::Tensor(value) => Operand::Tensor(value.try_to_dtype(x.dtype())?.try_to_device(x.device())?),
        number => number,
    };
    x.try_masked_fill(mask, value)
}

#[pymethods]
impl PyTensor {
    /// The same elements in order under another shape; one size may be -1 and follows from the others.
    #[pyo3(signature = (*args, shape=None), text_signature = "($self, *shape)")]
    fn reshape(&self, args: &Bound<'_, PyTuple>, shape: Option<Dims>) -> PyResult<PyTensor> {
        let shape = sizes_or_named(args, shape, "shape")?;
        record(|| self.0.try_reshape(&shape[..]))
    }

    /// `reshape`: views are values of their own, so every shape fits.
    #[pyo3(signature = (*args, size=None), text_signature = "($self, *size)")]
    fn view(&self, args: &Bound<'_, PyTuple>, size: Option<Dims>) -> PyResult<PyTensor> {
        self.reshape(args, size)
    }

    /// `reshape` to another tensor's shape.
    fn view_as(&self, other: &PyTensor) -> PyResult<PyTensor> {
        record(|| self.0.try_view_as(&other.0))
    }

    /// `reshape` to another tensor's shape.
    fn reshape_as(&self, other: &PyTensor) -> PyResult<PyTensor> {
        record(|| self.0.try_view_as(&other.0))
    }

    /// The dimensions in another order.
    #[pyo3(signature = (*args, dims=None), text_signature = "($self, *dims)")]
    fn permute(&self, args: &Bound<'_, PyTuple>, dims: Option<Dims>) -> PyResult<PyTensor> {
        let dims = sizes_or_named(args, dims, "dims")?;
        record(|| self.0.try_permute(&dims[..]))
    }

    /// Two dimensions exchanged.
    fn transpose(
        &self,
        #[pyo3(from_py_with = axis)] dim0: isize,
        #[pyo3(from_py_with = axis)] dim1: isize,
    ) -> PyResult<PyTensor> {
        record(|| self.0.try_transpose(dim0, dim1))
    }

    /// A dimension, or several, at other places.
    fn movedim(&self, source: Dims, destination: Dims) -> PyResult<PyTensor> {
        let rank = self.0.rank() as isize;
        let places = |dims: &[isize]| dims.iter().map(|&d| self.axis(d)).collect::<PyResult<Vec<_>>>();
        let (from, to) = (places(&source.0)?, places(&destination.0)?);
        if from.len() != to.len() {
            return Err(PyValueError::new_err("movedim: as many sources as destinations are needed"));
        }
        once_each("movedim", &from)?;
        once_each("movedim", &to)?;
        let mut order: Vec<isize> = (0..rank).filter(|&d| !from.contains(&(d as usize))).collect();
        let mut moves: Vec<(usize, usize)> = to.into_iter().zip(from).collect();
        moves.sort_unstable();
        moves.into_iter().for_each(|(to, from)| order.insert(to, from as isize));
        record(|| self.0.try_permute(&order[..]))
    }

    /// The two dimensions of a matrix exchanged.
    fn t(&self) -> PyResult<PyTensor> {
        if self.0.rank() > 2 {
            let message = format!(
                "t: a tensor of at most 2 dimensions is needed, and this has shape {}",
                self.0.shape()
            );
            return Err(PyValueError::new_err(message));
        }
        record(|| self.0.try_t())
    }

    /// All dimensions in reverse order.
    #[getter(T)]
    fn transposed(&self) -> PyResult<PyTensor> {
        let order: Vec<isize> = (0..self.0.rank() as isize).rev().collect();
        record(|| self.0.try_permute(&order[..]))
    }

    /// The last two dimensions exchanged.
    #[getter(mT)]
    fn matrix_transposed(&self) -> PyResult<PyTensor> {
        record(|| self.0.try_transpose(-2, -1))
    }

    /// Repeats dimensions of size 1 (and new ones in front) without copying; -1 keeps a size.
    #[pyo3(signature = (*args, size=None), text_signature = "($self, *size)")]
    fn expand(&self, args: &Bound<'_, PyTuple>, size: Option<Dims>) -> PyResult<PyTensor> {
        let size = sizes_or_named(args, size, "size")?;
        record(|| self.0.try_expand(&size[..]))
    }

    /// `expand` to another tensor's shape.
    fn expand_as(&self, other: &PyTensor) -> PyResult<PyTensor> {
        record(|| self.0.try_expand_as(&other.0))
    }

    /// `expand` to a shape.
    #[pyo3(signature = (*args, size=None), text_signature = "($self, *size)")]
    fn broadcast_to(&self, args: &Bound<'_, PyTuple>, size: Option<Dims>) -> PyResult<PyTensor> {
        self.expand(args, size)
    }

    /// Without dimensions of size 1: all of them, one or several.
    #[pyo3(signature = (dim=None))]
    fn squeeze(&self, dim: Option<Dims>) -> PyResult<PyTensor> {
        let Some(Dims(dims)) = dim else { return record(|| self.0.try_squeeze_all()) };
        if self.0.rank() == 0 && dims.iter().all(|d| matches!(d, -1 | 0)) {
            return record(|| self.0.try_squeeze_all());
        }
        let mut dims: Vec<usize> = dims.into_iter().map(|d| self.axis(d)).collect::<PyResult<_>>()?;
        once_each("squeeze", &dims)?;
        // From the last to the first, so that the others keep their places.
        dims.sort_unstable();
        record(|| dims.into_iter().rev().try_fold(self.0.clone(), |x, d| x.try_squeeze(d as isize)))
    }

    /// With a new dimension of size 1.
    fn unsqueeze(&self, #[pyo3(from_py_with = axis)] dim: isize) -> PyResult<PyTensor> {
        record(|| self.0.try_unsqueeze(dim))
    }

    /// The dimensions from `start_dim` to `end_dim` as one.
    #[pyo3(signature = (start_dim=0, end_dim=-1), text_signature = "($self, start_dim=0, end_dim=-1)")]
    fn flatten(
        &self,
        #[pyo3(from_py_with = axis)] start_dim: isize,
        #[pyo3(from_py_with = axis)] end_dim: isize,
    ) -> PyResult<PyTensor> {
        record(|| self.0.try_flatten(start_dim, end_dim))
    }

    /// All elements as a vector.
    fn ravel(&self) -> PyResult<PyTensor> {
        record(|| self.0.try_flatten(0, -1))
    }

    /// One dimension as several; one size may be -1.
    fn unflatten(&self, #[pyo3(from_py_with = axis)] dim: isize, sizes: Dims) -> PyResult<PyTensor> {
        record(|| self.0.try_unflatten(dim, sizes))
    }

    /// `length` elements of a dimension from `start`.
    fn narrow(
        &self,
        #[pyo3(from_py_with = axis)] dim: isize,
        start: isize,
        length: usize,
    ) -> PyResult<PyTensor> {
        let extent = self.0.shape()[self.axis(dim)?] as isize;
        let from = if start < 0 { start + extent } else { start };
        let from = usize::try_from(from).map_err(|_| {
            PyIndexError::new_err(format!(
                "narrow: {start} is out of range for dimension {dim} of size {extent}"
            ))
        })?;
        record(|| self.0.try_narrow(dim, from, length))
    }

    /// One element of a dimension, which goes.
    fn select(&self, #[pyo3(from_py_with = axis)] dim: isize, index: isize) -> PyResult<PyTensor> {
        record(|| self.0.try_select(dim, index))
    }

    /// Dimensions in reverse order of elements.
    #[pyo3(signature = (*args, dims=None), text_signature = "($self, *dims)")]
    fn flip(&self, args: &Bound<'_, PyTuple>, dims: Option<Dims>) -> PyResult<PyTensor> {
        let dims = sizes_or_named(args, dims, "dims")?;
        record(|| self.0.try_flip(&dims[..]))
    }

    /// Elements moved along dimensions; what leaves at one end comes back at the other. Without `dims` the flattened
    /// tensor is moved.
    #[pyo3(signature = (shifts, dims=None))]
    fn roll(&self, shifts: Dims, dims: Option<Dims>) -> PyResult<PyTensor> {
        record(|| self.0.try_roll(shifts, dims.unwrap_or(Dims(Vec::new()))))
    }

    /// Sliding windows of `size` over a dimension, every `step`, as a new last dimension.
    fn unfold(
        &self,
        #[pyo3(from_py_with = axis)] dimension: isize,
        size: usize,
        step: usize,
    ) -> PyResult<PyTensor> {
        record(|| self.0.try_unfold(dimension, size, step))
    }

    /// The whole tensor repeated along every dimension; more numbers than dimensions add some in front.
    #[pyo3(signature = (*args, repeats=None), text_signature = "($self, *repeats)")]
    fn repeat(&self, args: &Bound<'_, PyTuple>, repeats: Option<Dims>) -> PyResult<PyTensor> {
        let repeats = sizes_or_named(args, repeats, "repeats")?;
        record(|| self.0.try_repeat(&repeats[..]))
    }

    /// `repeat` that takes fewer numbers than dimensions, for the last ones.
    #[pyo3(signature = (*args, dims=None), text_signature = "($self, *dims)")]
    fn tile(&self, args: &Bound<'_, PyTuple>, dims: Option<Dims>) -> PyResult<PyTensor> {
        let dims = sizes_or_named(args, dims, "dims")?;
        record(|| self.0.try_tile(&dims[..]))
    }

    /// Every element repeated in place, along a dimension or of the flattened tensor.
    #[pyo3(signature = (repeats, dim=None))]
    fn repeat_interleave(
        &self,
        repeats: usize,
        #[pyo3(from_py_with = axis_or_none)] dim: Option<isize>,
    ) -> PyResult<PyTensor> {
        record(|| self.0.try_repeat_interleave(repeats, dim))
    }

    /// Parts along a dimension: of one size, the last may be smaller, or of the sizes in a list.
    #[pyo3(signature = (split_size_or_sections, dim=0))]
    fn split(
        &self,
        split_size_or_sections: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = axis)] dim: isize,
    ) -> PyResult<Vec<PyTensor>> {
        match split_size_or_sections.extract::<isize>() {
            Ok(size) => {
                let size = extents(&[size])?[0];
                record_all(|| self.0.try_split(size, dim))
            }
            Err(_) => {
                let sections = extents(&split_size_or_sections.extract::<Vec<isize>>()?)?;
                record_all(|| self.0.try_split_sizes(&sections, dim))
            }
        }
    }

    /// At most `chunks` equal parts along a dimension; the last may be smaller.
    #[pyo3(signature = (chunks, dim=0))]
    fn chunk(&self, chunks: usize, #[pyo3(from_py_with = axis)] dim: isize) -> PyResult<Vec<PyTensor>> {
        record_all(|| self.0.try_chunk(chunks, dim))
    }

    /// The slices of a dimension, which goes.
    #[pyo3(signature = (dim=0))]
    fn unbind(&self, #[pyo3(from_py_with = axis)] dim: isize) -> PyResult<Vec<PyTensor>> {
        record_all(|| self.0.try_unbind(dim))
    }

    /// Zeros above a diagonal of the last two dimensions.
    #[pyo3(signature = (diagonal=0))]
    fn tril(&self, diagonal: i64) -> PyResult<PyTensor> {
        record(|| self.0.try_tril(diagonal))
    }

    /// Zeros below a diagonal of the last two dimensions.
    #[pyo3(signature = (diagonal=0))]
    fn triu(&self, diagonal: i64) -> PyResult<PyTensor> {
        record(|| self.0.try_triu(diagonal))
    }

    /// `value`, a number or a tensor without dimensions, where the mask (bool, broadcast) is true.
    fn masked_fill(&self, mask: &PyTensor, value: Other) -> PyResult<PyTensor> {
        record(|| filled(&self.0, &mask.0, value))
    }

    /// Picks along a dimension: `out[i][j] = self[index[i][j]][j]` for dimension 0.
    fn gather(&self, #[pyo3(from_py_with = axis)] dim: isize, index: &PyTensor) -> PyResult<PyTensor> {
        record(|| self.0.try_gather(dim, &index.0))
    }

    /// A copy with the elements of `src` added at `index` along a dimension; repeated indices add up.
    fn scatter_add(
        &self,
        #[pyo3(from_py_with = axis)] dim: isize,
        index: &PyTensor,
        src: &PyTensor,
    ) -> PyResult<PyTensor> {
        record(|| self.0.try_scatter_add(dim, &index.0, &src.0))
    }

    /// A copy with `alpha` times the slices of `source` added along a dimension where a vector of positions says; repeated
    /// positions add up.
    #[pyo3(signature = (dim, index, source, *, alpha=None))]
    pub fn index_add(
        &self,
        #[pyo3(from_py_with = axis)] dim: isize,
        index: &PyTensor,
        source: &PyTensor,
        alpha: Option<Number>,
    ) -> PyResult<PyTensor> {
        record(|| match alpha {
            Some(Number(alpha)) => self.0.try_index_add(dim, &index.0, &source.0.try_mul(alpha)?),
            None => self.0.try_index_add(dim, &index.0, &source.0),
        })
    }

    /// Whole slices of a dimension, picked by a vector of positions.
    fn index_select(&self, #[pyo3(from_py_with = axis)] dim: isize, index: &PyTensor) -> PyResult<PyTensor> {
        record(|| self.0.try_index_select(dim, &index.0))
    }

    /// A row of `num_classes` for every index, 1 at the index and 0 elsewhere.
    fn one_hot(&self, num_classes: usize) -> PyResult<PyTensor> {
        record(|| self.0.try_one_hot(num_classes))
    }

    /// Padding as PyTorch has it: (before, after) of the last dimension, then of the one before, ... Negative numbers
    /// cut.
    #[pyo3(signature = (pad, mode="constant", value=None))]
    fn pad(&self, pad: Vec<isize>, mode: &str, value: Option<Number>) -> PyResult<PyTensor> {
        if mode != "constant" {
            return Err(PyValueError::new_err(format!("pad: there is no mode {mode:?}: use 'constant'")));
        }
        let rank = self.0.rank();
        if !pad.len().is_multiple_of(2) || pad.len() > 2 * rank {
            let message =
                format!("pad: {} numbers do not fit {rank} dimensions: a pair each is needed", pad.len());
            return Err(PyValueError::new_err(message));
        }
        let mut pads = vec![(0, 0); rank];
        let mut cut = self.0.clone();
        for (k, pair) in pad.chunks(2).enumerate() {
            let dim = rank - 1 - k;
            let less = |p: isize| p.min(0).unsigned_abs();
            let left = cut.shape()[dim].checked_sub(less(pair[0]) + less(pair[1]));
            let Some(left) = left else {
                return Err(PyValueError::new_err(format!(
                    "pad: {pair:?} takes more than dimension {dim} has"
                )));
            };
            cut = call(|| cut.try_narrow(dim as isize, less(pair[0]), left))?;
            pads[dim] = (pair[0].max(0) as usize, pair[1].max(0) as usize);
        }
        record(|| cut.try_pad(&pads, value.map_or(volta::Scalar::Int(0), |v| v.0)))
    }

    /// The matrix product: vectors count as a row on the left and a column on the right, other dimensions broadcast.
    fn matmul(&self, other: &PyTensor) -> PyResult<PyTensor> {
        record(|| self.0.try_matmul(&other.0))
    }

    /// The matrix product of two matrices.
    fn mm(&self, mat2: &PyTensor) -> PyResult<PyTensor> {
        self.product_of_rank("mm", mat2, 2, 2)
    }

    /// The matrix products of two batches of matrices.
    fn bmm(&self, mat2: &PyTensor) -> PyResult<PyTensor> {
        self.product_of_rank("bmm", mat2, 3, 3)
    }

    /// The product of a matrix and a vector.
    fn mv(&self, vec: &PyTensor) -> PyResult<PyTensor> {
        self.product_of_rank("mv", vec, 2, 1)
    }

    /// The inner product of two vectors.
    fn dot(&self, other: &PyTensor) -> PyResult<PyTensor> {
        record(|| self.0.try_dot(&other.0))
    }

    /// Every element of one vector by every element of another.
    fn outer(&self, vec2: &PyTensor) -> PyResult<PyTensor> {
        record(|| self.0.try_outer(&vec2.0))
    }

    /// Iterates over the first dimension.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.0.rank() == 0 {
            return Err(PyTypeError::new_err("a tensor without dimensions cannot be iterated over"));
        }
        Ok(self.unbind(0)?.into_pyobject(py)?.try_iter()?.into_any())
    }
}

impl PyTensor {
    fn product_of_rank(&self, name: &str, other: &PyTensor, left: usize, right: usize) -> PyResult<PyTensor> {
        if (self.0.rank(), other.0.rank()) != (left, right) {
            let message = format!(
                "{name}: tensors of {left} and {right} dimensions are needed, and these are {} and {}",
                self.0.shape(),
                other.0.shape()
            );
            return Err(PyValueError::new_err(message));
        }
        record(|| Tensor::try_matmul(&self.0, &other.0))
    }
}
