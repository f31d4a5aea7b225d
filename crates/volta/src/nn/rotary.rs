//! Rotary positions.

use crate::call::LayerScope;
use crate::error::{ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Positions as rotations of queries and keys (Su et al., 2021): the pair of elements i of a vector at position p is
/// turned by p · base^(−2i / width), so that products depend on distances alone.
///
/// ```
/// use volta::{Rotary, Tensor};
/// let x = Tensor::from_slice(&[1f32, 0.0], [1, 2]);
/// let turned = Rotary::new().apply(&x, 3).to_vec::<f32>();
/// assert!((turned[0] - 3f32.cos()).abs() < 1e-6 && (turned[1] - 3f32.sin()).abs() < 1e-6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotary {
    /// The base of the frequencies; 10 000 unless changed.
    pub base: f64,
    /// Pairs are neighbours, rather than elements half a width apart.
    pub interleaved: bool,
}

impl Default for Rotary {
    fn default() -> Rotary {
        Rotary { base: 10_000.0, interleaved: false }
    }
}

impl Rotary {
    /// Pairs half a width apart, and a base of 10 000.
    pub fn new() -> Rotary {
        Rotary::default()
    }

    /// With another base.
    pub fn with_base(self, base: f64) -> Rotary {
        Rotary { base, ..self }
    }

    /// With neighbours as pairs.
    pub fn with_neighbours(self) -> Rotary {
        Rotary { interleaved: true, ..self }
    }

    /// `x`, of shape (…, length, width), with the first vector at position `start`. The position is an argument of the
    /// plan: another one does not compile anything.
    #[track_caller]
    pub fn apply(&self, x: &Tensor, start: usize) -> Tensor {
        self.try_apply(x, start).unwrap_or_else(|e| e.raise())
    }

    /// [`apply`](Self::apply) that returns its error.
    #[track_caller]
    pub fn try_apply(&self, x: &Tensor, start: usize) -> Result<Tensor> {
        let _scope = LayerScope::enter(None);
        let shape = x.shape();
        let rank = shape.rank();
        if rank < 2 || !shape[rank - 1].is_multiple_of(2) {
            let message =
                format!("the input has shape {shape}: (…, length, width) with an even width is needed");
            return Err(super::call::misuse("Rotary", ErrorKind::Shape, message));
        }
        let (length, width) = (shape[rank - 2], shape[rank - 1]);
        x.in_wide(|x| {
            let angles = Shape::of(&[length, width / 2]);
            let position = x.index_rule(0, angles, x.dtype()).try_add(start as f64)?;
            let slowing = -2.0 * self.base.ln() / width as f64;
            let angle = position.try_mul(&x.index_rule(1, angles, x.dtype()).try_mul(slowing)?.try_exp()?)?;
            let (cos, sin) = (angle.try_cos()?, angle.try_sin()?);
            let turned = |a: &Tensor, b: &Tensor| {
                let first = a.try_mul(&cos)?.try_sub(&b.try_mul(&sin)?)?;
                Ok::<_, crate::Error>([first, a.try_mul(&sin)?.try_add(&b.try_mul(&cos)?)?])
            };
            if self.interleaved {
                let pairs = x.try_unflatten(-1, [width / 2, 2])?;
                let [a, b] = turned(&pairs.try_select(-1, 0)?, &pairs.try_select(-1, 1)?)?;
                return Tensor::try_stack(&[a, b], -1)?.try_flatten(-2, -1);
            }
            let half = width / 2;
            let parts = turned(&x.try_narrow(-1, 0, half)?, &x.try_narrow(-1, half, half)?)?;
            Tensor::try_cat(&parts, -1)
        })
    }
}
