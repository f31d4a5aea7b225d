//! Shapes: up to eight extents, held in place, and the rules of broadcasting and axes.

use crate::call::Call;
use crate::error::{Result, bail};
use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

/// The most axes a tensor may have.
pub const MAX_RANK: usize = 8;

/// The extents of a tensor, outermost first. It is a slice of `usize` for reading, and equals whatever lists the same extents.
///
/// ```
/// use volta::Tensor;
/// let x = Tensor::zeros([2, 3]);
/// assert_eq!(x.shape(), [2, 3]);
/// assert_eq!(vec![2, 3], x.shape());
/// assert_eq!((x.shape()[0], x.shape().size(-1)), (2, 3));
/// for extent in x.shape() {
///     assert!(extent > 1);
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    rank: u8,
    extents: [usize; MAX_RANK],
}

impl Shape {
    /// A shape of these extents; an error beyond [`MAX_RANK`] axes or more elements than can be counted.
    pub fn new(extents: &[usize]) -> Result<Shape> {
        if extents.len() > MAX_RANK {
            bail!(Shape, "shape {extents:?} has {} axes; at most {MAX_RANK} are possible", extents.len());
        }
        let mut count = 1usize;
        for &e in extents {
            match count.checked_mul(e.max(1)) {
                Some(c) if c <= isize::MAX as usize / 8 => count = c,
                _ => bail!(Shape, "shape {extents:?} has too many elements"),
            }
        }
        Ok(Shape::of(extents))
    }

    /// For extents known to be fine.
    #[doc(hidden)]
    pub fn of(extents: &[usize]) -> Shape {
        let mut all = [1; MAX_RANK];
        all[..extents.len()].copy_from_slice(extents);
        Shape { rank: extents.len() as u8, extents: all }
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.iter().product()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Row-major strides, in elements.
    #[doc(hidden)]
    pub fn strides(&self) -> [isize; MAX_RANK] {
        let mut strides = [1; MAX_RANK];
        for k in (0..self.rank().saturating_sub(1)).rev() {
            strides[k] = strides[k + 1] * self[k + 1] as isize;
        }
        strides
    }

    /// The extent of one axis, counted from the end when negative: `shape.size(-1)` is the last one.
    #[track_caller]
    pub fn size(&self, axis: isize) -> usize {
        let _call = Call::enter("size");
        self.try_size(axis).unwrap_or_else(|e| e.raise())
    }

    /// [`size`](Self::size) that returns its error.
    #[track_caller]
    pub fn try_size(&self, axis: isize) -> Result<usize> {
        let _call = Call::enter("size");
        self.axis(axis).map(|k| self.extents[k])
    }

    /// The axis that `axis` means, counted from the end when negative.
    #[doc(hidden)]
    pub fn axis(&self, axis: isize) -> Result<usize> {
        let rank = self.rank().max(1) as isize;
        if axis < -rank || axis >= rank {
            bail!(
                Shape,
                "axis {axis} is out of range for shape {self}: it must lie in {}..={}",
                -rank,
                rank - 1
            );
        }
        Ok(axis.rem_euclid(rank) as usize)
    }

    /// The set of axes as a bit mask; an empty list means all of them.
    #[doc(hidden)]
    pub fn axes(&self, axes: &[isize]) -> Result<u8> {
        if axes.is_empty() {
            return Ok(((1u16 << self.rank()) - 1) as u8);
        }
        let mut mask = 0u8;
        for &a in axes {
            let bit = 1 << self.axis(a)?;
            if mask & bit != 0 {
                bail!(Shape, "axis {a} appears twice in {axes:?}");
            }
            mask |= bit;
        }
        // A rank-0 tensor has no axis to reduce, though PyTorch lets one name axis 0 or -1.
        Ok(if self.rank() == 0 { 0 } else { mask })
    }

    /// The shape with the extents of `mask`'s axes replaced by 1.
    #[doc(hidden)]
    pub fn keep(&self, mask: u8) -> Shape {
        let mut out = *self;
        for k in 0..self.rank() {
            if mask >> k & 1 == 1 {
                out.extents[k] = 1;
            }
        }
        out
    }

    /// The shape without the axes of `mask`.
    #[doc(hidden)]
    pub fn without(&self, mask: u8) -> Shape {
        let kept: Vec<usize> = (0..self.rank()).filter(|k| mask >> k & 1 == 0).map(|k| self[k]).collect();
        Shape::of(&kept)
    }

    /// The common shape of two operands by NumPy's rules.
    #[doc(hidden)]
    pub fn broadcast(&self, other: &Shape) -> Result<Shape> {
        if self == other {
            return Ok(*self);
        }
        let rank = self.rank().max(other.rank());
        let mut out = [1; MAX_RANK];
        for back in 1..=rank {
            let get = |s: &Shape| if back <= s.rank() { s[s.rank() - back] } else { 1 };
            out[rank - back] = match (get(self), get(other)) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                (a, b) => bail!(
                    Shape,
                    "shapes {self} and {other} do not broadcast: extents {a} and {b} differ and neither is 1"
                ),
            };
        }
        Shape::new(&out[..rank])
    }
}

/// Axes or extents as ops take them: `-1`, `[0, 2]`, a slice or a shape. As axes, none at all means every axis.
pub struct Dims(SmallVec<[isize; MAX_RANK]>);

impl Deref for Dims {
    type Target = [isize];
    fn deref(&self) -> &[isize] {
        &self.0
    }
}

