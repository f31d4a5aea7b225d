//! `x[...] = y`: the tensor gets a new value, `y` where the index says and the old one elsewhere.

use super::super::elementwise::copied;
use super::super::{create, in_place};
use super::common;
use super::get::{Rows, flat, shaped, sliced};
use super::parse::{Index, Part, Positions, host, lone_mask, parse, picked};
use crate::error::{call, run};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use volta::{DType, Result, Scalar, Tensor};

/// Does `x[index] = value`.
pub fn set(x: &Tensor, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = index.py();
    in_place::check_assignable(x)?;
    let value = create::value_for(value, x)?;
    if let Some(mask) = lone_mask(index)?
        && let Some(result) = under_mask(py, x, &mask, &value)?
    {
        return in_place::update(x, &result);
    }
    let mut index = parse(py, &x.shape(), index)?;
    index.look(py, &x.shape())?;
    let result = if index.parts.iter().any(Part::picks) {
        picked_set(py, &value, x, &index)?
    } else {
        call(|| {
            let region = sliced(x, &index.parts)?;
            let wanted = shaped(&region, &index.parts)?.shape();
            let value = stretched(&value, &wanted)?.try_reshape(region.shape())?;
            placed(x, &index.parts, &value)
        })?
    };
    in_place::update(x, &result)
}

/// A value where a mask over the leading dimensions is true, if the value does not differ along them.
fn under_mask(py: Python<'_>, x: &Tensor, mask: &Tensor, value: &Tensor) -> PyResult<Option<Tensor>> {
    let (shape, own) = (x.shape(), mask.shape());
    let rest = shape.rank().saturating_sub(own.rank());
    if own.rank() > shape.rank() || own[..] != shape[..own.rank()] || value.rank() > rest {
        return Ok(None);
    }
    run(py, || {
        let wide = mask.try_to_device(x.device())?.try_reshape(&[&own[..], &vec![1; rest]].concat()[..])?;
        wide.try_where_(value, x).map(Some)
    })
}

/// A value broadcast to a shape; dimensions of size 1 in front of it do not matter.
fn stretched(value: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let own = value.shape();
    let extra = own.rank().saturating_sub(shape.len());
    if extra > 0 && own[..extra].iter().all(|&e| e == 1) {
        return value.try_reshape(&own[extra..])?.try_expand(shape);
    }
    value.try_expand(shape)
}

/// A region's values at their places in the whole, and zeros elsewhere. The region has elements.
fn spread(region: &Tensor, parts: &[Part], whole: &[usize]) -> Result<Tensor> {
    let cuts = parts.iter().filter_map(|part| match *part {
        Part::Range { start, step, .. } => Some((start, step)),
        Part::One(at) => Some((at, 1)),
        Part::Picked(_) => Some((0, 1)),
        Part::New | Part::PickedNew(_) => None,
    });
    let zero = if region.dtype() == DType::Bool { Scalar::Bool(false) } else { Scalar::Int(0) };
    let mut x = region.clone();
    let mut pads = Vec::new();
    for (dim, (start, step)) in cuts.enumerate() {
        let shape = x.shape();
        let (before, count, after) = (&shape[..dim], shape[dim], &shape[dim + 1..]);
        if step > 1 && count > 1 {
            // Room for the steps behind every element; behind the last there may be none.
            let mut room = vec![(0, 0); shape.rank() + 1];
            room[dim + 1].1 = step - 1;
            let apart = x.try_reshape(&[before, &[count, 1], after].concat()[..])?.try_pad(&room, zero)?;
            let flat = apart.try_reshape(&[before, &[count * step], after].concat()[..])?;
            x = flat.try_narrow(dim as isize, 0, (count - 1) * step + 1)?;
        }
        pads.push((start, whole[dim] - start - x.shape()[dim]));
    }
    x.try_pad(&pads, zero)
}

