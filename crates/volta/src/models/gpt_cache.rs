//! What a [`Gpt`](super::Gpt) remembers while it writes.

use crate::error::Result;
use crate::nn::KvCache;
use crate::tensor::try_realize_all;

/// Keys and values of all blocks, for the positions that were seen; made by [`Gpt::cache`](super::Gpt::cache).
pub struct GptCache(pub(super) Vec<KvCache>);

impl GptCache {
    /// Gives it its memory.
    pub(super) fn try_realize(&self) -> Result<()> {
        let tensors = self.0.iter().flat_map(|c| [c.keys.clone(), c.values.clone()]);
        try_realize_all(&tensors.collect::<Vec<_>>())
    }

    /// The same once more.
    pub(super) fn copied(&self) -> Result<GptCache> {
        Ok(GptCache(self.0.iter().map(|c| c.grown(c.capacity())).collect::<Result<_>>()?))
    }

    /// How many positions were seen.
    pub fn len(&self) -> usize {
        self.0.first().map_or(0, KvCache::len)
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Remembers the first positions only; none starts a new text.
    pub fn truncate(&mut self, length: usize) {
        self.0.iter_mut().for_each(|c| c.truncate(length));
    }
}
