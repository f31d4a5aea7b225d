//! `x[...]`.

use super::super::{PyTensor, record};
use super::common;
use super::parse::{Index, Part, Positions, host, on_device, parse, picked};
use crate::error::{call, run};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use volta::{Range, Result, Tensor};

/// The value of `x[index]`: not a tensor to be changed in place, since changing it would not change `x`.
pub fn get(x: &Tensor, index: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    // Mostly it is one number.
    if index.is_exact_instance_of::<PyInt>() && x.rank() > 0 {
        let at = index.extract()?;
        return call(|| x.try_select(0, at)).map(PyTensor);
    }
    let py = index.py();
    let index = parse(py, &x.shape(), index)?;
    let x = &taken_first(py, x, &index)?;
    if index.parts.iter().any(Part::picks) {
        let result = pick(py, x, &index)?;
        return record(|| Ok(result));
    }
    let whole = |(k, part): (usize, &Part)| matches!(part, Part::Range { start: 0, step: 1, count } if k < x.rank() && *count == x.shape()[k]);
    if index.parts.iter().enumerate().all(whole) {
        return call(|| x.try_reshape(x.shape())).map(PyTensor);
    }
    call(|| shaped(&sliced(x, &index.parts)?, &index.parts)).map(PyTensor)
}

/// A tensor with only one element along the dimensions where its place is not known yet.
fn taken_first(py: Python<'_>, x: &Tensor, index: &Index) -> PyResult<Tensor> {
    index.later.iter().try_fold(x.clone(), |x, one| {
        let at = on_device(py, &Positions::Pending(one.at.clone()), &x, x.shape()[one.dim])?;
        call(|| x.try_index_select(one.dim as isize, &at.try_reshape([1usize])?))
    })
}

/// Every dimension of `x` cut as its part says; single elements stay as dimensions of size 1.
pub fn sliced(x: &Tensor, parts: &[Part]) -> Result<Tensor> {
    let ranges: Vec<Range> = parts
        .iter()
        .filter_map(|part| match *part {
            Part::Range { start, step, count } => {
                let end = if count == 0 { start } else { start + (count - 1) * step + 1 };
                Some(Range::by(start as isize..end as isize, step))
            }
            Part::One(at) => Some(Range::by(at as isize..at as isize + 1, 1)),
            Part::Picked(_) => Some(Range::by(.., 1)),
            Part::New | Part::PickedNew(_) => None,
        })
        .collect();
    x.try_slice(ranges)
}

/// What was cut, without single elements and with new dimensions.
pub fn shaped(cut: &Tensor, parts: &[Part]) -> Result<Tensor> {
    let shape = cut.shape();
    let mut extents = Vec::with_capacity(parts.len());
    let mut dim = 0;
    for part in parts {
        match part {
            Part::New | Part::PickedNew(_) => extents.push(1),
            Part::One(_) => dim += 1,
            _ => {
                extents.push(shape[dim]);
                dim += 1;
            }
        }
    }
    cut.try_reshape(&extents[..])
}

/// A tensor with the dimensions that are picked in front, as one: (positions, rest…).
pub struct Rows {
    pub rows: Tensor,
    /// The order that brought the picked dimensions to the front.
    pub order: Vec<isize>,
    /// The sizes of all dimensions in that order.
    pub extents: Vec<usize>,
    /// How many are picked.
    pub picked: usize,
    /// The dimension where the first of them was.
    pub first: usize,
}

/// Whether each dimension of what `shaped` gives is picked.
fn picked_dims(parts: &[Part]) -> Vec<bool> {
    parts.iter().filter(|part| !matches!(part, Part::One(_))).map(Part::picks).collect()
}

impl Rows {
    pub fn of(cut: &Tensor, parts: &[Part]) -> Result<Rows> {
        let is_picked = picked_dims(parts);
        let (mut order, rest): (Vec<usize>, Vec<usize>) = (0..is_picked.len()).partition(|&k| is_picked[k]);
        let (picked, first) = (order.len(), order[0]);
        order.extend(rest);
        let shape = cut.shape();
        let extents: Vec<usize> = order.iter().map(|&k| shape[k]).collect();
        let order: Vec<isize> = order.into_iter().map(|k| k as isize).collect();
        let mut flat: Vec<usize> = vec![extents[..picked].iter().product()];
        flat.extend(&extents[picked..]);
        let rows = cut.try_permute(&order[..])?.try_reshape(&flat[..])?;
        Ok(Rows { rows, order, extents, picked, first })
    }

