//! Images of other sizes: along each axis every new place is a weighted sum of a few old ones, which the host finds.

use super::Rows;
use crate::call::{Call, Outputs, one, size};
use volta::{Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[("Resize", resize), ("Upsample", upsample)];

/// How new places stand on old ones, and what they take.
struct Rule {
    coordinates: String,
    mode: String,
    nearest: String,
    cubic: f64,
    exclude_outside: bool,
    extrapolation: f64,
    antialias: bool,
}

/// The old places and weights of a new one; none if it lies outside and is filled.
type Taps = Option<Vec<(usize, f64)>>;

fn upsample(c: &Call) -> Result<Outputs> {
    let scales = match c.float_list("scales")? {
        Some(list) => list.into_iter().map(f64::from).collect(),
        None => c.floats(1)?,
    };
    let rule = Rule {
        coordinates: "asymmetric".into(),
        mode: c.text("mode", "nearest")?,
        nearest: "floor".into(),
        cubic: -0.75,
        exclude_outside: false,
        extrapolation: 0.0,
        antialias: false,
    };
    let mut x = c.x(0)?;
    if scales.len() != x.rank() {
        bail!(Data, "{} scales are given for shape {}", scales.len(), x.shape());
    }
    for (k, &scale) in scales.iter().enumerate() {
        let to = (x.shape()[k] as f64 * scale).floor() as usize;
        x = rule.apply(c, &x, k, to, scale, None)?;
    }
    one(x)
}

fn resize(c: &Call) -> Result<Outputs> {
    let rule = Rule {
        coordinates: c
            .text("coordinate_transformation_mode", if c.opset < 11 { "asymmetric" } else { "half_pixel" })?,
        mode: c.text("mode", "nearest")?,
        nearest: c.text("nearest_mode", if c.opset < 11 { "floor" } else { "round_prefer_floor" })?,
        cubic: c.float("cubic_coeff_a", -0.75)?,
        exclude_outside: c.flag("exclude_outside", false)?,
        extrapolation: c.float("extrapolation_value", 0.0)?,
        antialias: c.flag("antialias", false)?,
    };
    let mut x = c.x(0)?;
    let from = x.shape();
    let axes: Vec<usize> = match c.int_list("axes")? {
        Some(axes) => axes.iter().map(|&axis| from.axis(axis as isize)).collect::<Result<_>>()?,
        None => (0..from.rank()).collect(),
    };
    let (roi, scales, sizes) = if c.opset < 11 { (None, 1, 9) } else { (Some(1), 2, 3) };
    let list = |k: usize| if c.has(k) { c.floats(k) } else { Ok(Vec::new()) };
    let (mut scales, sizes) = (list(scales)?, list(sizes)?);
    let roi = match roi {
        Some(k) => list(k)?,
        None => Vec::new(),
    };
    let mut wanted = Vec::new();
    if sizes.is_empty() {
        wanted.extend(axes.iter().zip(&scales).map(|(&axis, scale)| (from[axis] as f64 * scale).floor()));
    } else {
        scales = axes.iter().zip(&sizes).map(|(&axis, size)| size / from[axis] as f64).collect();
        wanted = sizes;
        let policy = c.text("keep_aspect_ratio_policy", "stretch")?;
        if policy != "stretch" {
            let pick = if policy == "not_larger" { f64::min } else { f64::max };
            let scale = scales.iter().copied().reduce(pick).unwrap_or(1.0);
            scales = vec![scale; axes.len()];
            wanted = axes.iter().map(|&axis| (from[axis] as f64 * scale).round()).collect();
        }
    }
    if wanted.len() != axes.len() {
        bail!(Data, "{} sizes or scales are given for {} axes", wanted.len(), axes.len());
    }
    for (k, &axis) in axes.iter().enumerate() {
        let part = (roi.len() == 2 * axes.len()).then(|| (roi[k], roi[k + axes.len()]));
        x = rule.apply(c, &x, axis, size(wanted[k] as i64)?, scales[k], part)?;
    }
    one(x)
}

impl Rule {
    fn apply(
        &self,
        c: &Call,
        x: &Tensor,
        axis: usize,
        to: usize,
        scale: f64,
        roi: Option<(f64, f64)>,
    ) -> Result<Tensor> {
        let from = x.shape()[axis];
        if from == to && scale == 1.0 && self.coordinates != "tf_crop_and_resize" {
            return Ok(x.clone());
        }
        crate::call::list_length(to as i64)?;
        if from == 0 || to == 0 || scale <= 0.0 || !scale.is_finite() {
            bail!(Shape, "shape {} cannot be resized to {to} along axis {axis}", x.shape());
        }
        let taps: Vec<Taps> =
            (0..to).map(|place| self.taps(place, from, to, scale, roi)).collect::<Result<_>>()?;
        let copies = to / from;
        let repeats = to.is_multiple_of(from)
            && taps
                .iter()
                .enumerate()
                .all(|(place, t)| t.as_ref().is_some_and(|t| t.len() == 1 && t[0].0 == place / copies));
        if repeats {
            return x.try_repeat_interleave(copies, Some(axis as isize));
        }
        let most = taps.iter().flatten().map(Vec::len).max().unwrap_or(1);
        let view = super::index::along(x.rank(), axis, to);
        let along = |numbers: Vec<f64>| {
            let count = numbers.len();
            let host = volta::with_device(volta::Device::Cpu, || Tensor::try_from_vec(numbers, [count]))?;
            host.try_to_dtype(x.dtype())?.try_to_device(c.device)?.try_reshape(view)
        };
        let mut sum: Option<Tensor> = None;
        for k in 0..most {
            let tap = |t: &Taps| t.as_ref().and_then(|t| t.get(k)).copied().unwrap_or((0, 0.0));
            let places = c.vector(taps.iter().map(|t| tap(t).0 as i64).collect())?;
            let mut part = x.try_index_select(axis as isize, &places)?;
            let weights: Vec<f64> = taps.iter().map(|t| tap(t).1).collect();
            if weights.iter().any(|&w| w != 1.0) {
                part = part.try_mul(&along(weights)?)?;
            }
            sum = Some(match sum {
                Some(sum) => sum.try_add(&part)?,
                None => part,
            });
        }
        let Some(mut y) = sum else { return Ok(x.clone()) };
        if taps.iter().any(Option::is_none) && self.extrapolation != 0.0 {
            let fill = taps.iter().map(|t| if t.is_none() { self.extrapolation } else { 0.0 }).collect();
            y = y.try_add(&along(fill)?)?;
        }
        Ok(y)
    }

    /// Where a new place stands among the old ones.
    fn place(&self, k: f64, from: f64, to: f64, scale: f64, roi: Option<(f64, f64)>) -> Result<f64> {
        Ok(match self.coordinates.as_str() {
            "asymmetric" => k / scale,
            "half_pixel" => (k + 0.5) / scale - 0.5,
            "pytorch_half_pixel" => {
                if to > 1.0 {
                    (k + 0.5) / scale - 0.5
                } else {
                    0.0
                }
            }
            "align_corners" => {
                // The new length before it was cut to a whole number.
                let exact = from * scale;
                if exact > 1.0 { k * (from - 1.0) / (exact - 1.0) } else { 0.0 }
            }
            "half_pixel_symmetric" => {
                let exact = from * scale;
                from / 2.0 * (1.0 - to / exact) + (k + 0.5) / scale - 0.5
            }
            "tf_half_pixel_for_nn" => (k + 0.5) / scale,
            "tf_crop_and_resize" => {
                let (start, end) = roi.unwrap_or((0.0, 1.0));
                if to > 1.0 {
                    start * (from - 1.0) + k * (end - start) * (from - 1.0) / (to - 1.0)
                } else {
                    0.5 * (start + end) * (from - 1.0)
                }
            }
            other => bail!(Data, "the coordinates {other:?} are not known"),
        })
    }

    fn taps(&self, k: usize, from: usize, to: usize, scale: f64, roi: Option<(f64, f64)>) -> Result<Taps> {
        let at = self.place(k as f64, from as f64, to as f64, scale, roi)?;
        let last = from as f64 - 1.0;
        if self.coordinates == "tf_crop_and_resize" && !(0.0..=last).contains(&at) {
            return Ok(None);
        }
        let clamp = |place: f64| place.clamp(0.0, last) as usize;
        // A narrower image takes wider neighbourhoods.
        let step = if self.antialias { scale.min(1.0) } else { 1.0 };
        let kernel: Box<dyn Fn(f64) -> f64> = match self.mode.as_str() {
            "nearest" => {
                let place = match self.nearest.as_str() {
                    "floor" => at.floor(),
                    "ceil" => at.ceil(),
                    "round_prefer_ceil" => (at + 0.5).floor(),
                    _ => (at - 0.5).ceil(),
                };
                return Ok(Some(vec![(clamp(place), 1.0)]));
            }
            "linear" | "bilinear" => Box::new(|d: f64| (1.0 - d.abs()).max(0.0)),
            "cubic" => {
                let a = self.cubic;
                Box::new(move |d: f64| {
                    let d = d.abs();
                    if d <= 1.0 {
                        (a + 2.0) * d * d * d - (a + 3.0) * d * d + 1.0
                    } else if d < 2.0 {
                        a * d * d * d - 5.0 * a * d * d + 8.0 * a * d - 4.0 * a
                    } else {
                        0.0
                    }
                })
            }
            other => bail!(Data, "the mode {other:?} is not known"),
        };
        let reach = if self.mode == "cubic" { 2.0 } else { 1.0 } / step;
        let (first, end) = ((at - reach).floor() as i64, (at + reach).ceil() as i64);
        let mut taps: Vec<(usize, f64)> = Vec::new();
        let mut total = 0.0;
        for place in first..=end {
            let weight = kernel((at - place as f64) * step);
            let outside = place < 0 || place > last as i64;
            if weight == 0.0 || (outside && self.exclude_outside) {
                continue;
            }
            total += weight;
            let place = clamp(place as f64);
            match taps.iter_mut().find(|tap| tap.0 == place) {
                Some(tap) => tap.1 += weight,
                None => taps.push((place, weight)),
            }
        }
        if total != 0.0 && (self.antialias || self.exclude_outside) {
            taps.iter_mut().for_each(|tap| tap.1 /= total);
        }
        Ok(Some(taps))
    }
}