macro_rules! axes_from {
    ($($int:ty),*) => {$(
        impl From<$int> for Dims {
            fn from(axis: $int) -> Dims {
                Dims(SmallVec::from_slice(&[axis as isize]))
            }
        }
        impl<const N: usize> From<[$int; N]> for Dims {
            fn from(axes: [$int; N]) -> Dims {
                Dims(axes.iter().map(|&a| a as isize).collect())
            }
        }
        impl<const N: usize> From<&[$int; N]> for Dims {
            fn from(axes: &[$int; N]) -> Dims {
                Dims::from(&axes[..])
            }
        }
        impl From<&Vec<$int>> for Dims {
            fn from(axes: &Vec<$int>) -> Dims {
                Dims::from(&axes[..])
            }
        }
        impl From<&[$int]> for Dims {
            fn from(axes: &[$int]) -> Dims {
                Dims(axes.iter().map(|&a| a as isize).collect())
            }
        }
    )*};
}
axes_from!(i32, isize, usize);

impl From<Shape> for Dims {
    fn from(shape: Shape) -> Dims {
        Dims::from(&shape[..])
    }
}

impl Dims {
    /// As extents of a new tensor: none may be negative.
    #[doc(hidden)]
    pub fn extents(&self) -> Result<Shape> {
        if let Some(e) = self.iter().find(|&&e| e < 0) {
            bail!(Shape, "extent {e} of {:?} is negative", &self[..]);
        }
        Shape::new(&self.iter().map(|&e| e as usize).collect::<SmallVec<[usize; 8]>>())
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.extents[..self.rank as usize]
    }
}

impl AsRef<[usize]> for Shape {
    fn as_ref(&self) -> &[usize] {
        self
    }
}

impl IntoIterator for Shape {
    type Item = usize;
    type IntoIter = std::iter::Take<std::array::IntoIter<usize, MAX_RANK>>;
    fn into_iter(self) -> Self::IntoIter {
        self.extents.into_iter().take(self.rank())
    }
}

impl<'a> IntoIterator for &'a Shape {
    type Item = &'a usize;
    type IntoIter = std::slice::Iter<'a, usize>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Equality with lists of extents, from both sides.
macro_rules! equals_lists {
    ($(($($generic:tt)*) $list:ty;)*) => {$(
        impl<$($generic)*> PartialEq<$list> for Shape {
            fn eq(&self, other: &$list) -> bool {
                let other: &[usize] = other.as_ref();
                self[..] == *other
            }
        }
        impl<$($generic)*> PartialEq<Shape> for $list {
            fn eq(&self, other: &Shape) -> bool {
                other == self
            }
        }
    )*};
}
equals_lists! {
    () [usize];
    () &[usize];
    () Vec<usize>;
    () &Vec<usize>;
    (const N: usize) [usize; N];
    (const N: usize) &[usize; N];
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self[..])
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        let s = |e: &[usize]| Shape::of(e);
        assert_eq!(s(&[3, 1]).broadcast(&s(&[4])).unwrap(), s(&[3, 4]));
        assert_eq!(s(&[]).broadcast(&s(&[2, 0])).unwrap(), s(&[2, 0]));
        assert_eq!(s(&[1]).broadcast(&s(&[0])).unwrap(), s(&[0]));
        assert!(s(&[2]).broadcast(&s(&[3])).is_err());
    }

    #[test]
    fn axes_count_from_both_ends() {
        let s = Shape::of(&[2, 3, 4]);
        assert_eq!(s.axis(-1).unwrap(), 2);
        assert_eq!(s.axes(&[0, -1]).unwrap(), 0b101);
        assert!(s.axis(3).is_err());
        assert!(s.axes(&[1, -2]).is_err());
    }

    #[test]
    fn a_shape_equals_whatever_lists_its_extents() {
        let shape = Shape::of(&[2, 3]);
        let list = vec![2, 3];
        assert_eq!(shape, [2, 3]);
        assert_eq!(shape, &[2, 3]);
        assert_eq!(shape, vec![2, 3]);
        assert_eq!(shape, &list);
        assert_eq!(shape, list[..]);
        assert_eq!(shape, &list[..]);
        assert_eq!([2, 3], shape);
        assert_eq!(&[2, 3], shape);
        assert_eq!(list, shape);
        assert_eq!(&list, shape);
        assert_eq!(list[..], shape);
        assert_eq!(&list[..], shape);
        assert_ne!(shape, [2, 3, 1]);
        assert_ne!(shape, [2]);
        assert_eq!(Shape::of(&[]), [0usize; 0]);
    }

    #[test]
    fn a_shape_is_walked_and_asked_from_both_ends() {
        let shape = Shape::of(&[2, 3, 4]);
        assert_eq!(shape.into_iter().product::<usize>(), 24);
        let mut seen = Vec::new();
        for extent in &shape {
            seen.push(*extent);
        }
        assert_eq!(shape, seen);
        assert_eq!((shape.size(0), shape.size(-1), shape.size(-3)), (2, 4, 2));
        let error = shape.try_size(3).unwrap_err().to_string();
        assert!(error.contains("axis 3 is out of range for shape [2, 3, 4]"), "{error}");
        assert_eq!(Shape::of(&[]).size(-1), 1, "a tensor without axes has one element");
    }

    #[test]
    fn shapes_that_cannot_be_counted_are_refused() {
        assert!(Shape::new(&[usize::MAX, 2]).is_err());
        assert!(Shape::new(&[1; 9]).is_err());
        assert_eq!(Shape::new(&[3, 0]).unwrap().numel(), 0);
    }
}
