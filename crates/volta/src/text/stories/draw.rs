//! Random choices by counting.

use crate::random::threefry;

pub(super) struct StoryRng {
    key: [u32; 2],
    drawn: u32,
}

impl StoryRng {
    pub fn new(seed: u64) -> StoryRng {
        StoryRng { key: [seed as u32, (seed >> 32) as u32], drawn: 0 }
    }

    /// A number under `count`.
    pub fn below(&mut self, count: usize) -> usize {
        let [word, _] = threefry(self.key, [self.drawn, 0]);
        self.drawn = self.drawn.wrapping_add(1);
        // The high bits of a product: even enough for choices among a few.
        ((u64::from(word) * count as u64) >> 32) as usize
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// True once in `count` times.
    pub fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// Different numbers under `count`, as many as asked for.
    pub fn several(&mut self, amount: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        (0..amount).map(|_| all.remove(self.below(all.len()))).collect()
    }
}
