//! What a [`Gpt`](super::Gpt) remembers while it writes.

use crate::nn::KvCache;

/// Keys and values of all blocks, for the positions that were seen; made by [`Gpt::cache`](super::Gpt::cache).
pub struct GptCache(pub(super) Vec<KvCache>);

impl GptCache {
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
