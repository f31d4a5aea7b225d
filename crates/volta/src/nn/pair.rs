//! Sizes along the two axes of an image.

/// A size for height and width: one number for both, or one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair(pub [usize; 2]);

impl From<usize> for Pair {
    fn from(both: usize) -> Pair {
        Pair([both; 2])
    }
}

impl From<[usize; 2]> for Pair {
    fn from(each: [usize; 2]) -> Pair {
        Pair(each)
    }
}

impl From<(usize, usize)> for Pair {
    fn from((height, width): (usize, usize)) -> Pair {
        Pair([height, width])
    }
}

/// `3×5`.
pub(super) fn fmt_pair([height, width]: [usize; 2]) -> String {
    format!("{height}×{width}")
}
