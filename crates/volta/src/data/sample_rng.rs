//! Random numbers for data: by counting, under a key made of everything they may depend on.

use super::Pass;
use crate::random::threefry;

/// What a key is for; two uses never share their numbers.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    Shuffle,
    Split,
    Window,
    Digit,
    /// The transforms of the n-th `map` around a dataset.
    Transform(u32),
}

impl Stream {
    fn word(self) -> u32 {
        match self {
            Stream::Shuffle => 0,
            Stream::Split => 1,
            Stream::Window => 2,
            Stream::Digit => 3,
            Stream::Transform(depth) => 0x1000_0000 + depth,
        }
    }
}

/// A stream of random numbers. The same seed, epoch and sample give the same stream, whichever thread asks.
#[derive(Clone, Debug)]
pub struct SampleRng {
    key: [u32; 2],
    drawn: u64,
    /// The second word of the last pair, until it is used.
    spare: Option<u32>,
}

fn words(n: u64) -> [u32; 2] {
    [n as u32, (n >> 32) as u32]
}

impl SampleRng {
    pub(super) fn new(pass: Pass, purpose: Stream, index: usize) -> SampleRng {
        let key = threefry(words(pass.seed), words(pass.epoch));
        let key = threefry(key, [purpose.word(), 0]);
        SampleRng { key: threefry(key, words(index as u64)), drawn: 0, spare: None }
    }

    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        if let Some(word) = self.spare.take() {
            return word;
        }
        let [now, later] = threefry(self.key, words(self.drawn));
        self.drawn += 1;
        self.spare = Some(later);
        now
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f32 {
        (self.bits() >> 8) as f32 / (1 << 24) as f32
    }

    /// Uniform from `low` up to, not including, `high`.
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.uniform()
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f32) -> bool {
        self.uniform() < p
    }

    /// A whole number below `count`, every one as likely as the other. `count` must not be 0.
    pub fn below(&mut self, count: usize) -> usize {
        assert!(count > 0, "there is no number below 0");
        let count = count as u64;
        // 64 bits leave a bias of less than count / 2^64; what would have it is drawn again.
        let fair = u64::MAX - (u64::MAX % count + 1) % count;
        loop {
            let number = u64::from(self.bits()) << 32 | u64::from(self.bits());
            if number <= fair {
                return (number % count) as usize;
            }
        }
    }

    /// The numbers below `count` in random order (Fisher and Yates).
    pub(super) fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for k in (1..count).rev() {
            order.swap(k, self.below(k + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(seed: u64, epoch: u64, purpose: Stream, index: usize) -> SampleRng {
        SampleRng::new(Pass { seed, epoch }, purpose, index)
    }

    #[test]
    fn seed_epoch_use_and_index_each_change_the_numbers() {
        let streams = [
            draw(0, 0, Stream::Transform(0), 0),
            draw(1, 0, Stream::Transform(0), 0),
            draw(0, 1, Stream::Transform(0), 0),
            draw(0, 0, Stream::Transform(1), 0),
            draw(0, 0, Stream::Shuffle, 0),
            draw(0, 0, Stream::Transform(0), 1),
        ];
        let mut first: Vec<u32> = streams.iter().map(|d| d.clone().bits()).collect();
        assert_eq!(first[0], draw(0, 0, Stream::Transform(0), 0).bits());
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), streams.len());
    }

    #[test]
    fn numbers_below_a_count_are_all_met_equally_often() {
        let mut d = draw(3, 0, Stream::Shuffle, 0);
        let mut seen = [0; 7];
        for _ in 0..7000 {
            seen[d.below(7)] += 1;
        }
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
        assert_eq!(d.below(1), 0);
    }

    #[test]
    fn a_permutation_has_every_number_once() {
        let mut order = draw(5, 0, Stream::Shuffle, 0).permutation(100);
        assert_ne!(order, (0..100).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
