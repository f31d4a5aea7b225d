//! Where the gradients of q, k and v stand in the flat result of attention's gradient.

use crate::shape::Shape;

/// The gradient of one of them, of shape (batch, heads, rows, width). It is written as (batch, rows, heads, width), as the
/// layers in front of attention make their results, and neighbours of one size share every row: (batch, rows, which, heads,
/// width). The gradient of a tensor that q, k and v are parts of is there in one piece then.
#[derive(Clone, Copy, Debug)]
pub struct PackedGradient {
    pub batch: usize,
    pub heads: usize,
    pub rows: usize,
    pub width: usize,
    /// How many gradients share its rows, and which of them it is.
    pub sharing: usize,
    pub which: usize,
    /// The first element of those that share rows.
    pub start: usize,
}

impl PackedGradient {
    /// Of each of q, k and v, given their shapes.
    pub fn of(shapes: [Shape; 3]) -> [PackedGradient; 3] {
        let size = |k: usize| [shapes[k][2], shapes[k][3]];
        let mut start = 0;
        std::array::from_fn(|k| {
            let first = (0..=k).rev().take_while(|&j| size(j) == size(k)).last().unwrap_or(k);
            let sharing = (first..3).take_while(|&j| size(j) == size(k)).count();
            let [[batch, heads], [rows, width]] = [[shapes[k][0], shapes[k][1]], size(k)];
            let place = PackedGradient { batch, heads, rows, width, sharing, which: k - first, start };
            if k + 1 == first + sharing {
                start = place.end();
            }
            place
        })
    }

    /// The shape of those that share rows.
    pub fn shared(&self) -> Shape {
        Shape::of(&[self.batch, self.rows, self.sharing, self.heads, self.width])
    }

    /// What stands behind those that share rows.
    pub fn end(&self) -> usize {
        self.start + self.shared().numel()
    }

    /// Its own first element.
    pub fn first(&self) -> usize {
        self.start + self.which * self.heads * self.width
    }

    /// How many heads, of all that share it, a row has side by side.
    pub fn across(&self) -> usize {
        self.sharing * self.heads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(queries: usize, keys: usize, width: usize, value_width: usize) -> Vec<[usize; 4]> {
        let shape = |rows, width| Shape::of(&[2, 3, rows, width]);
        let all = PackedGradient::of([shape(queries, width), shape(keys, width), shape(keys, value_width)]);
        all.iter().map(|p| [p.first(), p.sharing, p.across(), p.end()]).collect()
    }

    #[test]
    fn gradients_of_one_size_share_rows() {
        assert_eq!(places(5, 5, 4, 4), [[0, 3, 9, 360], [12, 3, 9, 360], [24, 3, 9, 360]]);
        assert_eq!(places(5, 7, 4, 4), [[0, 1, 3, 120], [120, 2, 6, 456], [132, 2, 6, 456]]);
        assert_eq!(places(5, 5, 4, 2), [[0, 2, 6, 240], [12, 2, 6, 240], [240, 1, 3, 300]]);
        assert_eq!(places(5, 7, 4, 2), [[0, 1, 3, 120], [120, 1, 3, 288], [288, 1, 3, 372]]);
    }
}
