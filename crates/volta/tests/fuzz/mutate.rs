//! Damaged and hostile versions of files, the same for the same seed.

/// Numbers that readers trip over.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
    0x4000_0000_0000_0000,
];

/// Mutated files do not grow beyond this.
const MAX_BYTES: usize = 1 << 16;

/// Steele's splitmix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }

    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// A part of a file: mostly a short one.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = if self.below(4) == 0 { length } else { 16 };
        let end = (start + self.below(most + 1)).min(length);
        start..end
    }
}

/// One to five changes of a file; `words` are texts that mean something in it.
pub fn mutated(samples: &[Vec<u8>], words: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let mut file = random.pick(samples).clone();
    for _ in 0..=random.below(5) {
        change(&mut file, samples, words, random);
        file.truncate(MAX_BYTES);
    }
    file
}

fn change(file: &mut Vec<u8>, samples: &[Vec<u8>], words: &[&[u8]], random: &mut Random) {
    let at = random.below(file.len());
    match random.below(12) {
        0 | 1 if !file.is_empty() => file[at] ^= 1 << random.below(8),
        2 if !file.is_empty() => file[at] = random.next() as u8,
        3 => {
            // A number of one, two, four or eight bytes, in either order.
            let width = 1 << random.below(4);
            let number = random.pick(&NUMBERS).wrapping_add(random.below(3) as u64).wrapping_sub(1);
            let mut bytes = number.to_le_bytes()[..width].to_vec();
            if random.below(2) == 0 {
                bytes.reverse();
            }
            let end = (at + width).min(file.len());
            file.splice(at..end, bytes);
        }
        4 => file.truncate(at),
        5 => drop(file.drain(random.range(file.len()))),
        6 => {
            let part = file[random.range(file.len())].to_vec();
            let times = if random.below(8) == 0 { 1 + random.below(2000) } else { 1 };
            let part = part.repeat(times.min(MAX_BYTES / part.len().max(1)));
            file.splice(at..at, part);
        }
        7 => {
            let other = random.pick(samples);
            let part = other[random.range(other.len())].to_vec();
            let place = random.range(file.len());
            file.splice(place, part);
        }
        8 => {
            // Digits that make a number larger, smaller, or none.
            let digits: [&[u8]; 6] = [b"9", b"99999999999999999999", b"-", b"1e308", b".", b"0"];
            let places: Vec<usize> = (0..file.len()).filter(|&k| file[k].is_ascii_digit()).collect();
            if !places.is_empty() {
                let place = *random.pick(&places);
                file.splice(place..place + 1, random.pick(&digits).to_vec());
            }
        }
        9 | 10 if !words.is_empty() => {
            let word = random.pick(words).to_vec();
            let end = (at + random.below(2) * word.len()).min(file.len());
            file.splice(at..end, word);
        }
        _ => {
            let noise: Vec<u8> = (0..random.below(32)).map(|_| random.next() as u8).collect();
            file.splice(at..at, noise);
        }
    }
}
