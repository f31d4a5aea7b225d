//! Images of digits with their classes: from MNIST's files, or drawn when they are first asked for.

use crate::error::{Thrown, argument, js};
use volta::data::{Dataset, Elements, Mnist, SyntheticDigits};

/// Pixels of a side.
pub const SIDE: usize = 28;

const PIXELS: usize = SIDE * SIDE;

/// Drawn digits to learn from, and to validate on.
const DRAWN: [usize; 2] = [6000, 1000];

/// Of files, the part that is kept apart for validation, and at most so many.
const KEPT_APART: [usize; 2] = [6, 10_000];

/// Images of 28 × 28 bytes.
pub struct Images {
    pixels: Vec<u8>,
    classes: Vec<i32>,
    /// Where they are drawn: by what, and which are there already.
    drawn: Option<(SyntheticDigits, Vec<bool>)>,
}

impl Images {
    fn to_draw(count: usize, seed: u64) -> Images {
        let drawn = Some((SyntheticDigits::new(count, seed), vec![false; count]));
        Images { pixels: vec![0; count * PIXELS], classes: vec![0; count], drawn }
    }

    /// Drawn ones: to learn from, and to validate on.
    pub fn drawn(seed: u64) -> [Images; 2] {
        [Images::to_draw(DRAWN[0], seed), Images::to_draw(DRAWN[1], seed ^ 0x5eed)]
    }

    /// Those of MNIST's files.
    pub fn of_files(images: &[u8], labels: &[u8]) -> Thrown<[Images; 2]> {
        let all = Mnist::from_bytes(images, labels).map_err(js)?;
        if all.shape() != [1, SIDE, SIDE] {
            return Err(argument(&format!(
                "the images are {:?}; 28 × 28 pixels are needed",
                &all.shape()[1..]
            )));
        }
        let count = all.classes().len();
        if count < 2 {
            return Err(argument("there are too few images to learn from some and validate on others"));
        }
        let first = count - (count / KEPT_APART[0]).clamp(1, KEPT_APART[1]);
        let part = |range: std::ops::Range<usize>| Images {
            pixels: all.pixels()[range.start * PIXELS..range.end * PIXELS].to_vec(),
            classes: all.classes()[range].to_vec(),
            drawn: None,
        };
        Ok([part(0..first), part(first..count)])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Pixels and classes of some.
    pub fn batch(&mut self, indices: &[usize]) -> Thrown<(Vec<u8>, Vec<i32>)> {
        let (mut pixels, mut classes) =
            (Vec::with_capacity(indices.len() * PIXELS), Vec::with_capacity(indices.len()));
        for &index in indices {
            self.draw(index)?;
            pixels.extend_from_slice(&self.pixels[index * PIXELS..][..PIXELS]);
            classes.push(self.classes[index]);
        }
        Ok((pixels, classes))
    }

    fn draw(&mut self, index: usize) -> Thrown<()> {
        let Some((digits, there)) = &mut self.drawn else { return Ok(()) };
        if std::mem::replace(&mut there[index], true) {
            return Ok(());
        }
        let sample = digits.get(index).map_err(js)?;
        if let (Elements::U8(pixels), Elements::I32(class)) =
            (sample.input.elements(), sample.target.elements())
        {
            self.pixels[index * PIXELS..][..PIXELS].copy_from_slice(pixels);
            self.classes[index] = class[0];
        }
        Ok(())
    }
}

/// The order of an epoch: a shuffle that seed and epoch decide.
pub struct Order {
    seed: u64,
    epoch: u64,
    /// Examples of this epoch that were given out.
    position: usize,
    indices: Vec<usize>,
}

impl Order {
    /// The order of `count` examples from this epoch and position on.
    pub fn new(count: usize, seed: u64, epoch: u64, position: usize) -> Order {
        let mut order = Order { seed, epoch, position: position.min(count), indices: (0..count).collect() };
        order.shuffle();
        order
    }

    /// Epoch and position, to go on from.
    pub fn place(&self) -> (u64, usize) {
        (self.epoch, self.position)
    }

    fn shuffle(&mut self) {
        let mut state = self.seed ^ self.epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // SplitMix64 (Steele, Lea and Flood, 2014).
        let mut draw = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        self.indices.iter_mut().enumerate().for_each(|(k, index)| *index = k);
        for k in (1..self.indices.len()).rev() {
            self.indices.swap(k, (draw() % (k as u64 + 1)) as usize);
        }
    }

    /// The next examples, all of one epoch: what is left of it is dropped where it is too few.
    pub fn next(&mut self, count: usize) -> &[usize] {
        let count = count.min(self.indices.len());
        if self.position + count > self.indices.len() {
            (self.epoch, self.position) = (self.epoch + 1, 0);
            self.shuffle();
        }
        self.position += count;
        &self.indices[self.position - count..self.position]
    }
}
