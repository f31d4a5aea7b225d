//! Pooling over any number of axes.

use super::Rows;
use super::conv::Window;
use super::pad::padded;
use crate::call::{Call, Outputs, one};
use crate::value::Value;
use volta::{DType, PoolOptions, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("MaxPool", max_pool),
    ("AveragePool", average_pool),
    ("LpPool", |c| {
        let p = c.int("p", 2)? as f64;
        let x = c.x(0)?;
        let (windows, axes) = windows(&x.try_abs()?.try_pow(p)?, &layout(c, &x)?, 0.0)?;
        one(windows.try_sum_dim(&axes, false)?.try_pow(1.0 / p)?)
    }),
    ("GlobalAveragePool", |c| {
        let x = c.x(0)?;
        one(x.try_mean_dim(&space(&x), true)?)
    }),
    ("GlobalMaxPool", |c| {
        let x = c.x(0)?;
        one(x.try_max_dim(&space(&x), true)?)
    }),
    ("GlobalLpPool", |c| {
        let (x, p) = (c.x(0)?, c.int("p", 2)? as f64);
        one(x.try_abs()?.try_pow(p)?.try_sum_dim(&space(&x), true)?.try_pow(1.0 / p)?)
    }),
    ("MaxUnpool", max_unpool),
];

/// The largest elements, back where they stood: positions count in the image that the window's sizes make.
fn max_unpool(c: &Call) -> Result<Outputs> {
    let (x, index) = (c.x(0)?, c.x(1)?);
    let w = Window::new(c, c.sizes("kernel_shape")?.unwrap_or_default())?;
    if x.rank() != w.kernel.len() + 2 {
        bail!(Shape, "a window of {:?} does not fit into shape {}", w.kernel, x.shape());
    }
    let pads = w.pads(&x.shape()[2..]);
    let grown = |k: usize| {
        let reach = (x.shape()[2 + k] as i64 - 1) * w.stride[k] as i64 + w.kernel[k] as i64;
        (reach - pads[k].0 - pads[k].1).max(0) as usize
    };
    let own: Vec<usize> = x.shape()[..2].iter().copied().chain((0..w.kernel.len()).map(grown)).collect();
    let zeros = c.make(|| Tensor::try_zeros([own.iter().product::<usize>()]))?.try_to_dtype(x.dtype())?;
    let flat = zeros.try_index_add(0, &index.try_reshape([index.numel()])?, &x.try_reshape([x.numel()])?)?;
    let wanted = match c.maybe_ints(2)? {
        Some(wanted) => wanted,
        None => own.iter().map(|&extent| extent as i64).collect(),
    };
    let more: Vec<(i64, i64)> = wanted.iter().zip(&own).map(|(a, &b)| (0, a - b as i64)).collect();
    one(padded(&flat.try_reshape(&own)?, &more, 0.0)?)
}

/// The axes behind batch and channels.
fn space(x: &Tensor) -> Vec<isize> {
    (2..x.rank() as isize).collect()
}

/// A window, and the places at both ends with those of `ceil_mode`.
struct Layout {
    window: Window,
    pads: Vec<(i64, i64)>,
    /// Of these, the places that only the last window needs.
    short: Vec<i64>,
    out: Vec<usize>,
}

fn layout(c: &Call, x: &Tensor) -> Result<Layout> {
    let Some(kernel) = c.sizes("kernel_shape")? else { bail!(Data, "the size of the window is missing") };
    let window = Window::new(c, kernel)?;
    let space = window.kernel.len();
    if x.rank() != space + 2 {
        bail!(Shape, "a window of {:?} does not fit into shape {}", window.kernel, x.shape());
    }
    let mut pads = window.pads(&x.shape()[2..]);
    let ceil = c.flag("ceil_mode", false)?;
    let (mut short, mut out) = (Vec::new(), Vec::new());
    for (k, ends) in pads.iter_mut().enumerate() {
        let (extent, stride) = (x.shape()[2 + k] as i64, window.stride[k] as i64);
        let free = extent + ends.0 + ends.1 - window.reach(k);
        if free < 0 {
            bail!(Shape, "a window of {:?} does not fit into shape {}", window.kernel, x.shape());
        }
        let mut windows = free / stride + 1;
        // A last window that begins in the image, or before it.
        if ceil && free % stride != 0 && windows * stride < extent + ends.0 {
            windows += 1;
        }
        let missing = ((windows - 1) * stride + window.reach(k) - extent - ends.0 - ends.1).max(0);
        ends.1 += missing;
        short.push(missing);
        out.push(windows as usize);
    }
    Ok(Layout { window, pads, short, out })
}

