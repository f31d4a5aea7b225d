//! Folding dimensions: sums, extrema, statistics, order.

use super::arguments::{Dims, Number, axis, axis_or_none};
use super::device::{as_index, countable};
use super::dtype::DTypeArg;
use super::{PyTensor, record};
use crate::error::call;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use volta::{Result, Scalar, Tensor};

impl PyTensor {
    /// The values that an op finds along a dimension and their positions, as a tuple with names.
    fn found<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        dim: isize,
        op: impl FnOnce(&Tensor) -> Result<(Tensor, Tensor)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (values, indices) = call(|| {
            let (values, indices) = op(&self.0)?;
            Ok((values, as_index(&indices, self.0.shape().try_size(dim)?)?))
        })?;
        let tuple = py.import("volta.return_types")?.getattr(kind)?;
        tuple.call1((PyTensor::from(values), PyTensor::from(indices)))
    }
}

/// The tensor in the type that something is to be computed in.
fn converted(x: &Tensor, dtype: Option<DTypeArg>) -> Result<Tensor> {
    dtype.map_or_else(|| Ok(x.clone()), |d| x.try_to_dtype(d.0))
}

/// The tensor in the type that a sum is to be computed in.
fn summed(x: &Tensor, dtype: Option<DTypeArg>) -> Result<Tensor> {
    if dtype.is_none() { countable(x) } else { converted(x, dtype) }
}

