//! Images of another size: interpolation, and channels exchanged for pixels.

use super::Tensor;
use super::band::{Band, Weights};
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::shape::Shape;
use volta_derive::op;

/// How new pixels follow from old ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// The pixel whose place is next below.
    Nearest,
    /// The weighted mean of four neighbours.
    Bilinear {
        /// Whether the corner pixels' centres, rather than their outer edges, stay in place.
        align_corners: bool,
    },
}

/// One axis on its way to another extent.
struct Scaling {
    axis: usize,
    from: usize,
    to: usize,
    /// Old pixels a new one.
    ratio: f64,
}

impl Scaling {
    fn is_exact(&self) -> bool {
        self.ratio == self.from as f64 / self.to as f64
    }

    /// Whether every old pixel becomes the same number of new ones.
    fn repeats(&self) -> bool {
        self.is_exact() && self.to.is_multiple_of(self.from)
    }

    fn nearest(&self, x: &Tensor) -> Result<Tensor> {
        let &Scaling { axis, from, to, ratio } = self;
        if self.repeats() {
            return x.try_repeat_interleave(to / from, Some(axis as isize));
        }
        if self.is_exact() && from % to == 0 {
            let mut parts: Vec<_> = x.shape().iter().map(|&e| (0, 1, e)).collect();
            parts[axis] = (0, from / to, to);
            return x.slice_parts(&parts);
        }
        // In f32, as PyTorch rounds.
        let place = x.index_rule(0, Shape::of(&[to]), DType::F32).try_mul(f64::from(ratio as f32))?;
        let index = place.try_floor()?.try_to_dtype(DType::I32)?.try_minimum(from - 1)?;
        x.pick(axis, &index)
    }

    /// The weighted means of neighbours; beyond the ends the last pixel counts alone.
    fn linear(&self, x: &Tensor, align_corners: bool) -> Result<Tensor> {
        let &Scaling { axis, from, to, ratio } = self;
        let (step, offset) = match align_corners {
            true => (if to > 1 { (from - 1) as f64 / (to - 1) as f64 } else { 0.0 }, 0.0),
            false => (ratio, 0.5 * ratio - 0.5),
        };
        Band { axis, from, to, weights: Weights::Linear { step, offset } }.apply(x)
    }
}

fn resized(x: &Tensor, size: [usize; 2], ratio: [f64; 2], mode: Interpolation) -> Result<Tensor> {
    let s = x.shape();
    if s[2] == 0 || s[3] == 0 || size.contains(&0) {
        bail!(Shape, "an image of {s} cannot be resized to {size:?}: both sizes must be at least 1");
    }
    let axes = [0, 1].map(|k| Scaling { axis: 2 + k, from: s[2 + k], to: size[k], ratio: ratio[k] });
    match mode {
        Interpolation::Nearest if axes.iter().all(Scaling::repeats) => {
            // Both at once: one copy, and one sum for the gradient.
            let times = axes.map(|a| a.to / a.from);
            let apart = x.reshape_to(Shape::of(&[s[0], s[1], s[2], 1, s[3], 1]))?;
            let wide = apart.expand_to(Shape::new(&[s[0], s[1], s[2], times[0], s[3], times[1]])?)?;
            wide.reshape_to(Shape::of(&[s[0], s[1], size[0], size[1]]))
        }
        Interpolation::Nearest => axes[1].nearest(&axes[0].nearest(x)?),
        Interpolation::Bilinear { align_corners } => {
            x.in_wide(|x| axes[0].linear(&axes[1].linear(x, align_corners)?, align_corners))
        }
    }
}

fn check_images(x: &Tensor) -> Result<()> {
    if x.rank() != 4 {
        bail!(Shape, "the input has shape {}: (batch, channels, height, width) is needed", x.shape());
    }
    Ok(())
}

impl Tensor {
    /// (batch, channels, height, width) with images of another `size`.
    #[op]
    pub fn try_interpolate(&self, size: [usize; 2], mode: Interpolation) -> Result<Tensor> {
        check_images(self)?;
        let s = self.shape();
        let ratio = [0, 1].map(|k| s[2 + k] as f64 / size[k] as f64);
        resized(self, size, ratio, mode)
    }

    /// [`interpolate`](Self::interpolate) to a multiple of the size, rounded down.
    #[op]
    pub fn try_interpolate_scale(&self, scale: [f64; 2], mode: Interpolation) -> Result<Tensor> {
        check_images(self)?;
        if scale.iter().any(|&s| s <= 0.0 || !s.is_finite()) {
            bail!(Argument, "the scale {scale:?} must be positive");
        }
        let s = self.shape();
        let size = [0, 1].map(|k| (s[2 + k] as f64 * scale[k]).floor() as usize);
        resized(self, size, scale.map(|s| 1.0 / s), mode)
    }

    /// Every r² channels of (…, channels, height, width) as one of r times the height and width.
    #[op]
    pub fn try_pixel_shuffle(&self, r: usize) -> Result<Tensor> {
        let shape = self.shape();
        let rank = shape.rank();
        if rank < 3 || r == 0 || !shape[rank - 3].is_multiple_of(r * r) {
            bail!(
                Shape,
                "shape {shape} has no channels that divide into squares of {r}: (…, channels, height, width) is needed"
            );
        }
        let (lead, c, h, w) =
            (&shape[..rank - 3], shape[rank - 3] / (r * r), shape[rank - 2], shape[rank - 1]);
        let flat: usize = lead.iter().product();
        let apart = self.reshape_to(Shape::new(&[flat, c, r, r, h, w])?)?;
        let mixed = apart.permute_order(&[0, 1, 4, 2, 5, 3])?;
        mixed.reshape_to(Shape::new(&[lead, &[c, h * r, w * r]].concat())?)
    }

    /// The inverse of [`pixel_shuffle`](Self::pixel_shuffle): squares of r pixels become channels.
    #[op]
    pub fn try_pixel_unshuffle(&self, r: usize) -> Result<Tensor> {
        let shape = self.shape();
        let rank = shape.rank();
        if rank < 3 || r == 0 || !shape[rank - 2].is_multiple_of(r) || !shape[rank - 1].is_multiple_of(r) {
            bail!(Shape, "the images of shape {shape} do not divide into squares of {r}");
        }
        let (lead, c, h, w) = (&shape[..rank - 3], shape[rank - 3], shape[rank - 2] / r, shape[rank - 1] / r);
        let flat: usize = lead.iter().product();
        let apart = self.reshape_to(Shape::new(&[flat, c, h, r, w, r])?)?;
        let mixed = apart.permute_order(&[0, 1, 3, 5, 2, 4])?;
        mixed.reshape_to(Shape::new(&[lead, &[c * r * r, h, w]].concat())?)
    }
}
