//! A global batch in parts with fixed borders, and the fixed tree in which what they give is added.
//!
//! Rounding makes a sum depend on its order. Here the order depends on the number of parts alone: the tree over parts `0..count` is
//! split behind the largest power of two that is less than its length, and so are its branches. Whoever has parts that lie side by side
//! adds up the branches that lie within them; what is left to add is the same for everybody.

use crate::error::{Error, ErrorKind, Result, bail};
use std::collections::BTreeMap;
use std::ops::Range;

/// How many parts a global batch has.
///
/// ```
/// use volta::parallel::GradientParts;
/// let parts = GradientParts::new(4)?;
/// assert_eq!(parts.rows(10, 1), 2..5);
/// assert_eq!(parts.weight(10, 1), 0.3);
/// // Three workers have these parts, and hand over these sums.
/// assert_eq!([0, 1, 2].map(|k| parts.own(&[1, 1, 2], k)), [0..1, 1..2, 2..4]);
/// assert_eq!(parts.branches(0..3), [0..2, 2..3]);
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradientParts {
    count: usize,
}

impl GradientParts {
    /// So many parts, at least one.
    pub fn new(count: usize) -> Result<GradientParts> {
        if count == 0 {
            bail!(Argument, "a batch has at least one part");
        }
        Ok(GradientParts { count })
    }

    /// How many there are.
    pub fn count(self) -> usize {
        self.count
    }

    /// The rows of a global batch that are part `part`. They depend on nothing but the batch's length and the number of parts, and
    /// are equally many up to one.
    pub fn rows(self, batch: usize, part: usize) -> Range<usize> {
        let border = |part: usize| (part as u128 * batch as u128 / self.count as u128) as usize;
        border(part)..border(part + 1)
    }

    /// What the mean over part `part` counts in the mean over the batch: its share of the rows.
    pub fn weight(self, batch: usize, part: usize) -> f64 {
        self.rows(batch, part).len() as f64 / batch as f64
    }

    /// An error if some part of a batch of so many rows would be empty.
    pub fn check(self, batch: usize) -> Result<()> {
        if batch < self.count {
            bail!(
                Argument,
                "a batch of {batch} rows cannot be cut into {} parts: make the batch larger, leave out short batches with \
                 drop_last, or ask for fewer devices or parts",
                self.count
            );
        }
        Ok(())
    }

    /// The parts that worker `k` computes, if the workers have so many each, one behind the other.
    pub fn own(self, counts: &[usize], k: usize) -> Range<usize> {
        debug_assert_eq!(counts.iter().sum::<usize>(), self.count);
        let first = counts[..k].iter().sum();
        first..first + counts[k]
    }

    /// The parts of worker `k` of `workers`: equally many up to one.
    pub fn equal_share(self, workers: usize, k: usize) -> Range<usize> {
        GradientParts { count: workers }.rows(self.count, k)
    }

    /// The largest branches of the tree that lie within a worker's parts, from the first on: the sums that it hands over.
    pub fn branches(self, own: Range<usize>) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        branches_within(0..self.count, &own, &mut found);
        found
    }

    /// The branch that `branch` is added to, and the sum of both; nothing for the whole tree. Of both, the one that begins first is
    /// the left operand.
    pub fn sibling(self, branch: &Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
        let mut at = 0..self.count;
        while at != *branch {
            let middle = middle(&at);
            let (left, right) = (at.start..middle, middle..at.end);
            if left == *branch {
                return Some((right, at));
            }
            if right == *branch {
                return Some((left, at));
            }
            at = if branch.end <= middle { left } else { right };
            debug_assert!(at.len() > 1, "{branch:?} is no branch");
        }
        None
    }
}

/// Where a branch of at least two parts is split: behind the largest power of two that is less than its length.
fn middle(branch: &Range<usize>) -> usize {
    branch.start + branch.len().next_power_of_two() / 2
}

fn branches_within(branch: Range<usize>, own: &Range<usize>, found: &mut Vec<Range<usize>>) {
    if branch.start >= own.end || own.start >= branch.end {
        return;
    }
    if own.start <= branch.start && branch.end <= own.end {
        return found.push(branch);
    }
    let middle = middle(&branch);
    branches_within(branch.start..middle, own, found);
    branches_within(middle..branch.end, own, found);
}

/// The sum over all parts as far as it has come: a value for every branch whose sibling is not there yet.
///
/// ```
/// use volta::parallel::{GradientParts, TreeSum};
/// let mut sum = TreeSum::new(GradientParts::new(3)?);
/// for (part, text) in [(2, "c"), (0, "a"), (1, "b")] {
///     sum.add(part..part + 1, text.to_string(), |left, right| Ok(format!("({left}+{right})")))?;
/// }
/// assert_eq!(sum.total()?, "((a+b)+c)");
/// # Ok::<(), volta::Error>(())
/// ```
pub struct TreeSum<T> {
    parts: GradientParts,
    /// By where they begin: where they end, and their sums.
    branches: BTreeMap<usize, (usize, T)>,
}