/// Windows as axes at the end, and what these axes are.
fn windows(x: &Tensor, l: &Layout, fill: f64) -> Result<(Tensor, Vec<isize>)> {
    let mut y = padded(x, &[&[(0, 0), (0, 0)], &l.pads[..]].concat(), fill)?;
    for k in 0..l.window.kernel.len() {
        y = y.try_windows(2 + k as isize, l.window.kernel[k], l.window.stride[k], l.window.dilation[k])?;
        y = y.try_narrow(2 + k as isize, 0, l.out[k])?;
    }
    let axes = (2 + l.window.kernel.len() as isize..y.rank() as isize).collect();
    Ok((y, axes))
}

fn max_pool(c: &Call) -> Result<Outputs> {
    let x = c.x(0)?;
    let l = layout(c, &x)?;
    let w = &l.window;
    let wants_places = c.node.outputs.len() > 1;
    let even = l.pads.iter().zip(&w.kernel).all(|(p, &k)| p.0 == p.1 && p.0 >= 0 && p.0 as usize <= k / 2);
    if w.kernel.len() == 2 && even && !wants_places && x.dtype().is_float() {
        let options = PoolOptions {
            stride: Some([w.stride[0], w.stride[1]]),
            padding: [l.pads[0].0 as usize, l.pads[1].0 as usize],
            dilation: [w.dilation[0], w.dilation[1]],
            ..PoolOptions::default()
        };
        return one(x.try_max_pool2d([w.kernel[0], w.kernel[1]], options)?);
    }
    let dtype = x.dtype();
    let numbers = if dtype.is_float() { x.clone() } else { x.try_to_dtype(DType::F32)? };
    let (seen, axes) = windows(&numbers, &l, f64::NEG_INFINITY)?;
    let y = seen.try_max_dim(&axes[..], false)?.try_to_dtype(dtype)?;
    if !wants_places {
        return Ok(vec![Value::from(y).of_kind_if_held(c.kind(0))]);
    }
    // The flat place of every element, in the same windows; the first largest one counts.
    let s = x.shape();
    let rank = s.rank();
    let by_column = c.int("storage_order", 0)? == 1;
    let index = c.make(|| Tensor::try_arange(0, x.numel() as i64))?.try_reshape(s)?;
    let flat: Vec<isize> = if by_column {
        [0, 1].into_iter().chain((2..rank as isize).rev()).collect()
    } else {
        (0..rank as isize).collect()
    };
    let turned: Vec<usize> = flat.iter().map(|&k| s[k as usize]).collect();
    let index = index.try_reshape(&turned)?.try_permute(&flat)?;
    let (places, _) = windows(&index, &l, -1.0)?;
    let count: usize = w.kernel.iter().product();
    let lead = [&s[..2], &l.out[..]].concat();
    let rows: Vec<usize> = [&lead[..], &[count]].concat();
    let best = seen.try_reshape(&rows)?.try_argmax_dim(-1, true)?;
    let place = places.try_reshape(&rows)?.try_gather(-1, &best)?.try_squeeze(-1)?;
    Ok(vec![y.into(), c.positions(place).into()])
}

fn average_pool(c: &Call) -> Result<Outputs> {
    let x = c.x(0)?;
    let l = layout(c, &x)?;
    let w = &l.window;
    if w.kernel.len() == 2 && l.pads.iter().all(|&p| p == (0, 0)) && w.dilation == [1, 1] {
        let options = PoolOptions { stride: Some([w.stride[0], w.stride[1]]), ..PoolOptions::default() };
        return one(x.try_avg_pool2d([w.kernel[0], w.kernel[1]], options)?);
    }
    let (seen, axes) = windows(&x, &l, 0.0)?;
    let sums = seen.try_sum_dim(&axes[..], false)?;
    let include = c.flag("count_include_pad", false)?;
    // How many elements each window counts: a product over the axes.
    let mut counts: Option<Tensor> = None;
    for k in 0..w.kernel.len() {
        let extent = x.shape()[2 + k] as i64;
        let (first, end) = if include {
            (0, l.pads[k].0 + extent + l.pads[k].1 - l.short[k])
        } else {
            (l.pads[k].0, l.pads[k].0 + extent)
        };
        let number = |window: usize| {
            let places = (0..w.kernel[k]).map(|j| (window * w.stride[k] + j * w.dilation[k]) as i64);
            places.filter(|place| (first..end).contains(place)).count() as i64
        };
        let along = super::index::along(x.rank(), 2 + k, l.out[k]);
        let count =
            c.vector((0..l.out[k]).map(number).collect())?.try_to_dtype(x.dtype())?.try_reshape(along)?;
        counts = Some(match counts {
            Some(counts) => counts.try_mul(&count)?,
            None => count,
        });
    }
    one(match counts {
        Some(counts) => sums.try_div(&counts)?,
        None => sums,
    })
}
