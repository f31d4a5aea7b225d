//! Places added at the ends of axes, and taken away.

use super::Rows;
use crate::call::{Call, Outputs, one, size};
use volta::{Range, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[("Pad", pad), ("CenterCropPad", center_crop_pad)];

/// Places before and after every axis; a negative number takes some away.
pub(super) fn padded(x: &Tensor, pads: &[(i64, i64)], value: f64) -> Result<Tensor> {
    let mut ranges = Vec::new();
    for (&(before, after), &extent) in pads.iter().zip(x.shape().iter()) {
        let (first, end) = ((-before).max(0), extent as i64 - (-after).max(0));
        ranges.push(Range::by(first as isize..end.max(first) as isize, 1));
    }
    let rest = if pads.iter().any(|&(a, b)| a < 0 || b < 0) { x.try_slice(&ranges)? } else { x.clone() };
    let mut sizes = Vec::new();
    for &(before, after) in pads {
        sizes.push((size(before.max(0))?, size(after.max(0))?));
    }
    if sizes.iter().all(|&pads| pads == (0, 0)) { Ok(rest) } else { rest.try_pad(&sizes, value) }
}

fn pad(c: &Call) -> Result<Outputs> {
    let x = c.x(0)?;
    let list = match c.opset {
        ..2 => c.int_list("paddings")?,
        2..11 => c.int_list("pads")?,
        _ => c.maybe_ints(1)?,
    };
    let (Some(list), mode) = (list, c.text("mode", "constant")?) else { bail!(Data, "the pads are missing") };
    let axes = c.maybe_ints(3)?.unwrap_or_else(|| (0..x.rank() as i64).collect());
    if list.len() != 2 * axes.len() {
        bail!(Data, "{} pads are given for {} axes", list.len(), axes.len());
    }
    let mut pads = vec![(0, 0); x.rank()];
    for (k, &axis) in axes.iter().enumerate() {
        pads[x.shape().axis(axis as isize)?] = (list[k], list[k + axes.len()]);
    }
    if mode == "constant" {
        let value = if c.opset < 11 {
            c.float("value", 0.0)?
        } else if c.has(2) {
            c.floats(2)?.first().copied().unwrap_or(0.0)
        } else {
            0.0
        };
        return one(padded(&x, &pads, value)?);
    }
    let mut y = x;
    for (k, &(before, after)) in pads.iter().enumerate() {
        if (before, after) != (0, 0) {
            let places = mirrored(y.shape()[k] as i64, before, after, &mode)?;
            y = y.try_index_select(k as isize, &c.vector(places)?)?;
        }
    }
    one(y)
}

/// Which element stands in every place of an axis that is continued.
fn mirrored(extent: i64, before: i64, after: i64, mode: &str) -> Result<Vec<i64>> {
    if extent == 0 {
        bail!(Shape, "an empty axis cannot be continued");
    }
    let place = |k: i64| match mode {
        "edge" => Ok(k.clamp(0, extent - 1)),
        "wrap" => Ok(k.rem_euclid(extent)),
        "reflect" => {
            let period = (2 * (extent - 1)).max(1);
            let k = k.rem_euclid(period);
            Ok(if k < extent { k } else { period - k })
        }
        other => bail!(Data, "the mode {other:?} is not known"),
    };
    crate::call::list_length(before.saturating_add(after).saturating_add(extent).max(0))?;
    (-before..extent + after).map(place).collect()
}

fn center_crop_pad(c: &Call) -> Result<Outputs> {
    let (x, wanted) = (c.x(0)?, c.ints(1)?);
    let axes = c.int_list("axes")?.unwrap_or_else(|| (0..x.rank() as i64).collect());
    let mut pads = vec![(0, 0); x.rank()];
    for (&axis, &extent) in axes.iter().zip(&wanted) {
        let k = x.shape().axis(axis as isize)?;
        let more = extent - x.shape()[k] as i64;
        // An odd one is at the end, of what is added and of what goes.
        let before = if more >= 0 { more / 2 } else { -(-more / 2) };
        pads[k] = (before, more - before);
    }
    one(padded(&x, &pads, 0.0)?)
}
