//! Images seen through a grid, or in regions.

use super::Rows;
use super::movement::four;
use crate::call::{Call, Outputs, one, size};
use volta::{DType, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows =
    &[("GridSample", grid_sample), ("AffineGrid", affine_grid), ("RoiAlign", roi_align)];

/// How places outside of an image are read.
struct Borders {
    mode: String,
    align_corners: bool,
}

impl Borders {
    /// A place, in pixels, of a coordinate between -1 and 1.
    fn pixel(&self, x: &Tensor, extent: usize) -> Result<Tensor> {
        let n = extent as f64;
        if self.align_corners {
            return x.try_add(1)?.try_mul((n - 1.0) / 2.0);
        }
        x.try_add(1)?.try_mul(n)?.try_sub(1)?.try_div(2)
    }

    /// A place inside of the image that stands for one outside.
    fn inside(&self, place: &Tensor, extent: usize) -> Result<Tensor> {
        let last = extent as f64 - 1.0;
        if self.mode == "reflection" {
            let (low, span) = if self.align_corners { (0.0, last) } else { (-0.5, extent as f64) };
            if span == 0.0 {
                return place.try_mul(0);
            }
            let along = place.try_sub(low)?.try_remainder(2.0 * span)?;
            let back = along.try_neg()?.try_add(2.0 * span)?;
            return along.try_minimum(&back)?.try_add(low)?.try_clamp(Some(0.0), Some(last));
        }
        place.try_clamp(Some(0.0), Some(last))
    }
}

/// The pixels of flat images (batch, channels, places) at whole places of each axis; zeros outside if these are to be seen.
fn pixels(x: &Tensor, extents: &[usize], places: &[Tensor], borders: &Borders) -> Result<Tensor> {
    let mut flat: Option<Tensor> = None;
    let mut seen: Option<Tensor> = None;
    for (place, &extent) in places.iter().zip(extents) {
        let inside = borders.inside(place, extent)?;
        if borders.mode == "zeros" {
            let hit = place.try_eq(&inside)?;
            seen = Some(match seen {
                Some(seen) => seen.try_logical_and(&hit)?,
                None => hit,
            });
        }
        let index = inside.try_to_dtype(DType::I32)?;
        flat = Some(match flat {
            Some(flat) => flat.try_mul(extent as i64)?.try_add(&index)?,
            None => index,
        });
    }
    let Some(flat) = flat else { bail!(Shape, "the image has no axes") };
    let (batch, channels, count) = (x.size(0), x.size(1), flat.numel() / x.size(0).max(1));
    let index = flat.try_reshape([batch, 1, count])?.try_expand([batch, channels, count])?;
    let found = x.try_gather(2, &index)?;
    match seen {
        Some(seen) => seen.try_reshape([batch, 1, count])?.try_where_(&found, found.zeros_like()),
        None => Ok(found),
    }
}

fn cubic(t: &Tensor) -> Result<[Tensor; 4]> {
    const A: f64 = -0.75;
    let near = |d: &Tensor| d.try_mul(A + 2.0)?.try_sub(A + 3.0)?.try_mul(d)?.try_mul(d)?.try_add(1);
    let far = |d: &Tensor| {
        d.try_mul(A)?.try_sub(5.0 * A)?.try_mul(d)?.try_add(8.0 * A)?.try_mul(d)?.try_sub(4.0 * A)
    };
    let rest = t.try_neg()?.try_add(1)?;
    Ok([far(&t.try_add(1)?)?, near(t)?, near(&rest)?, far(&rest.try_add(1)?)?])
}

fn grid_sample(c: &Call) -> Result<Outputs> {
    let (x, grid) = (c.x(0)?, c.x(1)?);
    let s = x.shape();
    let space = s.rank() - 2;
    let borders =
        Borders { mode: c.text("padding_mode", "zeros")?, align_corners: c.flag("align_corners", false)? };
    if grid.rank() != space + 2 || grid.size(-1) != space {
        bail!(Shape, "a grid of shape {} does not fit shape {s}", grid.shape());
    }
    let extents = &s[2..];
    let flat = x.try_reshape([s[0], s[1], extents.iter().product()])?;
    let count: usize = grid.shape()[1..=space].iter().product();
    let mut at = Vec::new();
    for (k, &extent) in extents.iter().enumerate() {
        // The last axis comes first in a grid.
        let along = grid.try_select(-1, (space - 1 - k) as isize)?.try_reshape([s[0], count])?;
        let place = borders.pixel(&along, extent)?;
        at.push(place);
    }
    let mode = c.text("mode", "linear")?;
    let y = match mode.as_str() {
        "nearest" => {
            let places = at.iter().map(Tensor::try_round).collect::<Result<Vec<_>>>()?;
            pixels(&flat, extents, &places, &borders)?
        }
        "linear" | "bilinear" | "cubic" | "bicubic" => {
            let taps: Vec<f64> =
                if mode.ends_with("cubic") { vec![-1.0, 0.0, 1.0, 2.0] } else { vec![0.0, 1.0] };
            let at = if mode.ends_with("cubic") || borders.mode == "zeros" {
                at
            } else {
                at.iter().zip(extents).map(|(p, &e)| borders.inside(p, e)).collect::<Result<Vec<_>>>()?
            };
            let floors = at.iter().map(Tensor::try_floor).collect::<Result<Vec<_>>>()?;
            let mut weights = Vec::new();
            for (place, floor) in at.iter().zip(&floors) {
                let t = place.try_sub(floor)?;
                weights.push(if taps.len() == 4 {
                    cubic(&t)?.to_vec()
                } else {
                    vec![t.try_neg()?.try_add(1)?, t]
                });
            }
            let mut sum: Option<Tensor> = None;
            for corner in 0..taps.len().pow(space as u32) {
                let (mut places, mut weight, mut rest) = (Vec::new(), None::<Tensor>, corner);
                for (floor, weights) in floors.iter().zip(&weights) {
                    let tap = rest % taps.len();
                    rest /= taps.len();
                    places.push(floor.try_add(taps[tap])?);
                    weight = Some(match weight {
                        Some(weight) => weight.try_mul(&weights[tap])?,
                        None => weights[tap].clone(),
                    });
                }
                let Some(weight) = weight else { continue };
                let part = pixels(&flat, extents, &places, &borders)?.try_mul(&weight.try_unsqueeze(1)?)?;
                sum = Some(match sum {
                    Some(sum) => sum.try_add(&part)?,
                    None => part,
                });
            }
            let Some(sum) = sum else { bail!(Shape, "the image has no axes") };
            sum
        }
        other => bail!(Data, "the mode {other:?} is not known"),
    };
    one(y.try_reshape(&[&s[..2], &grid.shape()[1..=space]].concat())?)
}

fn affine_grid(c: &Call) -> Result<Outputs> {
    let (theta, sizes) = (c.x(0)?, c.ints(1)?.into_iter().map(size).collect::<Result<Vec<_>>>()?);
    let Some(extents) = sizes.get(2..).filter(|e| !e.is_empty()) else {
        bail!(Data, "the size {sizes:?} is no image's")
    };
    let space = extents.len();
    let align = c.flag("align_corners", false)?;
    let mut columns = Vec::new();
    for k in (0..space).rev() {
        let n = extents[k] as f64;
        let index = c.make(|| Tensor::try_arange(0, extents[k] as i64))?.try_to_dtype(theta.dtype())?;
        let along = if align {
            index.try_mul(2.0 / (n - 1.0).max(1.0))?.try_sub(1)?
        } else {
            index.try_mul(2)?.try_add(1)?.try_div(n)?.try_sub(1)?
        };
        columns.push(along.try_reshape(super::index::along(space, k, extents[k]))?.try_expand(extents)?);
    }
    columns.push(columns[0].ones_like());
    let base = Tensor::try_stack(&columns, -1)?.try_reshape([extents.iter().product(), space + 1])?;
    let y = base.try_unsqueeze(0)?.try_matmul(&theta.try_transpose(1, 2)?)?;
    one(y.try_reshape(&[&sizes[..1], extents, &[space]].concat())?)
}

fn roi_align(c: &Call) -> Result<Outputs> {
    let (x, places) = (c.x(0)?, c.ints(2)?);
    let [_, channels, height, width] = four(&x)?;
    if height == 0 || width == 0 {
        bail!(Shape, "the image has shape {}", x.shape());
    }
    let rois = c.floats(1)?;
    let (out_h, out_w) = (size(c.int("output_height", 1)?)?, size(c.int("output_width", 1)?)?);
    let (ratio, scale) = (c.int("sampling_ratio", 0)?, c.float("spatial_scale", 1.0)?);
    let half = c.text(
        "coordinate_transformation_mode",
        if c.opset < 16 { "output_half_pixel" } else { "half_pixel" },
    )? == "half_pixel";
    let is_max = c.text("mode", "avg")? == "max";
    let flat = x.try_reshape([x.size(0), channels, height * width])?;
    let mut results = Vec::new();
    for (roi, &image) in rois.chunks(4).zip(&places) {
        let [x1, y1, x2, y2] = *roi else { bail!(Data, "a region has fewer than four numbers") };
        let shift = if half { 0.5 } else { 0.0 };
        let (x1, y1, x2, y2) =
            (x1 * scale - shift, y1 * scale - shift, x2 * scale - shift, y2 * scale - shift);
        let (mut w, mut h) = (x2 - x1, y2 - y1);
        if !half {
            (w, h) = (w.max(1.0), h.max(1.0));
        }
        let (bin_h, bin_w) = (h / out_h as f64, w / out_w as f64);
        let samples = |bin: f64| if ratio > 0 { ratio as usize } else { bin.ceil().max(1.0) as usize };
        let (ny, nx) = (samples(bin_h), samples(bin_w));
        // Four neighbours of every sample, and what each counts.
        let (mut index, mut weight) = (Vec::new(), Vec::new());
        for oy in 0..out_h {
            for ox in 0..out_w {
                for iy in 0..ny {
                    for ix in 0..nx {
                        let at = |first: f64, bin: f64, o: usize, i: usize, n: usize| {
                            first + o as f64 * bin + (i as f64 + 0.5) * bin / n as f64
                        };
                        let (y, x) = (at(y1, bin_h, oy, iy, ny), at(x1, bin_w, ox, ix, nx));
                        let outside = y < -1.0 || y > height as f64 || x < -1.0 || x > width as f64;
                        let side = |place: f64, extent: usize| {
                            let place = place.max(0.0);
                            let low = (place.floor() as usize).min(extent - 1);
                            let part = if low >= extent - 1 { 0.0 } else { place - low as f64 };
                            (low, (low + 1).min(extent - 1), part)
                        };
                        let ((ya, yb, fy), (xa, xb, fx)) = (side(y, height), side(x, width));
                        for (py, wy) in [(ya, 1.0 - fy), (yb, fy)] {
                            for (px, wx) in [(xa, 1.0 - fx), (xb, fx)] {
                                index.push((py * width + px) as i64);
                                weight.push(if outside { 0.0 } else { wy * wx });
                            }
                        }
                    }
                }
            }
        }
        let count = index.len();
        let seen = flat.try_select(0, image as isize)?.try_index_select(1, &c.vector(index)?)?;
        let weight = volta::with_device(volta::Device::Cpu, || Tensor::try_from_vec(weight, [count]))?;
        let parts = seen.try_mul(&weight.try_to_dtype(x.dtype())?.try_to_device(c.device)?)?;
        let parts = parts.try_reshape([channels, out_h, out_w, ny * nx, 4])?;
        results.push(if is_max {
            parts.try_max_dim([-2, -1], false)?
        } else {
            parts.try_sum_dim(-1, false)?.try_mean_dim(-1, false)?
        });
    }
    if results.is_empty() {
        return one(c.make(|| Tensor::try_zeros([0, channels, out_h, out_w]))?);
    }
    one(Tensor::try_stack(&results, 0)?)
}