impl<T> TreeSum<T> {
    /// Nothing yet.
    pub fn new(parts: GradientParts) -> TreeSum<T> {
        TreeSum { parts, branches: BTreeMap::new() }
    }

    /// Takes in the sum of a branch, a single part or more, and adds up with `join` what can be: the left branch comes first.
    pub fn add(
        &mut self,
        branch: Range<usize>,
        value: T,
        mut join: impl FnMut(T, T) -> Result<T>,
    ) -> Result<()> {
        let (mut branch, mut value) = (branch, value);
        while let Some((sibling, both)) = self.parts.sibling(&branch) {
            let is_there = self.branches.get(&sibling.start).is_some_and(|(end, _)| *end == sibling.end);
            let Some((_, other)) = is_there.then(|| self.branches.remove(&sibling.start)).flatten() else {
                break;
            };
            value = if branch.start < sibling.start { join(value, other)? } else { join(other, value)? };
            branch = both;
        }
        self.branches.insert(branch.start, (branch.end, value));
        Ok(())
    }

    /// The value of the last branch that there is.
    pub fn last(&self) -> Option<&T> {
        self.branches.values().next_back().map(|(_, value)| value)
    }

    /// The branches that there are, from the first part on.
    pub fn into_branches(self) -> Vec<(Range<usize>, T)> {
        self.branches.into_iter().map(|(start, (end, value))| (start..end, value)).collect()
    }

    /// The sum of all parts; an error if some are missing.
    pub fn total(self) -> Result<T> {
        let (parts, mut branches) = (self.parts, self.into_branches());
        match (branches.pop(), branches.is_empty()) {
            (Some((branch, value)), true) if branch == (0..parts.count) => Ok(value),
            _ => Err(Error::new(ErrorKind::Argument, "some parts of the batch were not computed")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(parts: GradientParts, workers: &[usize], order: impl Iterator<Item = usize>) -> String {
        let join = |left: String, right: String| Ok(format!("({left} {right})"));
        let mut whole = TreeSum::new(parts);
        for k in order {
            let mut own = TreeSum::new(parts);
            for part in parts.own(workers, k).rev() {
                own.add(part..part + 1, part.to_string(), join).unwrap();
            }
            let own = own.into_branches();
            let names: Vec<Range<usize>> = own.iter().map(|(branch, _)| branch.clone()).collect();
            assert_eq!(names, parts.branches(parts.own(workers, k)));
            own.into_iter().for_each(|(branch, value)| whole.add(branch, value, join).unwrap());
        }
        whole.total().unwrap()
    }

    #[test]
    fn the_tree_is_the_same_whoever_computes_the_parts() {
        for count in 1..=13 {
            let parts = GradientParts::new(count).unwrap();
            let alone = text_of(parts, &[count], 0..1);
            for workers in 1..=count {
                let equal: Vec<usize> = (0..workers).map(|k| parts.equal_share(workers, k).len()).collect();
                assert_eq!(text_of(parts, &equal, 0..workers), alone);
                assert_eq!(text_of(parts, &equal, (0..workers).rev()), alone);
                let mut uneven = vec![1; workers];
                uneven[workers / 2] += count - workers;
                assert_eq!(text_of(parts, &uneven, 0..workers), alone);
            }
        }
        assert_eq!(text_of(GradientParts { count: 6 }, &[6], 0..1), "(((0 1) (2 3)) (4 5))");
    }

    #[test]
    fn borders_cover_the_batch_and_weights_add_up() {
        for (batch, count) in [(4, 4), (10, 4), (1 << 40, 3), (7, 1)] {
            let parts = GradientParts::new(count).unwrap();
            assert!(parts.check(batch).is_ok());
            assert_eq!(parts.rows(batch, 0).start, 0);
            assert_eq!(parts.rows(batch, count - 1).end, batch);
            assert!((1..count).all(|p| parts.rows(batch, p).start == parts.rows(batch, p - 1).end));
            let total: f64 = (0..count).map(|p| parts.weight(batch, p)).sum();
            assert!((total - 1.0).abs() < 1e-12);
        }
        assert!(GradientParts::new(0).is_err());
        assert!(GradientParts::new(5).unwrap().check(4).unwrap_err().message().contains("drop_last"));
    }

    #[test]
    fn a_part_that_is_missing_is_an_error() {
        let mut sum = TreeSum::new(GradientParts::new(4).unwrap());
        [0, 1, 3].into_iter().for_each(|p| sum.add(p..p + 1, p, |a, b| Ok(a + b)).unwrap());
        assert!(sum.total().is_err());
    }
}
