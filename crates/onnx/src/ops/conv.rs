//! Convolutions over any number of axes; those over two are Volta's own, others are sums of them.

use super::Rows;
use super::pad::padded;
use crate::call::{Call, Outputs, one, size};
use volta::{ConvOptions, Range, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("Conv", |c| {
        let window = Window::of(c, &c.x(1)?)?;
        one(conv(&c.x(0)?, &c.x(1)?, c.maybe(2)?.as_ref(), &window)?)
    }),
    ("ConvTranspose", conv_transpose),
    ("CausalConvWithState", causal_conv),
    ("Col2Im", col2im),
];

/// How a window moves over the axes behind batch and channels.
pub(super) struct Window {
    pub kernel: Vec<usize>,
    pub stride: Vec<usize>,
    pub dilation: Vec<usize>,
    pub groups: usize,
    /// The places at both ends, where the node says them.
    pads: Option<Vec<i64>>,
    auto: String,
}

impl Window {
    /// Of a convolution with such weights.
    pub fn of(c: &Call, weight: &Tensor) -> Result<Window> {
        if weight.rank() < 3 {
            bail!(Shape, "the weights have shape {}: at least three axes are needed", weight.shape());
        }
        Window::new(c, weight.shape()[2..].to_vec())
    }

    pub fn new(c: &Call, kernel: Vec<usize>) -> Result<Window> {
        let space = kernel.len();
        let list = |name: &str| Ok(c.sizes(name)?.unwrap_or_else(|| vec![1; space]));
        let (stride, dilation) = (list("strides")?, list("dilations")?);
        let pads = c.int_list("pads")?;
        let fits = stride.len() == space
            && dilation.len() == space
            && pads.as_ref().is_none_or(|p| p.len() == 2 * space);
        if !fits || stride.contains(&0) || dilation.contains(&0) {
            bail!(
                Data,
                "strides {stride:?}, dilations {dilation:?} or pads {pads:?} do not fit a window of {kernel:?}"
            );
        }
        let groups = size(c.int("group", 1)?)?;
        Ok(Window { kernel, stride, dilation, groups, pads, auto: c.text("auto_pad", "NOTSET")? })
    }

    pub fn reach(&self, k: usize) -> i64 {
        (self.kernel[k].saturating_sub(1) * self.dilation[k] + 1) as i64
    }

    /// Places before and after every axis of an image.
    pub fn pads(&self, extents: &[usize]) -> Vec<(i64, i64)> {
        let space = self.kernel.len();
        (0..space)
            .map(|k| match (self.auto.as_str(), &self.pads) {
                ("SAME_UPPER" | "SAME_LOWER", _) => {
                    let (extent, stride) = (extents[k] as i64, self.stride[k] as i64);
                    let out = (extent + stride - 1) / stride;
                    self.halves(((out - 1) * stride + self.reach(k) - extent).max(0))
                }
                ("NOTSET", Some(pads)) => (pads[k], pads[k + space]),
                _ => (0, 0),
            })
            .collect()
    }

    /// The two parts of an even padding.
    fn halves(&self, all: i64) -> (i64, i64) {
        let less = all / 2;
        if self.auto == "SAME_LOWER" { (all - less, less) } else { (less, all - less) }
    }
}

fn two(list: &[usize]) -> [usize; 2] {
    match *list {
        [a, b] => [a, b],
        _ => [1, list[0]],
    }
}

/// With `pads` in the tensor where the two ends differ.
fn conv(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, w: &Window) -> Result<Tensor> {
    let space = w.kernel.len();
    if x.rank() != space + 2 {
        bail!(Shape, "an input of shape {} and weights of shape {} do not fit", x.shape(), weight.shape());
    }
    let pads = w.pads(&x.shape()[2..]);
    let even = space <= 2 && pads.iter().all(|p| p.0 == p.1 && p.0 >= 0);
    let x = if even { x.clone() } else { padded(x, &[&[(0, 0), (0, 0)], &pads[..]].concat(), 0.0)? };
    let padding: Vec<usize> = if even { pads.iter().map(|p| p.0 as usize).collect() } else { vec![0; space] };
    match space {
        1 | 2 => {
            let mut padding = two(&padding);
            if space == 1 {
                padding[0] = 0;
            }
            let options = ConvOptions {
                stride: two(&w.stride),
                padding,
                dilation: two(&w.dilation),
                groups: w.groups,
                ..ConvOptions::default()
            };
            if space == 2 {
                return x.try_conv2d(weight, bias, options);
            }
            x.try_unsqueeze(2)?.try_conv2d(&weight.try_unsqueeze(2)?, bias, options)?.try_squeeze(2)
        }
        3 => conv3d(&x, weight, bias, w),
        _ => bail!(Shape, "a convolution over {space} axes: Volta has one to three"),
    }
}

