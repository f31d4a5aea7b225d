//! Attention: of given queries, keys and values, of several heads, and step by step with a cache.

use super::functional::{Maybe, inner};
use crate::error::call;
use crate::tensor::{PyTensor, record};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use volta::{AttentionMask, AttentionOptions, KvCache, Linear, MultiHeadAttention, Rotary};

#[pyfunction]
fn scaled_dot_product_attention(
    query: PyRef<'_, PyTensor>,
    key: PyRef<'_, PyTensor>,
    value: PyRef<'_, PyTensor>,
    mask: Maybe<'_>,
    dropout: f64,
    causal: bool,
    scale: Option<f64>,
) -> PyResult<PyTensor> {
    let options = AttentionOptions { causal, mask: inner(&mask), dropout, scale };
    record(|| query.0.try_scaled_dot_product_attention(&key.0, &value.0, options))
}

/// Positions as rotations of the vectors of (…, length, width).
#[pyfunction]
fn rotary(x: PyRef<'_, PyTensor>, start: usize, base: f64, interleaved: bool) -> PyResult<PyTensor> {
    record(|| Rotary { base, interleaved }.try_apply(&x.0, start))
}

/// The parameters and sizes of an attention of several heads, put together for one call.
struct Heads<'py> {
    in_proj_weight: PyRef<'py, PyTensor>,
    in_proj_bias: Maybe<'py>,
    out_weight: PyRef<'py, PyTensor>,
    out_bias: Maybe<'py>,
    heads: usize,
    kv_heads: usize,
    dropout: f64,
    rotary: Option<(f64, bool)>,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Heads<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        type Parts<'py> = (
            PyRef<'py, PyTensor>,
            Maybe<'py>,
            PyRef<'py, PyTensor>,
            Maybe<'py>,
            usize,
            usize,
            f64,
            Option<(f64, bool)>,
        );
        let (in_proj_weight, in_proj_bias, out_weight, out_bias, heads, kv_heads, dropout, rotary): Parts<
            'py,
        > = object.extract()?;
        Ok(Heads { in_proj_weight, in_proj_bias, out_weight, out_bias, heads, kv_heads, dropout, rotary })
    }
}

impl Heads<'_> {
    /// The engine's layer with these parameters.
    fn layer(&self) -> MultiHeadAttention {
        MultiHeadAttention {
            in_proj_weight: self.in_proj_weight.0.clone(),
            in_proj_bias: inner(&self.in_proj_bias).cloned(),
            out_proj: Linear { weight: self.out_weight.0.clone(), bias: inner(&self.out_bias).cloned() },
            heads: self.heads,
            kv_heads: self.kv_heads,
            // 0 in evaluation: the layer is told so by the number alone.
            dropout: self.dropout,
            rotary: self.rotary.map(|(base, interleaved)| Rotary { base, interleaved }),
            mode: Default::default(),
        }
    }
}

/// Attention of several heads over (batch, length, width). True in a mask means that a key is seen.
#[pyfunction]
fn multi_head_attention(
    heads: Heads<'_>,
    query: PyRef<'_, PyTensor>,
    key: PyRef<'_, PyTensor>,
    value: PyRef<'_, PyTensor>,
    causal: bool,
    mask: Maybe<'_>,
    keys: Maybe<'_>,
) -> PyResult<PyTensor> {
    let mask = AttentionMask { causal, mask: inner(&mask), keys: inner(&keys) };
    record(|| heads.layer().try_attend(&query.0, &key.0, &value.0, mask))
}

/// Keys and values of the positions that were generated so far, for a fixed number of positions.
#[pyclass(name = "KVCache", module = "volta.nn", frozen)]
pub struct PyKvCache(Mutex<KvCache>);

#[pymethods]
impl PyKvCache {
    /// How many positions are filled.
    fn __len__(&self) -> usize {
        self.with(|cache| cache.len())
    }

    /// Always: an empty cache is there too.
    fn __bool__(&self) -> bool {
        true
    }

    /// How many positions there is room for.
    #[getter]
    fn capacity(&self) -> usize {
        self.with(|cache| cache.capacity())
    }

    /// Keeps the first positions only; none starts a new text.
    fn truncate(&self, length: usize) {
        self.with(|cache| cache.truncate(length));
    }

    fn __repr__(&self) -> String {
        self.with(|cache| format!("KVCache({} of {} positions)", cache.len(), cache.capacity()))
    }
}

impl PyKvCache {
    fn with<R>(&self, f: impl FnOnce(&mut KvCache) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An empty cache for an attention.
#[pyfunction]
fn attention_cache(heads: Heads<'_>, batch: usize, capacity: usize) -> PyResult<PyKvCache> {
    Ok(PyKvCache(Mutex::new(call(|| Ok(heads.layer().cache(batch, capacity)))?)))
}

/// Causal attention of the next positions to themselves and to those in the cache.
#[pyfunction]
fn attend_cached(
    heads: Heads<'_>,
    x: PyRef<'_, PyTensor>,
    cache: PyRef<'_, PyKvCache>,
) -> PyResult<PyTensor> {
    cache.with(|cache| record(|| heads.layer().try_attend_cached(&x.0, cache)))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyKvCache>()?;
    module.add_function(wrap_pyfunction!(scaled_dot_product_attention, module)?)?;
    module.add_function(wrap_pyfunction!(rotary, module)?)?;
    module.add_function(wrap_pyfunction!(multi_head_attention, module)?)?;
    module.add_function(wrap_pyfunction!(attention_cache, module)?)?;
    module.add_function(wrap_pyfunction!(attend_cached, module)?)
}
