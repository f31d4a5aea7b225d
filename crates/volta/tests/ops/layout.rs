//! Ways in which an input may lie in memory: views that give the same values from other places.

use crate::reference::Array;
use volta::{Range, Tensor};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    Contiguous,
    /// Stored with its axes in reverse order.
    Permuted,
    /// Repeated from an axis of extent 1.
    Expanded,
    /// The middle of a larger one.
    Sliced,
    /// Every second element of a larger one.
    Stepped,
    /// Stored as it is, padded and cut back.
    PaddedThenNarrowed,
    /// Stored backwards.
    Flipped,
    FlippedTwice,
}
use Layout::*;

impl Layout {
    pub const ALL: [Layout; 8] =
        [Contiguous, Permuted, Expanded, Sliced, Stepped, PaddedThenNarrowed, Flipped, FlippedTwice];

    /// The values as this layout can show them: an expanded axis holds the same value throughout.
    pub fn values(self, x: &Array) -> Array {
        match (self, repeated_axis(x)) {
            (Expanded, Some(axis)) => x.slice(axis, 0, 1, 1).broadcast_to(&x.shape),
            _ => x.clone(),
        }
    }

    /// What lies in memory, `fill` in the places that are not seen.
    pub fn store(self, x: &Array, fill: f64) -> Array {
        let axes: Vec<usize> = (0..x.rank()).collect();
        match self {
            Contiguous | PaddedThenNarrowed | FlippedTwice => x.clone(),
            Permuted => x.permute(&axes.iter().rev().copied().collect::<Vec<_>>()),
            Expanded => match repeated_axis(x) {
                Some(axis) => x.slice(axis, 0, 1, 1),
                None => x.clone(),
            },
            Sliced => x.pad(&vec![(1, 2); x.rank()], fill),
            Stepped => {
                let shape: Vec<usize> = x.shape.iter().map(|e| 2 * e + 1).collect();
                Array::from_fn(&shape, |index| {
                    if index.iter().all(|i| i % 2 == 1) {
                        x.at(&index.iter().map(|i| i / 2).collect::<Vec<_>>())
                    } else {
                        fill
                    }
                })
            }
            Flipped => x.flip(&axes),
        }
    }

    /// The values again, from the tensor that holds what [`store`](Self::store) gave.
    pub fn view(self, stored: &Tensor, shape: &[usize]) -> Tensor {
        let rank = shape.len() as isize;
        let every: Vec<isize> = (0..rank).collect();
        match self {
            Contiguous => stored.clone(),
            Permuted => stored.permute(&every.iter().rev().copied().collect::<Vec<_>>()),
            Expanded => stored.expand(shape),
            Sliced => {
                let middle: Vec<Range> = shape.iter().map(|&e| (1..1 + e as isize).into()).collect();
                stored.slice(middle)
            }
            Stepped => stored.slice(vec![Range::by(1.., 2); shape.len()]),
            PaddedThenNarrowed => {
                let mut padded = stored.pad(&vec![(2, 1); shape.len()], 3);
                for (k, &e) in shape.iter().enumerate() {
                    padded = padded.narrow(k as isize, 2, e);
                }
                padded
            }
            Flipped => stored.flip(&every),
            FlippedTwice => stored.flip(&every).flip(&every),
        }
    }

    /// The gradient of what is stored, given the gradient of the view.
    pub fn stored_gradient(self, gradient: &Array) -> Array {
        match (self, repeated_axis(gradient)) {
            (Expanded, Some(axis)) => gradient.sum_of(&[axis], true),
            _ => self.store(gradient, 0.0),
        }
    }
}

/// The axis an expanded layout repeats.
fn repeated_axis(x: &Array) -> Option<usize> {
    x.shape.iter().position(|&e| e > 1)
}