/// Ops that take all dimensions, one or several, and may keep them: `$all` folds everything.
macro_rules! folds {
    ($($(#[doc = $doc:literal])* $name:ident = $convert:ident $all:ident $some:ident;)*) => {
        #[pymethods]
        impl PyTensor {$(
            $(#[doc = $doc])*
            #[pyo3(signature = (dim=None, keepdim=false, *, dtype=None))]
            fn $name(&self, dim: Option<Dims>, keepdim: bool, dtype: Option<DTypeArg>) -> PyResult<PyTensor> {
                record(|| {
                    let x = $convert(&self.0, dtype)?;
                    match dim {
                        None if !keepdim => x.$all(),
                        None => x.$some(&[0isize; 0][..], keepdim),
                        Some(dim) => x.$some(dim, keepdim),
                    }
                })
            }
        )*}
    };
}

folds! {
    /// The sum of all elements, or over dimensions. Integers are summed as int64.
    sum = summed try_sum try_sum_dim;
    /// The mean of all elements, or over dimensions; of none it is NaN.
    mean = converted try_mean try_mean_dim;
    /// The product of all elements, or over dimensions. Integers are multiplied as int64.
    prod = summed try_prod try_prod_dim;
}

macro_rules! truths {
    ($($(#[doc = $doc:literal])* $name:ident = $all:ident $some:ident;)*) => {
        #[pymethods]
        impl PyTensor {$(
            $(#[doc = $doc])*
            #[pyo3(signature = (dim=None, keepdim=false))]
            fn $name(&self, dim: Option<Dims>, keepdim: bool) -> PyResult<PyTensor> {
                record(|| match dim {
                    None if !keepdim => self.0.$all(),
                    None => self.0.$some(&[0isize; 0][..], keepdim),
                    Some(dim) => self.0.$some(dim, keepdim),
                })
            }
        )*}
    };
}

truths! {
    /// Whether all elements are true (not zero), of everything or over dimensions.
    all = try_all try_all_dim;
    /// Whether any element is true (not zero), of everything or over dimensions.
    any = try_any try_any_dim;
    /// The largest elements over dimensions; NaN wins. The gradient is shared equally among ties.
    amax = try_max try_max_dim;
    /// The smallest elements over dimensions; NaN wins. The gradient is shared equally among ties.
    amin = try_min try_min_dim;
}

macro_rules! positions {
    ($($(#[doc = $doc:literal])* $name:ident = $all:ident $some:ident;)*) => {
        #[pymethods]
        impl PyTensor {$(
            $(#[doc = $doc])*
            #[pyo3(signature = (dim=None, keepdim=false))]
            fn $name(&self, #[pyo3(from_py_with = axis_or_none)] dim: Option<isize>, keepdim: bool) -> PyResult<PyTensor> {
                record(|| {
                    let found = match dim {
                        Some(dim) => self.0.$some(dim, keepdim)?,
                        None if keepdim => self.0.$all()?.try_reshape(&vec![1isize; self.0.rank()])?,
                        None => self.0.$all()?,
                    };
                    let count = dim.map_or(Ok(self.0.numel()), |dim| self.0.shape().try_size(dim))?;
                    as_index(&found, count)
                })
            }
        )*}
    };
}

positions! {
    /// The position (int64) of the largest element, of all or along a dimension; the first of ties.
    argmax = try_argmax try_argmax_dim;
    /// The position (int64) of the smallest element, of all or along a dimension; the first of ties.
    argmin = try_argmin try_argmin_dim;
}

macro_rules! extrema {
    ($($(#[doc = $doc:literal])* $name:ident = $all:ident $indexed:ident $pair:ident;)*) => {
        #[pymethods]
        impl PyTensor {$(
            $(#[doc = $doc])*
            #[pyo3(signature = (dim=None, keepdim=false, *, other=None))]
            fn $name<'py>(
                &self,
                py: Python<'py>,
                dim: Option<&Bound<'py, PyAny>>,
                keepdim: bool,
                other: Option<&PyTensor>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let pair = |other: &Tensor| record(|| self.0.$pair(other));
                let result = match (dim, other) {
                    (None, None) => record(|| self.0.$all())?,
                    (None, Some(other)) => pair(&other.0)?,
                    (Some(dim), _) => match dim.cast::<PyTensor>() {
                        Ok(other) => pair(&other.get().0)?,
                        Err(_) => {
                            let dim = axis(dim)?;
                            return self.found(py, stringify!($name), dim, |x| x.$indexed(dim, keepdim));
                        }
                    },
                };
                Ok(result.into_pyobject(py)?.into_any())
            }
        )*}
    };
}

extrema! {
    /// The largest element of all; or, along a dimension, the largest elements and their positions (int64), as a
    /// tuple `(values, indices)`; or the larger of two tensors, elementwise. NaN wins.
    max = try_max try_max_with_index try_maximum;
    /// The smallest element of all; or, along a dimension, the smallest elements and their positions (int64), as a
    /// tuple `(values, indices)`; or the smaller of two tensors, elementwise. NaN wins.
    min = try_min try_min_with_index try_minimum;
}

/// Over what a variance is, and what it takes from the count: 1, unless `correction` or `unbiased` say otherwise. A truth
/// value in the place of the dimensions is `unbiased`, as PyTorch has it.
fn spread(
    dim: Option<&Bound<'_, PyAny>>,
    unbiased: Option<bool>,
    correction: Option<Number>,
) -> PyResult<(Option<Dims>, Scalar)> {
    let (dim, unbiased) = match dim.map(|d| (d, d.cast::<PyBool>())) {
        None => (None, unbiased),
        Some((_, Ok(truth))) if unbiased.is_none() => (None, Some(truth.is_true())),
        Some((dim, _)) => (Some(dim.extract()?), unbiased),
    };
    match (correction, unbiased) {
        (Some(_), Some(_)) => Err(PyTypeError::new_err("unbiased and correction do not go together")),
        (Some(correction), None) => Ok((dim, correction.0)),
        (None, unbiased) => Ok((dim, Scalar::Int(i64::from(unbiased.unwrap_or(true))))),
    }
}

macro_rules! spreads {
    ($($(#[doc = $doc:literal])* $name:ident = $all:ident $some:ident;)*) => {
        #[pymethods]
        impl PyTensor {$(
            $(#[doc = $doc])*
            #[pyo3(signature = (dim=None, unbiased=None, keepdim=false, *, correction=None))]
            fn $name(
                &self,
                dim: Option<&Bound<'_, PyAny>>,
                unbiased: Option<bool>,
                keepdim: bool,
                correction: Option<Number>,
            ) -> PyResult<PyTensor> {
                let (dim, correction) = spread(dim, unbiased, correction)?;
                record(|| match dim {
                    None if !keepdim => self.0.$all(correction),
                    None => self.0.$some(&[0isize; 0][..], correction, keepdim),
                    Some(dim) => self.0.$some(dim, correction, keepdim),
                })
            }
        )*}
    };
}

spreads! {
    /// The variance of all elements, or over dimensions, divided by their number less `correction` (1 by default).
    var = try_var try_var_dim;
    /// The standard deviation of all elements, or over dimensions. Where it is 0 its gradient is 0.
    std = try_std try_std_dim;
}

/// The order of a norm: a number, 'fro' for 2, or `None`.
fn order(p: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
    let Some(p) = p else { return Ok(2.0) };
    match p.extract::<String>().as_deref() {
        Ok("fro") => Ok(2.0),
        Ok("inf") => Ok(f64::INFINITY),
        Ok(other) => Err(PyValueError::new_err(format!("norm: there is no order {other:?}"))),
        Err(_) => p.extract(),
    }
}

#[pymethods]
impl PyTensor {
    /// The p-norm of all elements, or over dimensions: `p` may be 0, infinity or its negative too.
    #[pyo3(signature = (p=None, dim=None, keepdim=false))]
    fn norm(&self, p: Option<&Bound<'_, PyAny>>, dim: Option<Dims>, keepdim: bool) -> PyResult<PyTensor> {
        let p = order(p)?;
        record(|| match dim {
            None if !keepdim => self.0.try_norm(p),
            None => self.0.try_norm_dim(p, &[0isize; 0][..], keepdim),
            Some(dim) => self.0.try_norm_dim(p, dim, keepdim),
        })
    }

    /// The logarithm of the sum of exponentials over dimensions, without overflow.
    #[pyo3(signature = (dim, keepdim=false))]
    fn logsumexp(&self, dim: Dims, keepdim: bool) -> PyResult<PyTensor> {
        record(|| self.0.try_logsumexp(dim, keepdim))
    }

    /// Exponentials along a dimension, divided by their sum.
    #[pyo3(signature = (dim, dtype=None))]
    fn softmax(
        &self,
        #[pyo3(from_py_with = axis)] dim: isize,
        dtype: Option<DTypeArg>,
    ) -> PyResult<PyTensor> {
        record(|| converted(&self.0, dtype)?.try_softmax(dim))
    }

    /// The logarithm of `softmax`, exact also where that is nearly zero.
    #[pyo3(signature = (dim, dtype=None))]
    fn log_softmax(
        &self,
        #[pyo3(from_py_with = axis)] dim: isize,
        dtype: Option<DTypeArg>,
    ) -> PyResult<PyTensor> {
        record(|| converted(&self.0, dtype)?.try_log_softmax(dim))
    }

    /// The middle element of all, the lower one of two; or, along a dimension, `(values, indices)`. NaN wins.
    #[pyo3(signature = (dim=None, keepdim=false))]
    fn median<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = axis_or_none)] dim: Option<isize>,
        keepdim: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        match dim {
            None => Ok(record(|| self.0.try_median())?.into_pyobject(py)?.into_any()),
            Some(dim) => self.found(py, "median", dim, |x| x.try_median_dim(dim, keepdim)),
        }
    }

    /// A dimension in order, with the positions (int64) its elements had: `(values, indices)`. Equal elements keep
    /// their order; NaN counts as the largest.
    #[pyo3(signature = (dim=-1, descending=false, stable=true), text_signature = "($self, dim=-1, descending=False, stable=True)")]
    fn sort<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = axis)] dim: isize,
        descending: bool,
        stable: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stable;
        self.found(py, "sort", dim, |x| x.try_sort(dim, descending))
    }

    /// The positions (int64) that put a dimension in order.
    #[pyo3(signature = (dim=-1, descending=false, stable=true), text_signature = "($self, dim=-1, descending=False, stable=True)")]
    fn argsort(
        &self,
        #[pyo3(from_py_with = axis)] dim: isize,
        descending: bool,
        stable: bool,
    ) -> PyResult<PyTensor> {
        let _ = stable;
        record(|| as_index(&self.0.try_argsort(dim, descending)?, self.0.shape().try_size(dim)?))
    }

    /// The `k` largest (or smallest) elements of a dimension in order, with their positions (int64).
    #[pyo3(signature = (k, dim=-1, largest=true, sorted=true), text_signature = "($self, k, dim=-1, largest=True, sorted=True)")]
    fn topk<'py>(
        &self,
        py: Python<'py>,
        k: usize,
        #[pyo3(from_py_with = axis)] dim: isize,
        largest: bool,
        sorted: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = sorted;
        self.found(py, "topk", dim, |x| x.try_topk(k, dim, largest))
    }

    /// The running sum along a dimension; integers are summed as int64.
    #[pyo3(signature = (dim, *, dtype=None))]
    fn cumsum(&self, #[pyo3(from_py_with = axis)] dim: isize, dtype: Option<DTypeArg>) -> PyResult<PyTensor> {
        record(|| summed(&self.0, dtype)?.try_cumsum(dim))
    }

    /// The running product along a dimension. Its time grows with the square of the dimension.
    #[pyo3(signature = (dim, *, dtype=None))]
    fn cumprod(
        &self,
        #[pyo3(from_py_with = axis)] dim: isize,
        dtype: Option<DTypeArg>,
    ) -> PyResult<PyTensor> {
        record(|| summed(&self.0, dtype)?.try_cumprod(dim))
    }

    /// Each element less the one before along a dimension, `n` times over.
    #[pyo3(signature = (n=1, dim=-1), text_signature = "($self, n=1, dim=-1)")]
    fn diff(&self, n: usize, #[pyo3(from_py_with = axis)] dim: isize) -> PyResult<PyTensor> {
        record(|| self.0.try_diff(n, dim))
    }

    /// Divided by its p-norm along a dimension, or by `eps` where the norm is smaller.
    #[pyo3(signature = (p=2.0, dim=1, eps=1e-12))]
    fn normalize(&self, p: f64, #[pyo3(from_py_with = axis)] dim: isize, eps: f64) -> PyResult<PyTensor> {
        record(|| self.0.try_normalize(p, dim, eps))
    }

    /// The cosine of the angle between vectors along a dimension.
    #[pyo3(signature = (other, dim=1, eps=1e-8))]
    fn cosine_similarity(
        &self,
        other: &PyTensor,
        #[pyo3(from_py_with = axis)] dim: isize,
        eps: f64,
    ) -> PyResult<PyTensor> {
        record(|| self.0.try_cosine_similarity(&other.0, dim, eps))
    }
}
