//! Sorting, and results whose size depends on the numbers: these are found on the host.

use super::Rows;
use crate::call::{Call, Outputs, one, size};
use crate::value::Value;
use volta::{DType, Device, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("TopK", |c| {
        let (x, axis) = (c.x(0)?, c.axis(-1)?);
        let k = match c.maybe_int("k")? {
            Some(k) => size(k)?,
            None => size(c.int_at(1)?)?,
        };
        let (values, places) = x.try_topk(k, axis, c.flag("largest", true)?)?;
        Ok(vec![values.into(), c.positions(places).into()])
    }),
    ("NonZero", |c| {
        let x = c.x(0)?;
        let hits = x.try_to_device(Device::Cpu)?.try_to_dtype(DType::Bool)?.try_to_vec::<bool>()?;
        let places: Vec<usize> =
            hits.iter().enumerate().filter(|(_, hit)| **hit).map(|(place, _)| place).collect();
        let shape = x.shape();
        let mut rows = Vec::new();
        for k in 0..shape.rank() {
            let after: usize = shape[k + 1..].iter().product();
            rows.extend(places.iter().map(|place| (place / after % shape[k]) as i64));
        }
        one(c.vector(rows)?.try_reshape([shape.rank(), places.len()])?)
    }),
    ("Compress", |c| {
        let (x, keep) = (c.x(0)?, c.ints(1)?);
        let places: Vec<i64> =
            keep.iter().enumerate().filter(|(_, keep)| **keep != 0).map(|(place, _)| place as i64).collect();
        let (x, axis) = match c.maybe_int("axis")? {
            Some(axis) => (x, axis as isize),
            None => (x.try_reshape([x.numel()])?, 0),
        };
        one(x.try_index_select(axis, &c.vector(places)?)?)
    }),
    ("Unique", unique),
    ("NonMaxSuppression", non_max_suppression),
];

fn unique(c: &Call) -> Result<Outputs> {
    let x = c.x(0)?;
    let (slices, axis) = match c.maybe_int("axis")? {
        Some(axis) => (x.clone(), x.shape().axis(axis as isize)?),
        None => (x.try_reshape([x.numel()])?, 0),
    };
    let count = slices.shape()[axis];
    let front =
        slices.try_transpose(0, axis as isize)?.try_to_device(Device::Cpu)?.try_to_dtype(DType::F64)?;
    let numbers = front.try_to_vec::<f64>()?;
    let width = numbers.len().checked_div(count).unwrap_or(0);
    let row = |k: usize| &numbers[k * width..(k + 1) * width];
    let order = |a: usize, b: usize| {
        let pairs = row(a).iter().zip(row(b));
        pairs.map(|(x, y)| x.total_cmp(y)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    let mut by_value: Vec<usize> = (0..count).collect();
    by_value.sort_by(|&a, &b| order(a, b));
    // (first place, how often), in order.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for k in by_value {
        match groups.last_mut() {
            Some(group) if order(group[0], k).is_eq() => group.push(k),
            _ => groups.push(vec![k]),
        }
    }
    if !c.flag("sorted", true)? {
        groups.sort_by_key(|group| group[0]);
    }
    let mut inverse = vec![0; count];
    for (place, group) in groups.iter().enumerate() {
        group.iter().for_each(|&k| inverse[k] = place as i64);
    }
    let firsts = c.vector(groups.iter().map(|group| group[0] as i64).collect())?;
    let counts = c.vector(groups.iter().map(|group| group.len() as i64).collect())?;
    let kept = slices.try_index_select(axis as isize, &firsts)?;
    Ok(vec![kept.into(), firsts.into(), c.vector(inverse)?.into(), counts.into()])
}

/// (y1, x1, y2, x2), each pair in order.
fn corners(b: &[f64], is_center: bool) -> [f64; 4] {
    if is_center {
        return [b[1] - b[3] / 2.0, b[0] - b[2] / 2.0, b[1] + b[3] / 2.0, b[0] + b[2] / 2.0];
    }
    [b[0].min(b[2]), b[1].min(b[3]), b[0].max(b[2]), b[1].max(b[3])]
}

/// The common part of two boxes, of what both cover.
fn overlap(a: [f64; 4], b: [f64; 4]) -> f64 {
    let common = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0) * (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let area = |b: [f64; 4]| (b[2] - b[0]) * (b[3] - b[1]);
    let all = area(a) + area(b) - common;
    if all > 0.0 { common / all } else { 0.0 }
}

fn non_max_suppression(c: &Call) -> Result<Outputs> {
    let (boxes, scores) = (c.x(0)?.shape(), c.x(1)?.shape());
    if boxes.rank() != 3
        || scores.rank() != 3
        || boxes[2] != 4
        || scores[2] != boxes[1]
        || scores[0] != boxes[0]
    {
        bail!(Shape, "boxes of shape {boxes} and scores of shape {scores} do not fit");
    }
    let (corner, score) = (c.floats(0)?, c.floats(1)?);
    let most = if c.has(2) { size(c.int_at(2)?.max(0))? } else { 0 };
    let limit = if c.has(3) { c.float_at(3)? } else { 0.0 };
    let least = if c.has(4) { c.float_at(4)? } else { f64::NEG_INFINITY };
    let is_center = c.int("center_point_box", 0)? == 1;
    let (classes, count) = (scores[1], boxes[1]);
    let mut found = Vec::new();
    for batch in 0..boxes[0] {
        for class in 0..classes {
            let score = &score[(batch * classes + class) * count..][..count];
            let place = |k: usize| corners(&corner[(batch * count + k) * 4..][..4], is_center);
            let mut order: Vec<usize> = (0..count).filter(|&k| score[k] > least).collect();
            order.sort_by(|&a, &b| score[b].total_cmp(&score[a]));
            let mut kept: Vec<usize> = Vec::new();
            for k in order {
                if kept.len() >= most {
                    break;
                }
                if kept.iter().all(|&other| overlap(place(other), place(k)) <= limit) {
                    kept.push(k);
                }
            }
            found.extend(kept.into_iter().flat_map(|k| [batch as i64, class as i64, k as i64]));
        }
    }
    let rows = found.len() / 3;
    Ok(vec![Value::from(c.vector(found)?.try_reshape([rows, 3])?)])
}

/// The elements of a tensor on the host.
pub(super) fn host(x: &Tensor) -> Result<Vec<f64>> {
    x.try_to_device(Device::Cpu)?.try_to_dtype(DType::F64)?.try_to_vec()
}