/// A sum of convolutions of planes, one for each plane of the kernel.
fn conv3d(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, w: &Window) -> Result<Tensor> {
    let s = x.shape();
    let depth = s[2] as i64 - w.reach(0);
    if depth < 0 {
        bail!(Shape, "a window of {:?} does not fit into shape {s}", w.kernel);
    }
    let out = depth as usize / w.stride[0] + 1;
    let options = ConvOptions {
        stride: two(&w.stride[1..]),
        dilation: two(&w.dilation[1..]),
        groups: w.groups,
        ..ConvOptions::default()
    };
    let mut sum: Option<Tensor> = None;
    for plane in 0..w.kernel[0] {
        let first = (plane * w.dilation[0]) as isize;
        let end = first + ((out - 1) * w.stride[0]) as isize + 1;
        let all = Range::by(.., 1);
        let planes = x.try_slice([all, all, Range::by(first..end, w.stride[0])])?;
        let images = planes.try_transpose(1, 2)?.try_reshape([s[0] * out, s[1], s[3], s[4]])?;
        let y = images.try_conv2d(&weight.try_select(2, plane as isize)?, None, options)?;
        sum = Some(match sum {
            Some(sum) => sum.try_add(&y)?,
            None => y,
        });
    }
    let Some(y) = sum else { bail!(Shape, "the kernel is empty") };
    let t = y.shape();
    let y = y.try_reshape([s[0], out, t[1], t[2], t[3]])?.try_transpose(1, 2)?;
    match bias {
        Some(bias) => y.try_add(&bias.try_reshape([1, t[1], 1, 1, 1])?),
        None => Ok(y),
    }
}

/// Zeros between the elements of an axis.
fn spread(x: &Tensor, axis: usize, step: usize) -> Result<Tensor> {
    if step == 1 {
        return Ok(x.clone());
    }
    let extent = x.shape()[axis];
    let apart = x.try_unsqueeze(axis as isize + 1)?;
    let mut pads = vec![(0, 0); apart.rank()];
    pads[axis + 1].1 = step - 1;
    let mut extents = x.shape().to_vec();
    extents[axis] = extent * step;
    apart.try_pad(&pads, 0.0)?.try_reshape(&extents)?.try_narrow(
        axis as isize,
        0,
        (extent * step).saturating_sub(step - 1),
    )
}

fn conv_transpose(c: &Call) -> Result<Outputs> {
    let (x, weight, bias) = (c.x(0)?, c.x(1)?, c.maybe(2)?);
    let w = Window::of(c, &weight)?;
    let space = w.kernel.len();
    if x.rank() != space + 2 {
        bail!(Shape, "an input of shape {} and weights of shape {} do not fit", x.shape(), weight.shape());
    }
    let extra = c.int_list("output_padding")?.unwrap_or_else(|| vec![0; space]);
    if extra.len() != space {
        bail!(Data, "the output's padding {extra:?} does not fit a window of {:?}", w.kernel);
    }
    let wanted = c.int_list("output_shape")?;
    let full = |k: usize| {
        (x.shape()[2 + k] as i64 - 1) * w.stride[k] as i64 + w.reach(k) + extra.get(k).copied().unwrap_or(0)
    };
    let mut pads = Vec::new();
    for k in 0..space {
        let goal = match &wanted {
            Some(list) => list.get(list.len() - space + k).copied(),
            None if w.auto.starts_with("SAME") => Some((x.shape()[2 + k] * w.stride[k]) as i64),
            None => None,
        };
        pads.push(match (goal, &w.pads) {
            (Some(goal), _) => {
                let all = full(k) - goal;
                // The standard divides the other way round here; what is missing comes at the end.
                if all < 0 {
                    (0, all)
                } else if w.auto == "SAME_UPPER" {
                    (all / 2, all - all / 2)
                } else {
                    (all - all / 2, all / 2)
                }
            }
            (None, Some(pads)) => (pads[k], pads[k + space]),
            (None, None) => (0, 0),
        });
    }
    let even = pads.iter().zip(&extra).all(|(p, extra)| p.0 == p.1 && p.0 >= 0 && *extra >= 0);
    if space == 2 && even && extra.iter().zip(&w.stride).all(|(e, s)| *e < *s as i64) {
        let options = ConvOptions {
            stride: two(&w.stride),
            padding: [pads[0].0 as usize, pads[1].0 as usize],
            dilation: two(&w.dilation),
            groups: w.groups,
            output_padding: [extra[0] as usize, extra[1] as usize],
        };
        return one(x.try_conv_transpose2d(&weight, bias.as_ref(), options)?);
    }
    // A convolution of what is spread, with the weights turned around.
    let mut spaced = x.clone();
    for k in 0..space {
        spaced = spread(&spaced, 2 + k, w.stride[k])?;
    }
    let ws = weight.shape();
    let (inputs, outputs) = (ws[0] / w.groups.max(1), ws[1]);
    let apart =
        weight.try_reshape(&[&[w.groups, inputs, outputs], &ws[2..]].concat())?.try_transpose(1, 2)?;
    let turned = apart.try_reshape(&[&[w.groups * outputs, inputs], &ws[2..]].concat())?;
    let turned = turned.try_flip(&(2..space as isize + 2).collect::<Vec<_>>())?;
    let around: Vec<i64> = (0..space).map(|k| w.reach(k) - 1 - pads[k].0).collect();
    let behind: Vec<i64> = (0..space).map(|k| w.reach(k) - 1 - pads[k].1 + extra[k]).collect();
    let inner =
        Window { stride: vec![1; space], pads: Some([around, behind].concat()), auto: "NOTSET".into(), ..w };
    one(conv(&spaced, &turned, bias.as_ref(), &inner)?)
}

