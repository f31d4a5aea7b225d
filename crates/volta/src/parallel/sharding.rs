//! What ranks share out instead of each having all of it, and which elements of a parameter are whose.

use crate::error::{Result, bail};
use std::ops::Range;

/// What each of several ranks has only its share of, as in ZeRO (Rajbhandari and others, 2020): stages 1, 2 and 3. Every rank has a part
/// of each parameter, as long as those of the others, and makes the optimizer's step for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharding {
    /// Every rank has everything.
    #[default]
    Nothing,
    /// What the optimizer remembers.
    OptimizerState,
    /// That, and the sums of gradients: each goes to whoever needs it, and nobody has all of them.
    Gradients,
    /// That, and the parameters: between steps nobody has all of them, and who reads one then gets an error. A pass gathers those that it
    /// comes to, and lets them go behind what it computes of them. They are whole while validations run and when training has ended.
    Parameters,
}

impl Sharding {
    /// By its number, from 0 to 3.
    ///
    /// ```
    /// use volta::parallel::Sharding;
    /// assert_eq!(Sharding::of_stage(2)?, Sharding::Gradients);
    /// assert!(Sharding::of_stage(4).is_err());
    /// # Ok::<(), volta::Error>(())
    /// ```
    pub fn of_stage(stage: usize) -> Result<Sharding> {
        match STAGES.get(stage) {
            Some(sharding) => Ok(*sharding),
            None => bail!(Argument, "there is no stage {stage} of sharding: the last one is 3"),
        }
    }

    /// Its number.
    pub fn stage(self) -> usize {
        self as usize
    }
}

const STAGES: [Sharding; 4] =
    [Sharding::Nothing, Sharding::OptimizerState, Sharding::Gradients, Sharding::Parameters];

/// The parts of parameters. A parameter is cut into equally long parts, one a rank; behind its end, the last ones have zeros.
#[derive(Clone, Debug)]
pub(crate) struct ShardLayout {
    /// How many elements each parameter has.
    sizes: Vec<usize>,
    ranks: usize,
}

impl ShardLayout {
    pub fn new(sizes: Vec<usize>, ranks: usize) -> ShardLayout {
        ShardLayout { sizes, ranks }
    }

    /// How many elements a rank has of a parameter.
    pub fn length(&self, parameter: usize) -> usize {
        self.sizes[parameter].div_ceil(self.ranks).max(1)
    }

    /// Which elements a rank has, without zeros.
    pub fn range(&self, parameter: usize, rank: usize) -> Range<usize> {
        let (length, size) = (self.length(parameter), self.sizes[parameter]);
        (rank * length).min(size)..((rank + 1) * length).min(size)
    }

    /// The part of a rank.
    pub fn part(&self, parameter: usize, rank: usize, numbers: &[f32]) -> Vec<f32> {
        let mut part = numbers[self.range(parameter, rank)].to_vec();
        part.resize(self.length(parameter), 0.0);
        part
    }

    /// What parameters have, one behind the other, as what ranks have, one behind the other.
    pub fn by_rank(&self, parameters: &[usize], numbers: &[f32]) -> Vec<f32> {
        let total: usize = parameters.iter().map(|&k| self.length(k)).sum();
        let mut all = Vec::with_capacity(self.ranks * total);
        for rank in 0..self.ranks {
            let mut rest = numbers;
            for &k in parameters {
                let (own, behind) = rest.split_at(self.sizes[k]);
                rest = behind;
                let range = self.range(k, rank);
                all.extend_from_slice(&own[range.clone()]);
                all.resize(all.len() + self.length(k) - range.len(), 0.0);
            }
        }
        all
    }

    /// The other way round: what each parameter has.
    pub fn by_parameter(&self, parameters: &[usize], all: &[f32]) -> Vec<Vec<f32>> {
        let total: usize = parameters.iter().map(|&k| self.length(k)).sum();
        let mut first = 0;
        let whole = |&k: &usize| {
            let mut numbers = Vec::with_capacity(self.sizes[k]);
            for rank in 0..self.ranks {
                numbers.extend_from_slice(&all[rank * total + first..][..self.range(k, rank).len()]);
            }
            first += self.length(k);
            numbers
        };
        parameters.iter().map(whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_each_parameter_once_and_come_back_to_their_places() {
        for ranks in 1..=5 {
            let layout = ShardLayout::new(vec![7, 1, 0, 12], ranks);
            for parameters in [&[0, 1, 2, 3][..], &[3, 0], &[1]] {
                let whole: Vec<Vec<f32>> = parameters
                    .iter()
                    .map(|&k| (0..layout.sizes[k]).map(|n| (100 * k + n) as f32).collect())
                    .collect();
                let all = layout.by_rank(parameters, &whole.concat());
                assert_eq!(layout.by_parameter(parameters, &all), whole);
                let each = all.len() / ranks;
                for rank in 0..ranks {
                    let own: Vec<f32> = parameters
                        .iter()
                        .zip(&whole)
                        .flat_map(|(&k, numbers)| layout.part(k, rank, numbers))
                        .collect();
                    assert_eq!(all[rank * each..][..each], own);
                }
            }
        }
    }
}
