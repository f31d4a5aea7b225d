//! Sums of what ranks have: in any order, in a fixed tree, or of 16-bit floats.

use super::gradient_parts::{GradientParts, TreeSum};
use super::world::World;
use crate::error::Result;
use half::f16;
use half::slice::HalfBitsSliceExt;
use half::vec::HalfFloatVecExt;
use std::borrow::Cow;

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
            Summation::Half => exchange::<u16>(world, numbers),
        }
    }

    /// This rank's part of the sums of what all have, with the bits that [`sum`](Self::sum) has: as many parts as there are ranks, one
    /// behind the other.
    pub(crate) fn scatter(self, world: &dyn World, numbers: Vec<f32>) -> Result<Vec<f32>> {
        if world.size() == 1 || numbers.is_empty() {
            return Ok(numbers);
        }
        match self {
            Summation::AnyOrder => {
                let mut mine = vec![0.0; numbers.len() / world.size()];
                world.reduce_scatter(&numbers, &mut mine)?;
                Ok(mine)
            }
            Summation::Tree => sum_of_part::<f32>(world, &numbers),
            Summation::Half => {
                let mut mine = sum_of_part::<u16>(world, &numbers)?;
                mine.iter_mut().for_each(|number| *number = f16::from_f32(*number).to_f32());
                Ok(mine)
            }
        }
    }

    /// Bytes that a number takes on its way.
    pub(crate) fn bytes_a_number(self) -> usize {
        if self == Summation::Half { 2 } else { 4 }
    }
}

/// A number as it is sent.
trait Wire: bytemuck::Pod {
    /// Numbers to be sent, of which there may be more than there are: zeros.
    fn outgoing(numbers: &[f32], count: usize) -> Cow<'_, [Self]>;

    /// What came.
    fn incoming(sent: Vec<Self>) -> Vec<f32>;

    /// The same, as far as `numbers` go.
    fn read(sent: &[Self], numbers: &mut [f32]);
}

impl Wire for f32 {
    fn outgoing(numbers: &[f32], count: usize) -> Cow<'_, [f32]> {
        if numbers.len() == count {
            return Cow::Borrowed(numbers);
        }
        let mut all = numbers.to_vec();
        all.resize(count, 0.0);
        Cow::Owned(all)
    }

    fn incoming(sent: Vec<f32>) -> Vec<f32> {
        sent
    }

    fn read(sent: &[f32], numbers: &mut [f32]) {
        numbers.copy_from_slice(&sent[..numbers.len()]);
    }
}

/// The bits of an f16.
impl Wire for u16 {
    fn outgoing(numbers: &[f32], count: usize) -> Cow<'_, [u16]> {
        let mut all = vec![f16::ZERO; count];
        volta_cpu::store_f16(numbers, &mut all[..numbers.len()]);
        Cow::Owned(all.reinterpret_into())
    }

    fn incoming(sent: Vec<u16>) -> Vec<f32> {
        let mut numbers = vec![0.0; sent.len()];
        volta_cpu::load_f16(sent.reinterpret_cast(), &mut numbers);
        numbers
    }

    fn read(sent: &[u16], numbers: &mut [f32]) {
        volta_cpu::load_f16(sent[..numbers.len()].reinterpret_cast(), numbers);
    }
}

/// Each rank adds a part of the numbers of all, and all ranks get all parts: every number goes out once and comes in once, as in a
/// ring.
fn exchange<W: Wire>(world: &dyn World, numbers: &mut [f32]) -> Result<()> {
    let sum = sum_of_part::<W>(world, numbers)?;
    let mine = W::outgoing(&sum, sum.len());
    let count = sum.len() * world.size();
    if count == numbers.len() && size_of::<W>() == size_of::<f32>() {
        // They are sent as they are.
        return world.all_gather(bytemuck::cast_slice(&mine), bytemuck::cast_slice_mut(numbers));
    }
    let mut all = vec![W::zeroed(); count];
    world.all_gather(bytemuck::cast_slice(&mine), bytemuck::cast_slice_mut(&mut all))?;
    W::read(&all, numbers);
    Ok(())
}

/// The sum of this rank's part of the numbers of all; the last part may end in zeros.
fn sum_of_part<W: Wire>(world: &dyn World, numbers: &[f32]) -> Result<Vec<f32>> {
    let size = world.size();
    let length = numbers.len().div_ceil(size);
    let outgoing = W::outgoing(numbers, size * length);
    let mut incoming = vec![W::zeroed(); size * length];
    world.all_to_all(bytemuck::cast_slice(&outgoing), bytemuck::cast_slice_mut(&mut incoming))?;
    drop(outgoing);
    let mut parts = W::incoming(incoming);
    let mut tree = TreeSum::new(GradientParts::new(size)?);
    for rank in 0..size {
        // The sum of a branch stands in the place of its first part.
        tree.add(rank..rank + 1, rank * length, |left, right| {
            let (before, behind) = parts.split_at_mut(right);
            add(&mut before[left..left + length], &behind[..length]);
            Ok(left)
        })?;
    }
    tree.total()?;
    parts.truncate(length);
    Ok(parts)
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