/// A convolution that looks back only, with what stood before.
fn causal_conv(c: &Call) -> Result<Outputs> {
    let (x, weight, bias) = (c.x(0)?, c.x(1)?, c.maybe(2)?);
    let keep = weight.size(-1).saturating_sub(1);
    let past = match c.maybe(3)? {
        Some(past) => past,
        None => c.make(|| Tensor::try_zeros([x.size(0), x.size(1), keep]))?.try_to_dtype(x.dtype())?,
    };
    let all = Tensor::try_cat(&[past, x.clone()], 2)?;
    let options = ConvOptions { groups: x.size(1) / weight.size(1).max(1), ..ConvOptions::default() };
    let y = all.try_conv1d(&weight, bias.as_ref(), options)?;
    let y = match c.text("activation", "none")?.as_str() {
        "silu" | "swish" => y.try_silu()?,
        "none" | "" => y,
        other => bail!(Data, "the activation {other:?} is not known"),
    };
    let length = all.size(2);
    Ok(vec![y.into(), all.try_narrow(2, length - keep, keep)?.into()])
}

/// Windows, added to an image where they were taken from.
fn col2im(c: &Call) -> Result<Outputs> {
    let x = c.x(0)?;
    let image: Vec<usize> = c.ints(1)?.into_iter().map(size).collect::<Result<_>>()?;
    let block: Vec<usize> = c.ints(2)?.into_iter().map(size).collect::<Result<_>>()?;
    let w = Window::new(c, block)?;
    let space = image.len();
    let pads = if space == w.kernel.len() { w.pads(&image) } else { vec![(0, 0); space] };
    let count = w.kernel.iter().fold(1usize, |all, &n| all.saturating_mul(n));
    let channels = x.size(1) / count.max(1);
    let wide = |k: usize| image[k] as i64 + pads[k].0 + pads[k].1 - w.reach(k);
    if image.len() != w.kernel.len()
        || x.rank() != 3
        || (0..space).any(|k| wide(k) < 0 || pads[k].0 < 0 || pads[k].1 < 0)
    {
        bail!(Shape, "windows of {:?} in shape {} do not fit an image of {image:?}", w.kernel, x.shape());
    }
    // The place of every element of every window in the padded image.
    let padded_image: Vec<usize> =
        (0..space).map(|k| image[k] + (pads[k].0 + pads[k].1).max(0) as usize).collect();
    let windows: Vec<usize> =
        (0..space).map(|k| (padded_image[k] - w.reach(k) as usize) / w.stride[k] + 1).collect();
    let product = |list: &[usize]| list.iter().fold(1usize, |all, &n| all.saturating_mul(n));
    if product(&windows) != x.size(2) || product(&w.kernel) > x.size(1) {
        bail!(Shape, "windows of {:?} in shape {} do not fit an image of {image:?}", w.kernel, x.shape());
    }
    let grid = |counts: &[usize], steps: &[usize]| {
        let mut all = vec![0i64];
        for ((&extent, &count), &step) in padded_image.iter().zip(counts).zip(steps) {
            let along = (0..count as i64).map(|j| j * step as i64).collect::<Vec<_>>();
            all =
                all.iter().flat_map(|&place| along.iter().map(move |j| place * extent as i64 + j)).collect();
        }
        all
    };
    let (places, starts) = (grid(&w.kernel, &w.dilation), grid(&windows, &w.stride));
    let all: Vec<i64> = places.iter().flat_map(|p| starts.iter().map(move |s| p + s)).collect();
    let (total, batch): (usize, usize) = (padded_image.iter().product(), x.size(0));
    let index = c.vector(all)?;
    let flat = x.try_reshape([batch * channels, index.numel()])?;
    let zeros = c.make(|| Tensor::try_zeros([batch * channels, total]))?.try_to_dtype(x.dtype())?;
    let y = zeros
        .try_index_add(1, &index, &flat)?
        .try_reshape(&[&[batch, channels], &padded_image[..]].concat())?;
    let back: Vec<(i64, i64)> =
        [(0, 0), (0, 0)].into_iter().chain(pads.iter().map(|p| (-p.0, -p.1))).collect();
    one(padded(&y, &back, 0.0)?)
}
