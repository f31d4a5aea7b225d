//! Pooling: the largest or the mean of every window of an image.

use super::Tensor;
use super::band::{Band, Weights};
use super::record::record;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::op::{NativeOp, Op, PoolAttrs};
use crate::shape::Shape;
use volta_derive::op;

/// How windows move over an image, for pooling; the kernel is given apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// How far the window moves; by its own size unless given.
    pub stride: Option<[usize; 2]>,
    /// Places added at both ends: zeros for a mean, −∞ for a maximum.
    pub padding: [usize; 2],
    /// How far a window's elements stand apart; a mean takes 1 only.
    pub dilation: [usize; 2],
    /// Keep a last window that begins inside and reaches beyond the end.
    pub ceil_mode: bool,
    /// Count the zeros of the padding in a mean.
    pub count_include_pad: bool,
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions {
            stride: None,
            padding: [0, 0],
            dilation: [1, 1],
            ceil_mode: false,
            count_include_pad: true,
        }
    }
}

/// Checked windows over one shape.
struct CheckedWindows {
    attrs: PoolAttrs,
    /// The extents of the result.
    out: [usize; 2],
    /// Places missing at the far end for the last window.
    short: [usize; 2],
}

impl CheckedWindows {
    fn of(x: Shape, kernel: [usize; 2], options: &PoolOptions) -> Result<CheckedWindows> {
        let (stride, padding, dilation) =
            (options.stride.unwrap_or(kernel), options.padding, options.dilation);
        if kernel.contains(&0) || stride.contains(&0) || dilation.contains(&0) {
            bail!(
                Argument,
                "kernel {kernel:?}, stride {stride:?} and dilation {dilation:?} must be at least 1"
            );
        }
        let (mut out, mut short) = ([0; 2], [0; 2]);
        for k in 0..2 {
            let extent = x[x.rank() - 2 + k];
            let reach = (kernel[k] - 1) * dilation[k] + 1;
            if padding[k] > reach / 2 {
                bail!(Argument, "padding {padding:?} must be at most half of kernel {kernel:?}");
            }
            let padded = extent + 2 * padding[k];
            // With `ceil_mode` the first window may reach beyond the image, as the last one does.
            let beyond = if options.ceil_mode { stride[k] - 1 } else { 0 };
            if extent == 0 || reach > padded + beyond {
                bail!(
                    Shape,
                    "a kernel of {kernel:?} does not fit into input {x} with padding {padding:?} and dilation {dilation:?}"
                );
            }
            let windows = (padded + stride[k] - reach) / stride[k];
            out[k] = windows;
            // The extra window must begin before the padding behind the image does.
            if options.ceil_mode
                && windows * stride[k] + reach != padded + stride[k]
                && windows * stride[k] < extent + padding[k]
            {
                out[k] += 1;
            }
            short[k] = ((out[k] - 1) * stride[k] + reach).saturating_sub(padded);
        }
        Ok(CheckedWindows { attrs: PoolAttrs { kernel, stride, padding, dilation }, out, short })
    }

    /// Whether some window has no place inside the image: between those of a dilated one there may be room for all of it.
    fn misses(&self, x: Shape) -> bool {
        let PoolAttrs { kernel, stride, padding, dilation } = &self.attrs;
        let misses = |k: usize| {
            let inside = padding[k]..padding[k] + x[x.rank() - 2 + k];
            let mut starts = (0..self.out[k]).map(|window| window * stride[k]);
            starts.any(|start| !(0..kernel[k]).any(|j| inside.contains(&(start + j * dilation[k]))))
        };
        (0..2).any(|k| dilation[k] > 1 && padding[k] > 0 && misses(k))
    }

    /// How many elements the windows along one axis (0 or 1) count: a vector along axis 2 or 3 of four.
    fn counts(&self, x: &Tensor, k: usize, include_pad: bool) -> Result<Tensor> {
        let (size, padding) = (self.attrs.kernel[k] as i64, self.attrs.padding[k] as i64);
        let extent = x.shape()[2 + k] as i64;
        let mut extents = [1; 4];
        extents[2 + k] = self.out[k];
        let index = x.index_rule(2 + k, Shape::of(&extents), DType::I32);
        let start = index.try_mul(self.attrs.stride[k])?.try_sub(padding)?;
        let (first, end) = if include_pad { (-padding, extent + padding) } else { (0, extent) };
        start.try_add(size)?.try_minimum(end)?.try_sub(&start.try_maximum(first)?)?.try_to_dtype(x.dtype())
    }
}

impl Tensor {
    /// `f` of a batch of images; a single (channels, height, width) becomes a batch of one.
    fn batched(&self, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        match self.rank() {
            4 => f(self),
            3 => {
                let y = f(&self.try_unsqueeze(0)?)?;
                y.reshape_to(Shape::of(&y.shape()[1..]))
            }
            _ => bail!(
                Shape,
                "the input has shape {}: (batch, channels, height, width), or the same without the batch, is needed",
                self.shape()
            ),
        }
    }

    /// `f` of an image of height 1.
    fn flat_image(&self, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        if self.rank() != 2 && self.rank() != 3 {
            bail!(
                Shape,
                "the input has shape {}: (batch, channels, length), or the same without the batch, is needed",
                self.shape()
            );
        }
        f(&self.try_unsqueeze(-2)?)?.try_squeeze(-2)
    }
}

impl PoolOptions {
    /// The first of each pair, for the second of two axes.
    fn flat(&self) -> PoolOptions {
        PoolOptions {
            stride: self.stride.map(|s| [1, s[0]]),
            padding: [0, self.padding[0]],
            dilation: [1, self.dilation[0]],
            ..*self
        }
    }
}

