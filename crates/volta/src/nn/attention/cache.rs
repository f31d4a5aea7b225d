//! Keys and values of the positions that were generated so far.
//!
//! The cache has its full size from the beginning, and a step writes all of it, in place: the new keys where the position
//! is theirs, what was there elsewhere. Attention sees the filled part by a mask. So a step has the same shapes at every
//! position, the position is an argument of its plan, and every token after the first replays the same plan.

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::nn::call::misuse;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Keys and values of one attention layer, for a fixed number of positions; made by
/// [`MultiHeadAttention::cache`](super::MultiHeadAttention::cache).
pub struct KvCache {
    /// Batch × heads × capacity × width of a head.
    pub keys: Tensor,
    /// Batch × heads × capacity × width of a head.
    pub values: Tensor,
    length: usize,
    /// Where each text of the batch goes on, (batch, 1, 1, 1) of i32, if they are not equally long.
    places: Option<Tensor>,
}

impl KvCache {
    /// Nothing yet, and room for `shape[2]` positions.
    #[track_caller]
    pub(crate) fn new(shape: [usize; 4], dtype: DType) -> KvCache {
        let zeros = || Tensor::full_of(shape, 0.0, dtype);
        KvCache { keys: zeros(), values: zeros(), length: 0, places: None }
    }

    /// How many positions are filled.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many positions there is room for.
    pub fn capacity(&self) -> usize {
        self.keys.size(2)
    }

    /// Keeps the first positions only; none starts a new text.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// The same with room for more positions.
    pub(crate) fn grown(&self, capacity: usize) -> Result<KvCache> {
        let more = capacity.saturating_sub(self.capacity());
        let longer = |t: &Tensor| {
            Ok::<_, Error>(t.detach().try_pad(&[(0, 0), (0, 0), (0, more), (0, 0)], 0.0)?.variable())
        };
        self.mapped(longer)
    }

    /// The same with other keys and values of the same texts, or of some of them.
    pub(crate) fn mapped(&self, change: impl Fn(&Tensor) -> Result<Tensor>) -> Result<KvCache> {
        Ok(KvCache {
            keys: change(&self.keys)?,
            values: change(&self.values)?,
            length: self.length,
            places: None,
        })
    }

    /// Says where each text of the batch goes on: the next [`append`](Self::append) is of one position each. What is filled is up to
    /// the caller from then on.
    pub(crate) fn place(&mut self, places: &Tensor) {
        self.places = Some(places.clone());
    }

    /// Puts keys and values of (batch, heads, length, width) behind what is there.
    pub(crate) fn append(&mut self, keys: &Tensor, values: &Tensor) -> Result<()> {
        let (count, room) = (keys.size(2), self.capacity() - self.length);
        if count > room {
            let message = format!(
                "{count} positions more than the {} of the cache, of {}",
                self.length,
                self.capacity()
            );
            return Err(misuse("KvCache", ErrorKind::Shape, format!("no room: {message}")));
        }
        let whole = self.keys.shape();
        if keys.size(0) != whole[0] || keys.size(1) != whole[1] || keys.size(3) != whole[3] {
            let message = format!("keys of {} do not go into a cache of {whole}", keys.shape());
            return Err(misuse("KvCache", ErrorKind::Shape, message));
        }
        if let Some(places) = self.places.take() {
            let position = self.keys.index_rule(2, Shape::of(&[1, 1, whole[2], 1]), DType::I32);
            let here = position.try_eq(&places)?;
            for (all, new) in [(&self.keys, keys), (&self.values, values)] {
                all.try_assign(&here.try_where_(&new.try_to_dtype(all.dtype())?, all)?)?;
            }
            return Ok(());
        }
        for (all, new) in [(&self.keys, keys), (&self.values, values)] {
            all.try_assign(&written(all, &new.try_to_dtype(all.dtype())?, self.length)?)?;
        }
        self.length += count;
        Ok(())
    }
}

/// `all` with `new` at the positions from `start` on.
fn written(all: &Tensor, new: &Tensor, start: usize) -> Result<Tensor> {
    let (shape, count) = (all.shape(), new.size(2));
    if count == 0 {
        return Ok(all.clone());
    }
    let position = all.index_rule(2, Shape::of(&[1, 1, shape[2], 1]), DType::I32);
    if count == 1 {
        return position.try_eq(start)?.try_where_(new, all);
    }
    let place = position.try_sub(start)?;
    let here = place.try_ge(0)?.try_logical_and(&place.try_lt(count)?)?;
    let source = place.try_clamp(Some(0.0), Some((count - 1) as f64))?.try_expand(shape)?;
    here.try_where_(&new.gather_primitive(2, &source)?, all)
}