    /// The sizes of what is not picked.
    pub fn rest(&self) -> &[usize] {
        &self.extents[self.picked..]
    }
}

/// The flat positions, in rows, of known positions along several dimensions of these sizes.
pub fn flat(all: &[(&[i64], &[usize])], extents: &[usize], shape: &[usize]) -> Vec<i64> {
    let count: usize = shape.iter().product();
    let mut out = vec![0i64; count];
    for ((positions, own), &extent) in all.iter().zip(extents) {
        // The stride of each common dimension in these positions; 0 where they are broadcast.
        let added = shape.len() - own.len();
        let mut strides = vec![0usize; shape.len()];
        let mut stride = 1;
        for k in (0..own.len()).rev() {
            strides[added + k] = if own[k] == 1 { 0 } else { stride };
            stride *= own[k];
        }
        let mut at = vec![0usize; shape.len()];
        let mut place = 0usize;
        for value in &mut out {
            *value = *value * extent as i64 + positions[place];
            for k in (0..shape.len()).rev() {
                at[k] += 1;
                place += strides[k];
                if at[k] < shape[k] {
                    break;
                }
                place -= strides[k] * at[k];
                at[k] = 0;
            }
        }
    }
    out
}

/// `x[index]` where some dimensions are picked by positions.
fn pick(py: Python<'_>, x: &Tensor, index: &Index) -> PyResult<Tensor> {
    let parts = &index.parts;
    let cut = call(|| shaped(&sliced(x, parts)?, parts))?;
    let positions: Vec<&Positions> = picked(parts).collect();
    let shapes: Vec<Vec<usize>> = positions.iter().map(|p| p.shape()).collect();
    let shape = common(&shapes).unwrap_or_default();
    let count: usize = shape.iter().product();
    if let [one] = positions[..] {
        // Along one dimension the others can stay where they are.
        let dim = picked_dims(parts).iter().position(|&yes| yes).unwrap_or(0);
        let at = on_device(py, one, x, cut.shape()[dim])?;
        return call(|| {
            let picked = cut.try_index_select(dim as isize, &at.try_reshape([count])?)?;
            let own = picked.shape();
            picked.try_reshape(&[&own[..dim], &shape, &own[dim + 1..]].concat()[..])
        });
    }
    let rows = call(|| Rows::of(&cut, parts))?;
    let extents = &rows.extents[..rows.picked];
    let known: Option<Vec<(&[i64], &[usize])>> = positions
        .iter()
        .map(|p| match p {
            Positions::Known(all, shape) => Some((&all[..], &shape[..])),
            Positions::Pending(_) => None,
        })
        .collect();
    let at = match known {
        Some(known) => run(py, || host(&flat(&known, extents, &shape), &[count])?.try_to_device(x.device()))?,
        None => {
            let inside =
                |at: &Tensor, extent: usize| at.try_ge(0)?.try_logical_and(&at.try_lt(extent as i64)?);
            let mut sum = on_device(py, positions[0], x, extents[0])?;
            let mut all_inside = call(|| inside(&sum, extents[0]))?;
            for (p, &extent) in positions[1..].iter().zip(&extents[1..]) {
                let next = on_device(py, p, x, extent)?;
                all_inside = call(|| all_inside.try_logical_and(&inside(&next, extent)?))?;
                sum = call(|| sum.try_mul(extent as i64)?.try_add(&next))?;
            }
            // What lies beyond one dimension is nowhere, and not in the next row.
            call(|| all_inside.try_where_(&sum, -1)?.try_expand(&shape[..])?.try_reshape([count]))?
        }
    };
    call(|| {
        let taken = rows.rows.try_index_select(0, &at)?;
        let result = taken.try_reshape(&[&shape, rows.rest()].concat()[..])?;
        into_place(&result, shape.len(), if index.together { rows.first } else { 0 })
    })
}

/// Moves the first `count` dimensions behind the `before` ones that follow them.
pub fn into_place(x: &Tensor, count: usize, before: usize) -> Result<Tensor> {
    let rank = x.rank();
    let order: Vec<isize> =
        (count..count + before).chain(0..count).chain(count + before..rank).map(|k| k as isize).collect();
    x.try_permute(&order[..])
}