/// `x` with the values of a region.
fn placed(x: &Tensor, parts: &[Part], region: &Tensor) -> Result<Tensor> {
    if region.numel() == 0 {
        return x.try_reshape(x.shape());
    }
    let whole = x.shape();
    if region.shape() == whole {
        return copied(region);
    }
    let ones = volta::with_device(x.device(), || Tensor::try_full_of(region.shape(), true, DType::Bool))?;
    spread(&ones, parts, &whole)?.try_where_(&spread(region, parts, &whole)?, x)
}

/// The positions as numbers, read if they are not known yet.
fn known(py: Python<'_>, positions: &Positions, extent: usize) -> PyResult<(Vec<i64>, Vec<usize>)> {
    match positions {
        Positions::Known(all, shape) => Ok((all.clone(), shape.clone())),
        Positions::Pending(tensor) => {
            let all: Vec<i64> = run(py, || tensor.detach().try_to_vec())?;
            let size = extent as i64;
            if let Some(at) = all.iter().find(|at| !(-size..size).contains(*at)) {
                let message = format!("index {at} is out of range for a dimension of size {extent}");
                return Err(pyo3::exceptions::PyIndexError::new_err(message));
            }
            Ok((all.iter().map(|at| at.rem_euclid(size)).collect(), tensor.shape().to_vec()))
        }
    }
}

/// `x` with values where some dimensions are picked by positions; of several for one place the last counts.
fn picked_set(py: Python<'_>, value: &Tensor, x: &Tensor, index: &Index) -> PyResult<Tensor> {
    let parts = &index.parts;
    let cut = call(|| shaped(&sliced(x, parts)?, parts))?;
    let rows = call(|| Rows::of(&cut, parts))?;
    let extents = &rows.extents[..rows.picked];
    let all: Vec<(Vec<i64>, Vec<usize>)> =
        picked(parts).zip(extents).map(|(p, &extent)| known(py, p, extent)).collect::<PyResult<_>>()?;
    let shapes: Vec<Vec<usize>> = all.iter().map(|(_, shape)| shape.clone()).collect();
    let shape = common(&shapes).ok_or_else(|| {
        PyValueError::new_err(format!("index arrays of shapes {shapes:?} do not broadcast"))
    })?;
    let slices: Vec<(&[i64], &[usize])> = all.iter().map(|(p, s)| (&p[..], &s[..])).collect();
    let places = flat(&slices, extents, &shape);
    // The value's shape is that of `x[index]`: its picked dimensions stand where PyTorch puts them.
    let before = if index.together { rows.first } else { 0 };
    let (rest, count) = (rows.rest(), places.len());
    let wanted = [&rest[..before], &shape, &rest[before..]].concat();
    let mut from = vec![-1i64; extents.iter().product()];
    for (k, &place) in places.iter().enumerate() {
        from[place as usize] = k as i64;
    }
    run(py, || {
        let value = stretched(value, &wanted)?;
        if count == 0 || value.numel() == 0 {
            return x.try_reshape(x.shape());
        }
        let order: Vec<isize> = (before..before + shape.len())
            .chain(0..before)
            .chain(before + shape.len()..wanted.len())
            .map(|k| k as isize)
            .collect();
        let value = value.try_permute(&order[..])?.try_reshape(&[&[count], rest].concat()[..])?;
        let from = host(&from, &[from.len()])?.try_to_device(x.device())?;
        let taken = value.try_index_select(0, &from.try_maximum(0)?)?;
        let mut column = vec![1; rows.rows.rank()];
        column[0] = from.numel();
        let changed = from.try_ge(0)?.try_reshape(&column[..])?.try_where_(&taken, &rows.rows)?;
        let mut back = vec![0isize; rows.order.len()];
        rows.order.iter().enumerate().for_each(|(k, &o)| back[o as usize] = k as isize);
        let changed = changed.try_reshape(&rows.extents[..])?.try_permute(&back[..])?;
        // Without the new dimensions it is a region of `x`.
        let region = changed.try_reshape(sliced(x, parts)?.shape())?;
        placed(x, parts, &region)
    })
}
