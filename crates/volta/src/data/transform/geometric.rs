//! Flips, crops and padding: pixels move, and zeros come in from outside.

use super::{Transform, image_size, resized};
use crate::data::array::{Array, Rearrange};
use crate::data::sample_rng::SampleRng;
use crate::dtype::Element;
use crate::error::{Result, bail};

/// A window onto every plane of an image, which may reach beyond its edges, and may be mirrored.
struct Window {
    from: [usize; 2],
    to: [usize; 2],
    top: isize,
    left: isize,
    mirrored: bool,
}

impl Rearrange for Window {
    fn run<T: Element>(&self, pixels: &[T]) -> Vec<T> {
        let ([height, width], [rows, columns]) = (self.from, self.to);
        let plane = height * width;
        let planes = pixels.len().checked_div(plane).unwrap_or(0);
        let mut out = vec![T::default(); planes * rows * columns];
        // The columns that have a pixel to show.
        let first = (-self.left).clamp(0, columns as isize);
        let last = (width as isize - self.left).clamp(first, columns as isize);
        if first == last {
            return out;
        }
        for p in 0..planes {
            for row in 0..rows {
                let y = row as isize + self.top;
                if y < 0 || y >= height as isize {
                    continue;
                }
                let line = &pixels[p * plane + y as usize * width..][..width];
                let seen = &line[(first + self.left) as usize..(last + self.left) as usize];
                let shown = &mut out[(p * rows + row) * columns..][first as usize..last as usize];
                shown.copy_from_slice(seen);
            }
        }
        if self.mirrored && columns > 0 {
            out.chunks_exact_mut(columns).for_each(<[T]>::reverse);
        }
        out
    }
}

impl Window {
    fn of(self, array: &Array<'_>) -> Result<Array<'static>> {
        Array::try_new(array.elements().rearranged(&self), &resized(array, self.to))
    }
}

/// Mirrors an image left to right with a probability.
#[derive(Clone, Copy, Debug)]
pub struct RandomHorizontalFlip {
    p: f32,
}

impl RandomHorizontalFlip {
    /// With probability `p`.
    pub fn new(p: f32) -> RandomHorizontalFlip {
        RandomHorizontalFlip { p }
    }
}

impl Transform for RandomHorizontalFlip {
    fn apply<'a>(&self, array: Array<'a>, draw: &mut SampleRng) -> Result<Array<'a>> {
        let size = image_size(&array, "a flip")?;
        if !draw.chance(self.p) {
            return Ok(array);
        }
        Window { from: size, to: size, top: 0, left: 0, mirrored: true }.of(&array)
    }
}

/// Cuts a window out of an image at a random place.
#[derive(Clone, Copy, Debug)]
pub struct RandomCrop {
    size: [usize; 2],
    padding: usize,
}

impl RandomCrop {
    /// A window of this size.
    pub fn new(height: usize, width: usize) -> RandomCrop {
        RandomCrop { size: [height, width], padding: 0 }
    }

    /// It may reach this far beyond every edge, where zeros are.
    #[must_use]
    pub fn with_padding(mut self, padding: usize) -> RandomCrop {
        self.padding = padding;
        self
    }
}

impl Transform for RandomCrop {
    fn apply<'a>(&self, array: Array<'a>, draw: &mut SampleRng) -> Result<Array<'a>> {
        let (from, to) = (image_size(&array, "a crop")?, self.size);
        let room = [0, 1].map(|k| (from[k] + 2 * self.padding).checked_sub(to[k]));
        let [Some(down), Some(right)] = room else {
            bail!(Data, "an image of {from:?} padded by {} has no crop of {to:?}", self.padding);
        };
        let top = draw.below(down + 1) as isize - self.padding as isize;
        let left = draw.below(right + 1) as isize - self.padding as isize;
        Window { from, to, top, left, mirrored: false }.of(&array)
    }
}

/// Cuts the middle out of an image.
#[derive(Clone, Copy, Debug)]
pub struct CenterCrop {
    size: [usize; 2],
}

impl CenterCrop {
    /// A window of this size.
    pub fn new(height: usize, width: usize) -> CenterCrop {
        CenterCrop { size: [height, width] }
    }
}

impl Transform for CenterCrop {
    fn apply<'a>(&self, array: Array<'a>, _: &mut SampleRng) -> Result<Array<'a>> {
        let (from, to) = (image_size(&array, "a crop")?, self.size);
        let [Some(down), Some(right)] = [0, 1].map(|k| from[k].checked_sub(to[k])) else {
            bail!(Data, "an image of {from:?} has no crop of {to:?}: pad or resize it first");
        };
        // An odd margin is cut as torchvision cuts it: halves go to the even side.
        let half = |margin: usize| (margin / 2 + usize::from(margin % 4 == 3)) as isize;
        let (top, left) = (half(down), half(right));
        Window { from, to, top, left, mirrored: false }.of(&array)
    }
}

/// Puts zeros around an image.
#[derive(Clone, Copy, Debug)]
pub struct Pad {
    /// Above, below, left and right.
    edges: [usize; 4],
}

impl Pad {
    /// As many on every side.
    pub fn new(padding: usize) -> Pad {
        Pad { edges: [padding; 4] }
    }

    /// As many as said above, below, left and right.
    pub fn sides(above: usize, below: usize, left: usize, right: usize) -> Pad {
        Pad { edges: [above, below, left, right] }
    }
}

impl Transform for Pad {
    fn apply<'a>(&self, array: Array<'a>, _: &mut SampleRng) -> Result<Array<'a>> {
        let from = image_size(&array, "padding")?;
        let [above, below, left, right] = self.edges;
        let to = [from[0] + above + below, from[1] + left + right];
        Window { from, to, top: -(above as isize), left: -(left as isize), mirrored: false }.of(&array)
    }
}
