//! Sums of what ranks have: in any order, in a fixed tree, or of 16-bit floats.

use super::gradient_parts::{GradientParts, TreeSum};
use super::world::World;
use crate::error::Result;
use half::f16;

/// How gradients of ranks are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Summation {
    /// As the world likes: the last bits depend on how many ranks there are.
    #[default]
    AnyOrder,
    /// In a fixed tree: the same bits for any number of ranks.
    Tree,
    /// Sent as f16, added in f32 in a fixed tree: half the bytes.
    Half,
}

impl Summation {
    /// Gives all ranks the sums of what they have.
    pub(crate) fn sum(self, world: &dyn World, numbers: &mut [f32]) -> Result<()> {
        if world.size() == 1 || numbers.is_empty() {
            return Ok(());
        }
        match self {
            Summation::AnyOrder => world.all_reduce(numbers),
            Summation::Tree => exchange::<f32>(world, numbers),
            Summation::Half => exchange::<f16>(world, numbers),
        }
    }

    /// Bytes that a number takes on its way.
    pub(crate) fn bytes_a_number(self) -> usize {
        if self == Summation::Half { 2 } else { 4 }
    }
}

/// A number as it is sent.
trait Wire: Copy {
    const BYTES: usize;
    fn put(number: f32, bytes: &mut [u8]);
    fn get(bytes: &[u8]) -> f32;
}

impl Wire for f32 {
    const BYTES: usize = 4;

    fn put(number: f32, bytes: &mut [u8]) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }

    fn get(bytes: &[u8]) -> f32 {
        f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

impl Wire for f16 {
    const BYTES: usize = 2;

    fn put(number: f32, bytes: &mut [u8]) {
        bytes.copy_from_slice(&f16::from_f32(number).to_le_bytes());
    }

    fn get(bytes: &[u8]) -> f32 {
        f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
    }
}

fn write<W: Wire>(numbers: &[f32], bytes: &mut [u8]) {
    bytes.chunks_exact_mut(W::BYTES).zip(numbers).for_each(|(bytes, number)| W::put(*number, bytes));
}

fn read<W: Wire>(bytes: &[u8], numbers: &mut [f32]) {
    numbers.iter_mut().zip(bytes.chunks_exact(W::BYTES)).for_each(|(number, bytes)| *number = W::get(bytes));
}

/// Each rank adds a part of the numbers of all, and all ranks get all parts: every number goes out once and comes in once, as in a
/// ring.
fn exchange<W: Wire>(world: &dyn World, numbers: &mut [f32]) -> Result<()> {
    let size = world.size();
    let length = numbers.len().div_ceil(size);
    let mut outgoing = vec![0; size * length * W::BYTES];
    write::<W>(numbers, &mut outgoing);
    let mut incoming = vec![0; outgoing.len()];
    world.all_to_all(&outgoing, &mut incoming)?;
    let mut tree = TreeSum::new(GradientParts::new(size)?);
    for (rank, part) in incoming.chunks(length * W::BYTES).enumerate() {
        let mut numbers = vec![0.0; length];
        read::<W>(part, &mut numbers);
        tree.add(rank..rank + 1, numbers, join)?;
    }
    let mut mine = vec![0; length * W::BYTES];
    write::<W>(&tree.total()?, &mut mine);
    world.all_gather(&mine, &mut incoming)?;
    read::<W>(&incoming, numbers);
    Ok(())
}

/// Adds the numbers of the right branch to those of the left one.
pub(crate) fn join(mut left: Vec<f32>, right: Vec<f32>) -> Result<Vec<f32>> {
    add(&mut left, &right);
    Ok(left)
}

pub(crate) fn add(to: &mut [f32], numbers: &[f32]) {
    to.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::ThreadWorld;

    /// Numbers whose sum depends on its order.
    fn part(k: usize) -> Vec<f32> {
        (0..37).map(|n| ((k * 37 + n) as f32 * 0.7).sin() * 10f32.powi((n % 7) as i32 - 3)).collect()
    }

    fn bits(numbers: &[f32]) -> Vec<u32> {
        numbers.iter().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn a_tree_has_the_same_bits_for_one_two_four_and_eight_ranks() {
        let sums: Vec<Vec<f32>> = [1, 2, 4, 8]
            .into_iter()
            .map(|size| {
                let results = ThreadWorld::run(size, |world| {
                    let own = 8 / size;
                    let mut tree = TreeSum::new(GradientParts::new(own)?);
                    (0..own).try_for_each(|k| tree.add(k..k + 1, part(world.rank() * own + k), join))?;
                    let mut sum = tree.total()?;
                    Summation::Tree.sum(&*world, &mut sum)?;
                    Ok(sum)
                });
                let all: Vec<Vec<f32>> = results.into_iter().map(Result::unwrap).collect();
                assert!(all.iter().all(|sum| bits(sum) == bits(&all[0])), "{size} ranks differ");
                all.into_iter().next().unwrap()
            })
            .collect();
        assert!(sums.iter().all(|sum| bits(sum) == bits(&sums[0])));
        let in_a_row = (1..8).fold(part(0), |mut sum, k| {
            add(&mut sum, &part(k));
            sum
        });
        assert_ne!(bits(&sums[0]), bits(&in_a_row), "the numbers show the order");
    }

    #[test]
    fn trees_of_three_parts_are_those_of_three_ranks() {
        let mut tree = TreeSum::new(GradientParts::new(3).unwrap());
        (0..3).for_each(|k| tree.add(k..k + 1, part(k), join).unwrap());
        let sum = bits(&tree.total().unwrap());
        let results = ThreadWorld::run(3, |world| {
            let mut numbers = part(world.rank());
            Summation::Tree.sum(&*world, &mut numbers)?;
            Ok(bits(&numbers))
        });
        results.into_iter().for_each(|result| assert_eq!(result.unwrap(), sum));
    }

    #[test]
    fn halves_are_rounded_on_their_way_and_added_in_full() {
        let results = ThreadWorld::run(2, |world| {
            let mut numbers = vec![if world.rank() == 0 { 1.0 } else { 1.0 / 2048.0 }, 0.1];
            Summation::Half.sum(&*world, &mut numbers)?;
            Ok(numbers)
        });
        for result in results {
            let tenth = f16::from_f32(0.1).to_f32();
            assert_eq!(result.unwrap(), [1.0, f16::from_f32(tenth + tenth).to_f32()]);
        }
    }
}
