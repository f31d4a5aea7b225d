//! Plans by the structure of the graph they compute.

use std::collections::HashMap;
use std::sync::Arc;

/// Plans kept for replay; a program that makes more than this is varying its shapes all the time.
const MOST: usize = 1024;

/// Values whose keys have the same hash.
type Bucket<T> = Vec<(Box<[u64]>, Arc<T>)>;

/// Values under long keys, compared whole.
pub(super) struct Cache<T> {
    buckets: HashMap<u64, Bucket<T>>,
    count: usize,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Cache { buckets: HashMap::new(), count: 0 }
    }
}

impl<T> Cache<T> {
    pub fn get(&self, key: &[u64]) -> Option<&Arc<T>> {
        self.buckets.get(&hash(key))?.iter().find(|(k, _)| **k == *key).map(|(_, value)| value)
    }

    /// Forgets what is of no use any more.
    pub fn retain(&mut self, useful: impl Fn(&T) -> bool) {
        for bucket in self.buckets.values_mut() {
            let before = bucket.len();
            bucket.retain(|(_, value)| useful(value));
            self.count -= before - bucket.len();
        }
    }

    pub fn insert(&mut self, key: &[u64], value: Arc<T>) {
        if self.count >= MOST {
            self.buckets.clear();
            self.count = 0;
        }
        self.count += 1;
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
    fn a_flood_of_plans_is_forgotten() {
        let mut cache = Cache::default();
        for n in 0..3 * MOST as u64 {
            cache.insert(&[n], Arc::new(n));
        }
        assert!(cache.count <= MOST);
    }
}
