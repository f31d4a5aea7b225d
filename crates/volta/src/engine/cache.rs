//! Plans by the structure of the graph they compute.

use std::collections::HashMap;
use std::sync::Arc;

/// Plans kept for replay; a program that makes more than this is varying its shapes all the time.
const MAX_CACHED_PLANS: usize = 1024;

/// Words of all their keys, which say how large they are: plans of long graphs that are never the same would fill the memory.
const MAX_KEY_WORDS: usize = 1 << 23;

/// Values whose keys have the same hash.
type Bucket<T> = Vec<(Box<[u64]>, Arc<T>)>;

/// Values under long keys, compared whole.
pub(super) struct Cache<T> {
    buckets: HashMap<u64, Bucket<T>>,
    count: usize,
    words: usize,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Cache { buckets: HashMap::new(), count: 0, words: 0 }
    }
}

impl<T> Cache<T> {
    pub fn get(&self, key: &[u64]) -> Option<&Arc<T>> {
        self.buckets.get(&hash(key))?.iter().find(|(k, _)| **k == *key).map(|(_, value)| value)
    }

    /// Forgets what is of no use any more.
    pub fn retain(&mut self, useful: impl Fn(&T) -> bool) {
        for bucket in self.buckets.values_mut() {
            bucket.retain(|(key, value)| {
                let useful = useful(value);
                self.count -= usize::from(!useful);
                self.words -= if useful { 0 } else { key.len() };
                useful
            });
        }
    }

    /// Adds a value, in the place of one that had this key.
    pub fn insert(&mut self, key: &[u64], value: Arc<T>) {
        let bucket = self.buckets.get_mut(&hash(key));
        if let Some((_, known)) = bucket.and_then(|bucket| bucket.iter_mut().find(|(k, _)| **k == *key)) {
            *known = value;
            return;
        }
        if self.count >= MAX_CACHED_PLANS || self.words + key.len() > MAX_KEY_WORDS {
            self.buckets.clear();
            (self.count, self.words) = (0, 0);
        }
        (self.count, self.words) = (self.count + 1, self.words + key.len());
        self.buckets.entry(hash(key)).or_default().push((key.into(), value));
    }
}

/// Four chains of multiplications side by side: keys have a thousand words, and every step hashes one.
fn hash(key: &[u64]) -> u64 {
    /// 2⁶⁴ over the golden ratio, odd.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut lanes = [1u64, 2, 3, 4];
    let (whole, rest) = key.as_chunks::<4>();
    for words in whole {
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = (lane.rotate_left(23) ^ word).wrapping_mul(FACTOR);
        }
    }
    let all = rest.iter().chain(&lanes);
    all.fold(key.len() as u64, |h, word| (h.rotate_left(23) ^ word).wrapping_mul(FACTOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_bucket_are_told_apart() {
        let mut cache = Cache::default();
        for n in 0..100u64 {
            cache.insert(&[n, 1, 2, 3, 4], Arc::new(n));
        }
        cache.buckets.values_mut().for_each(|b| b.push((Box::new([9; 5]), Arc::new(1000))));
        assert!((0..100u64).all(|n| **cache.get(&[n, 1, 2, 3, 4]).unwrap() == n));
        assert!(cache.get(&[0, 1, 2, 3]).is_none());
    }

    #[test]
    fn plans_of_long_graphs_do_not_fill_the_memory() {
        let mut cache = Cache::default();
        let mut key = vec![0; MAX_KEY_WORDS / 4];
        for n in 0..9 {
            key[0] = n;
            cache.insert(&key, Arc::new(n));
            assert_eq!(cache.get(&key).map(|n| **n), Some(n));
            assert!(cache.words <= MAX_KEY_WORDS);
        }
        cache.retain(|n| *n == 8);
        assert_eq!((cache.count, cache.words), (1, key.len()));
    }

    #[test]
    fn a_flood_of_plans_is_forgotten() {
        let mut cache = Cache::default();
        for n in 0..3 * MAX_CACHED_PLANS as u64 {
            cache.insert(&[n], Arc::new(n));
        }
        assert!(cache.count <= MAX_CACHED_PLANS);
    }
}
