//! Layers that only arrange elements anew: flattening and its inverse, pixels from channels, larger images, nothing.

use super::call::{forward, layer};
use super::pair::fmt_pair;
use super::{Module, Pair};
use crate::error::Result;
use crate::shape::Dims;
use crate::tensor::{Interpolation, Tensor};

/// Passes its input on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity;

impl Module for Identity {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || Ok(x.clone()))
    }
}

/// Makes one axis of several: of all but the first, unless told otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Flatten {
    /// The first of these axes.
    pub first: isize,
    /// The last of them.
    pub last: isize,
}

impl Default for Flatten {
    fn default() -> Flatten {
        Flatten { first: 1, last: -1 }
    }
}

impl Flatten {
    /// All axes but the batch become one.
    pub fn new() -> Flatten {
        Flatten::default()
    }

    /// The axes from `first` to `last` become one.
    pub fn axes(first: isize, last: isize) -> Flatten {
        Flatten { first, last }
    }
}

impl Module for Flatten {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || x.try_flatten(self.first, self.last))
    }

    fn describe(&self) -> String {
        format!("axes {} to {}", self.first, self.last)
    }
}

/// Makes several axes of one.
#[derive(Clone, Debug)]
pub struct Unflatten {
    /// The axis that is cut.
    pub axis: isize,
    /// The extents it is cut into; one may be −1.
    pub extents: Vec<isize>,
}

impl Unflatten {
    /// Cuts `axis` into these extents, one of which may be −1.
    pub fn new(axis: isize, extents: impl Into<Dims>) -> Unflatten {
        Unflatten { axis, extents: extents.into().to_vec() }
    }
}

impl Module for Unflatten {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || x.try_unflatten(self.axis, &self.extents[..]))
    }

    fn describe(&self) -> String {
        format!("axis {} into {:?}", self.axis, self.extents)
    }
}

/// Makes every r² channels one of r times the height and width.
#[derive(Clone, Copy, Debug)]
pub struct PixelShuffle {
    /// How many times larger images become.
    pub factor: usize,
}

impl PixelShuffle {
    /// Images `factor` times as large.
    pub fn new(factor: usize) -> PixelShuffle {
        PixelShuffle { factor }
    }
}

impl Module for PixelShuffle {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || x.try_pixel_shuffle(self.factor))
    }

    fn describe(&self) -> String {
        format!("×{}", self.factor)
    }
}

/// What images are resized to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Resize {
    /// A multiple of their height and width, rounded down.
    Scale([f64; 2]),
    /// A height and width.
    Size([usize; 2]),
}

/// Images of another size, interpolated.
///
/// ```
/// use volta::{Interpolation, Module, Tensor, Upsample};
/// let twice = Upsample::new(2.0, Interpolation::Nearest);
/// let y = twice.forward(&Tensor::from_slice(&[1f32, 2.0], [1, 1, 1, 2]));
/// assert_eq!(y.to_vec::<f32>(), [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Upsample {
    /// The new size.
    pub resize: Resize,
    /// How new pixels follow from old ones.
    pub mode: Interpolation,
}

impl Upsample {
    /// Images `scale` times as high and wide.
    pub fn new(scale: f64, mode: Interpolation) -> Upsample {
        Upsample { resize: Resize::Scale([scale; 2]), mode }
    }

    /// Images of one size, whatever they were before.
    pub fn to_size(size: impl Into<Pair>, mode: Interpolation) -> Upsample {
        Upsample { resize: Resize::Size(size.into().0), mode }
    }
}

impl Module for Upsample {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || match self.resize {
            Resize::Scale(scale) => x.try_interpolate_scale(scale, self.mode),
            Resize::Size(size) => x.try_interpolate(size, self.mode),
        })
    }

    fn describe(&self) -> String {
        match self.resize {
            Resize::Scale([height, width]) if height == width => format!("×{height}"),
            Resize::Scale([height, width]) => format!("×{height}, ×{width}"),
            Resize::Size(size) => format!("to {}", fmt_pair(size)),
        }
    }
}
