//! Copying the elements of a view, which strides and an offset describe, in row-major order.

/// Where the elements of a view lie: bytes from `start`, `strides` elements apart along each axis.
#[derive(Clone, Debug)]
pub(super) struct View<'a> {
    pub start: usize,
    pub shape: &'a [usize],
    pub strides: &'a [usize],
    pub element: usize,
}

impl View<'_> {
    /// The byte after the last one that is read; nothing if there are no elements or they cannot be counted.
    #[cfg(any(feature = "pytorch", test))]
    pub fn end(&self) -> Option<usize> {
        let mut last = 0usize;
        for (&extent, &stride) in self.shape.iter().zip(self.strides) {
            last = last.checked_add(extent.checked_sub(1)?.checked_mul(stride)?)?;
        }
        last.checked_add(1)?.checked_mul(self.element)?.checked_add(self.start)
    }

    /// Whether the elements lie in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        let mut next = 1;
        for (&extent, &stride) in self.shape.iter().zip(self.strides).rev() {
            if extent != 1 && stride != next {
                return false;
            }
            next *= extent;
        }
        true
    }

    /// The elements in row-major order, of bytes that reach to [`end`](Self::end); nothing if memory does not
    /// suffice.
    pub fn copy(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let count: usize = self.shape.iter().product();
        let mut out = Vec::new();
        out.try_reserve_exact(count.checked_mul(self.element)?).ok()?;
        if count == 0 {
            return Some(out);
        }
        match self.element {
            1 => self.walk::<1>(bytes, &mut out),
            2 => self.walk::<2>(bytes, &mut out),
            4 => self.walk::<4>(bytes, &mut out),
            _ => self.walk::<8>(bytes, &mut out),
        }
        Some(out)
    }

    fn walk<const SIZE: usize>(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let (inner, step) = match (self.shape.last(), self.strides.last()) {
            (Some(&extent), Some(&stride)) => (extent, stride * SIZE),
            _ => (1, SIZE),
        };
        let outer = self.shape.len().saturating_sub(1);
        let mut index = vec![0; outer];
        let mut at = self.start;
        loop {
            if step == SIZE {
                out.extend_from_slice(&bytes[at..at + inner * SIZE]);
            } else {
                (0..inner).for_each(|k| out.extend_from_slice(&bytes[at + k * step..][..SIZE]));
            }
            // The next row: count up, innermost axis first.
            let mut axis = outer;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                at += self.strides[axis] * SIZE;
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= index[axis] * self.strides[axis] * SIZE;
                index[axis] = 0;
            }
        }
    }
}

/// Strides of elements that lie in row-major order without gaps.
pub(super) fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for k in (1..shape.len()).rev() {
        strides[k - 1] = strides[k] * shape[k].max(1);
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_copied_element_by_element() {
        let bytes: Vec<u8> = (0..24).flat_map(|k: u16| k.to_le_bytes()).collect();
        let copied = |start: usize, shape: &[usize], strides: &[usize]| -> Vec<u16> {
            let view = View { start: 2 * start, shape, strides, element: 2 };
            assert!(view.end().is_some_and(|end| end <= bytes.len()));
            let copy = view.copy(&bytes).unwrap();
            copy.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect()
        };
        assert_eq!(copied(1, &[2, 3], &[6, 1]), [1, 2, 3, 7, 8, 9]);
        assert_eq!(copied(0, &[3, 2], &[1, 4]), [0, 4, 1, 5, 2, 6]);
        assert_eq!(copied(5, &[], &[]), [5]);
        assert_eq!(copied(0, &[2, 2, 2], &[12, 4, 1]), [0, 1, 4, 5, 12, 13, 16, 17]);
        assert_eq!(copied(3, &[2, 2], &[0, 1]), [3, 4, 3, 4]);
    }

    #[test]
    fn ends_and_contiguity_are_told() {
        let view = |shape, strides| View { start: 0, shape, strides, element: 4 };
        assert_eq!(view(&[2, 3], &[3, 1]).end(), Some(24));
        assert_eq!(view(&[2, 3], &[usize::MAX, 1]).end(), None);
        assert_eq!(view(&[0, 3], &[3, 1]).end(), None);
        assert!(view(&[2, 1, 3], &[3, 77, 1]).is_contiguous());
        assert!(!view(&[3, 2], &[1, 3]).is_contiguous());
        assert_eq!(row_major(&[2, 3, 4]), [12, 4, 1]);
    }
}