/// The flat position in its image of every window's first maximum, and the images they count in.
fn max_positions(x: &Tensor, kernel: [usize; 2], options: &PoolOptions) -> Result<(Tensor, Tensor)> {
    x.check_float()?;
    let mut layout = CheckedWindows::of(x.shape(), kernel, options)?;
    let s = x.shape();
    // A window that sees nothing but padding has its place there.
    let before = if layout.misses(s) { std::mem::take(&mut layout.attrs.padding) } else { [0; 2] };
    let [h, w] = [0, 1].map(|k| (before[k], before[k] + layout.short[k]));
    let x = x.pad_with(&[(0, 0), (0, 0), h, w], f64::NEG_INFINITY.into())?;
    let shape = Shape::of(&[s[0], s[1], layout.out[0], layout.out[1]]);
    let index = record(Op::Native(NativeOp::MaxPoolIndex(Box::new(layout.attrs))), &[&x], shape, DType::I32)?;
    Ok((index, x))
}

/// The means of windows that neither overlap nor need padding, without windows: their gradient is cheaper.
fn block_means(x: &Tensor, kernel: [usize; 2], out: [usize; 2]) -> Result<Tensor> {
    let s = x.shape();
    let parts = [(0, 1, s[0]), (0, 1, s[1]), (0, 1, out[0] * kernel[0]), (0, 1, out[1] * kernel[1])];
    let blocks = Shape::of(&[s[0], s[1], out[0], kernel[0], out[1], kernel[1]]);
    let means = x.slice_parts(&parts)?.reshape_to(blocks)?.mean_mask(0b101000)?;
    means.reshape_to(Shape::of(&[s[0], s[1], out[0], out[1]]))
}

impl Tensor {
    /// The largest element of every window of (batch, channels, height, width); NaN wins. The gradient goes to
    /// the first maximum of each window.
    #[op]
    pub fn try_max_pool2d(&self, kernel: [usize; 2], options: PoolOptions) -> Result<Tensor> {
        self.batched(|x| {
            let (index, x) = max_positions(x, kernel, &options)?;
            let (from, to) = (x.shape(), index.shape());
            let images = x.reshape_to(Shape::of(&[from[0], from[1], from[2] * from[3]]))?;
            let places = index.reshape_to(Shape::of(&[to[0], to[1], to[2] * to[3]]))?;
            images.gather_primitive(2, &places)?.reshape_to(to)
        })
    }

    /// [`max_pool2d`](Self::max_pool2d) of (batch, channels, length); the first of each pair of options counts.
    #[op]
    pub fn try_max_pool1d(&self, kernel: usize, options: PoolOptions) -> Result<Tensor> {
        self.flat_image(|x| x.try_max_pool2d([1, kernel], options.flat()))
    }

    /// The mean of every window of (batch, channels, height, width).
    #[op]
    pub fn try_avg_pool2d(&self, kernel: [usize; 2], options: PoolOptions) -> Result<Tensor> {
        if options.dilation != [1, 1] {
            bail!(Argument, "a mean takes no dilation, and {:?} is given", options.dilation);
        }
        self.batched(|x| {
            x.in_wide(|x| {
                let layout = CheckedWindows::of(x.shape(), kernel, &options)?;
                let PoolAttrs { stride, padding, .. } = layout.attrs;
                let plain = padding == [0, 0] && layout.short == [0, 0];
                if plain && stride == kernel {
                    return block_means(x, kernel, layout.out);
                }
                let [h, w] = [0, 1].map(|k| (padding[k], padding[k] + layout.short[k]));
                let padded = x.pad_with(&[(0, 0), (0, 0), h, w], 0.0.into())?;
                let windows = padded
                    .try_windows(2, kernel[0], stride[0], 1)?
                    .try_windows(3, kernel[1], stride[1], 1)?;
                let sums = windows.try_sum_dim([-2, -1], false)?;
                // What lies beyond the padding counts never, the padding itself by choice.
                if plain || (options.count_include_pad && layout.short == [0, 0]) {
                    return sums.try_div((kernel[0] * kernel[1]) as f64);
                }
                let include = options.count_include_pad;
                sums.try_div(&layout.counts(x, 0, include)?.try_mul(&layout.counts(x, 1, include)?)?)
            })
        })
    }

    /// [`avg_pool2d`](Self::avg_pool2d) of (batch, channels, length); the first of each pair of options counts.
    #[op]
    pub fn try_avg_pool1d(&self, kernel: usize, options: PoolOptions) -> Result<Tensor> {
        if options.dilation[0] != 1 {
            bail!(Argument, "a mean takes no dilation, and {} is given", options.dilation[0]);
        }
        self.flat_image(|x| x.try_avg_pool2d([1, kernel], options.flat()))
    }

    /// The means of (batch, channels, height, width) cut into `size` parts, which may differ by one element
    /// and then overlap.
    #[op]
    pub fn try_adaptive_avg_pool2d(&self, size: [usize; 2]) -> Result<Tensor> {
        self.batched(|x| {
            x.in_wide(|x| {
                let s = x.shape();
                if s[2] == 0 || s[3] == 0 {
                    bail!(Shape, "the input {s} has no elements to average");
                }
                if size.contains(&0) {
                    return Ok(x.constant(0.0, Shape::of(&[s[0], s[1], size[0], size[1]]), x.dtype()));
                }
                if s[2] % size[0] == 0 && s[3] % size[1] == 0 {
                    return block_means(x, [s[2] / size[0], s[3] / size[1]], size);
                }
                let means =
                    |axis: usize| Band { axis, from: s[axis], to: size[axis - 2], weights: Weights::Mean };
                means(2).apply(&means(3).apply(x)?)
            })
        })
    }
}
