//! What a [`CausalLm`](super::CausalLm) remembers while it writes.

use crate::error::Result;
use crate::nn::KvCache;
use crate::tensor::{Tensor, try_realize_all};

/// Keys and values of all blocks, for the positions that were seen; made by [`CausalLm::cache`](super::CausalLm::cache).
pub struct CausalLmCache(pub(super) Vec<KvCache>);

impl CausalLmCache {
    /// How many positions were seen.
    pub fn len(&self) -> usize {
        self.0.first().map_or(0, KvCache::len)
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many positions there is room for.
    pub fn capacity(&self) -> usize {
        self.0.first().map_or(0, KvCache::capacity)
    }

    /// Remembers the first positions only; none starts a new text.
    pub fn truncate(&mut self, length: usize) {
        self.0.iter_mut().for_each(|c| c.truncate(length));
    }

    /// Makes room for at least so many positions. What is there is copied.
    pub fn reserve(&mut self, capacity: usize) -> Result<()> {
        if capacity > self.capacity() {
            for cache in &mut self.0 {
                *cache = cache.grown(capacity)?;
            }
            self.realize()?;
        }
        Ok(())
    }

    /// Gives it its memory.
    pub(crate) fn realize(&self) -> Result<()> {
        self.realize_with(&[])
    }

    /// Computes what was put into it together with other values: a text's first pass reads nothing of it.
    pub(crate) fn realize_with(&self, others: &[Tensor]) -> Result<()> {
        let own = self.0.iter().flat_map(|c| [&c.keys, &c.values]);
        try_realize_all(&own.chain(others).cloned().collect::<Vec<_>>())
    }
}
