//! Which keys a query sees.

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::nn::call::misuse;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// What is hidden from the queries of an attention. True means that a key is seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionMask<'a> {
    /// A query sees the keys up to its own place only.
    pub causal: bool,
    /// Bools, false where a key is hidden, or numbers to add to the scores; broadcast to (batch, heads, queries, keys).
    pub mask: Option<&'a Tensor>,
    /// Bools of (batch, keys), false where a key is padding.
    pub keys: Option<&'a Tensor>,
}

impl<'a> AttentionMask<'a> {
    /// Nothing after a query's own place is seen.
    pub fn causal() -> AttentionMask<'a> {
        AttentionMask { causal: true, ..AttentionMask::default() }
    }

    /// Bools, false where a key is hidden, or numbers to add to the scores.
    pub fn of(mask: &'a Tensor) -> AttentionMask<'a> {
        AttentionMask { mask: Some(mask), ..AttentionMask::default() }
    }

    /// With padding among the keys: false in bools of (batch, keys).
    pub fn with_keys(self, keys: &'a Tensor) -> AttentionMask<'a> {
        AttentionMask { keys: Some(keys), ..self }
    }

    /// One mask of what `mask` and `keys` say.
    pub(super) fn combined(&self, batch: usize, length: usize) -> Result<Option<Tensor>> {
        let Some(keys) = self.keys else { return Ok(self.mask.cloned()) };
        if keys.dtype() != DType::Bool || keys.shape()[..] != [batch, length] {
            let message = format!(
                "the mask of keys is {} {}: bools of [{batch}, {length}] are needed",
                keys.dtype(),
                keys.shape()
            );
            return Err(misuse("MultiHeadAttention", ErrorKind::Shape, message));
        }
        let keys = keys.try_reshape([batch, 1, 1, length])?;
        Ok(Some(match self.mask {
            None => keys,
            Some(mask) if mask.dtype() == DType::Bool => mask.try_logical_and(&keys)?,
            Some(mask) => keys.try_where_(mask, f64::NEG_INFINITY)?,
        }))
    }
}

/// Bools of (queries, keys): queries that begin at `start` see the keys up to their own place.
pub(super) fn up_to(q: &Tensor, start: usize, keys: usize) -> Result<Tensor> {
    let shape = Shape::new(&[q.size(-2), keys])?;
    let [query, key] = [0, 1].map(|axis| q.index_rule(axis, shape, DType::I32));
    key.try_le(&query.try_add(start)?)
}
