//! The same numbers under other shapes and in other places.

use super::Rows;
use crate::call::{Call, Outputs, one, size};
use volta::{Range, Result, Shape, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("Reshape", |c| {
        let (x, wanted) = (
            c.x(0)?,
            match c.ints_of("shape", 1)? {
                Some(wanted) => wanted,
                None => bail!(Data, "the shape is missing"),
            },
        );
        one(x.try_reshape(&reshaped(x.shape(), &wanted, c.flag("allowzero", false)?)?)?)
    }),
    ("Flatten", |c| {
        let (x, axis) = (c.x(0)?, c.int("axis", 1)?);
        let at = if axis < 0 { axis + x.rank() as i64 } else { axis };
        if !(0..=x.rank() as i64).contains(&at) {
            bail!(Shape, "shape {} has no axis {axis}", x.shape());
        }
        let shape = x.shape();
        let (rows, columns) = shape.split_at(at as usize);
        one(x.try_reshape([rows.iter().product::<usize>(), columns.iter().product()])?)
    }),
    ("Squeeze", |c| {
        let x = c.x(0)?;
        let mask = match c.ints_of("axes", 1)? {
            Some(axes) => {
                let axes: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
                x.shape().axes(&axes)?
            }
            None => {
                x.shape().iter().enumerate().filter(|(_, e)| **e == 1).fold(0, |mask, (k, _)| mask | 1 << k)
            }
        };
        let shape = x.shape();
        if let Some(k) = (0..x.rank()).find(|&k| mask >> k & 1 == 1 && shape[k] != 1) {
            bail!(Shape, "axis {k} of shape {shape} is not 1");
        }
        one(x.try_reshape(shape.without(mask))?)
    }),
    ("Unsqueeze", |c| {
        let (x, axes) = (c.x(0)?, c.ints_of("axes", 1)?.unwrap_or_default());
        let rank = (x.rank() + axes.len()) as i64;
        let places: Vec<i64> = axes.iter().map(|&axis| if axis < 0 { axis + rank } else { axis }).collect();
        let mut rest = x.shape().to_vec().into_iter();
        let extents: Vec<usize> =
            (0..rank).map(|k| if places.contains(&k) { 1 } else { rest.next().unwrap_or(1) }).collect();
        one(x.try_reshape(&extents)?)
    }),
    ("Transpose", |c| {
        let x = c.x(0)?;
        let usual = || (0..x.rank() as i64).rev().collect();
        let order: Vec<isize> =
            c.int_list("perm")?.unwrap_or_else(usual).iter().map(|&k| k as isize).collect();
        one(x.try_permute(&order)?)
    }),
    ("Slice", slice),
    ("DepthToSpace", |c| {
        let (x, b) = (c.x(0)?, size(c.int("blocksize", 1)?)?);
        let [n, depth, h, w] = four(&x)?;
        let deep = depth / (b * b).max(1);
        if c.text("mode", "DCR")? == "CRD" {
            return one(x.try_pixel_shuffle(b)?);
        }
        let y = x.try_reshape([n, b, b, deep, h, w])?.try_permute([0, 3, 4, 1, 5, 2])?;
        one(y.try_reshape([n, deep, h * b, w * b])?)
    }),
    ("SpaceToDepth", |c| {
        let (x, b) = (c.x(0)?, size(c.int("blocksize", 1)?)?.max(1));
        let [n, depth, h, w] = four(&x)?;
        let parts = x.try_reshape([n, depth, h / b, b, w / b, b])?;
        let order = if c.text("mode", "DCR")? == "CRD" { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
        one(parts.try_permute(order)?.try_reshape([n, depth * b * b, h / b, w / b])?)
    }),
    ("ReverseSequence", |c| {
        let (x, lengths) = (c.x(0)?, c.ints(1)?);
        let (batch, time) = (c.int("batch_axis", 1)? as isize, c.int("time_axis", 0)? as isize);
        let steps = x.shape().try_size(time)? as i64;
        let mut numbers = Vec::new();
        for &length in &lengths {
            numbers.extend((0..steps).map(|t| if t < length { length - 1 - t } else { t }));
        }
        let index = c.vector(numbers)?.try_reshape([lengths.len(), x.size(time)])?;
        let (first, second) = (x.shape().axis(batch)?, x.shape().axis(time)?);
        let index = if first < second { index } else { index.try_t()? };
        let mut extents = vec![1; x.rank()];
        extents[first] = lengths.len();
        extents[second] = x.size(time);
        one(x.try_gather(time, &index.try_reshape(&extents)?.try_expand(x.shape())?)?)
    }),
];

pub(super) fn four(x: &Tensor) -> Result<[usize; 4]> {
    match x.shape()[..] {
        [a, b, c, d] => Ok([a, b, c, d]),
        _ => bail!(Shape, "the input has shape {}: (batch, channels, height, width) is needed", x.shape()),
    }
}

/// The extents that ONNX's list means: 0 is the old one, -1 follows from the others.
fn reshaped(from: Shape, wanted: &[i64], zero_is_zero: bool) -> Result<Vec<usize>> {
    let mut extents = Vec::with_capacity(wanted.len());
    let mut open = None;
    for (k, &extent) in wanted.iter().enumerate() {
        extents.push(match extent {
            0 if !zero_is_zero => match from.get(k) {
                Some(&old) => old,
                None => bail!(Shape, "shape {from} has no axis {k} to keep"),
            },
            -1 => {
                open = Some(k);
                1
            }
            other => size(other)?,
        });
    }
    if let Some(k) = open {
        let rest: usize = extents.iter().product();
        extents[k] = from.numel().checked_div(rest).unwrap_or(0);
    }
    Ok(extents)
}

fn slice(c: &Call) -> Result<Outputs> {
    let x = c.x(0)?;
    let (starts, ends, axes, steps) = if c.opset < 10 {
        (c.int_list("starts")?, c.int_list("ends")?, c.int_list("axes")?, None)
    } else {
        (c.maybe_ints(1)?, c.maybe_ints(2)?, c.maybe_ints(3)?, c.maybe_ints(4)?)
    };
    let (starts, ends) = (starts.unwrap_or_default(), ends.unwrap_or_default());
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() {
        bail!(Data, "starts, ends, axes and steps are not as many");
    }
    let mut y = x.clone();
    for (k, &axis) in axes.iter().enumerate() {
        y = sliced(&y, axis as isize, starts[k], ends[k], steps[k])?;
    }
    one(y)
}

/// A part of an axis, with NumPy's meaning of all numbers.
fn sliced(x: &Tensor, axis: isize, start: i64, end: i64, step: i64) -> Result<Tensor> {
    let k = x.shape().axis(axis)?;
    let extent = x.shape()[k] as i64;
    if step == 0 {
        bail!(Data, "a step is 0");
    }
    let from_end = |at: i64| if at < 0 { at.saturating_add(extent) } else { at };
    let (x, start, end, step) = if step > 0 {
        (x.clone(), from_end(start).clamp(0, extent), from_end(end).clamp(0, extent), step)
    } else {
        // Backwards is forwards in what is reversed.
        let (start, end) = (from_end(start).clamp(-1, extent - 1), from_end(end).clamp(-1, extent - 1));
        (x.try_flip([k as isize])?, extent - 1 - start, extent - 1 - end, step.saturating_neg())
    };
    let mut ranges = vec![Range::by(.., 1); x.rank()];
    ranges[k] =
        Range::by(start as isize..end.max(start) as isize, usize::try_from(step.min(1 << 40)).unwrap_or(1));
    x.try_slice(&ranges)
}
