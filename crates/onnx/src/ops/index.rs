//! Picking by positions, and putting where they say.

use super::Rows;
use crate::call::{Call, Outputs, one, size};
use crate::value::Value;
use volta::{DType, Result, Shape, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("Gather", gather),
    ("GatherElements", |c| {
        let (x, axis) = (c.x(0)?, c.axis(0)?);
        let index = positions(c, 1, x.shape().try_size(axis)?)?;
        one(x.try_gather(axis, &index)?)
    }),
    ("GatherND", gather_nd),
    ("Scatter", scatter_elements),
    ("ScatterElements", scatter_elements),
    ("ScatterND", scatter_nd),
    ("TensorScatter", tensor_scatter),
    ("OneHot", |c| {
        let classes = size(c.int_at(1)?)?;
        let (index, values) = (c.x(0)?.try_to_dtype(DType::I32)?, c.x(2)?);
        let index = index.try_remainder(classes as i64)?;
        // Positions outside are nobody's.
        let raw = c.x(0)?.try_to_dtype(DType::I32)?;
        let inside = raw.try_ge(-(classes as i64))?.try_logical_and(&raw.try_lt(classes as i64)?)?;
        let index = inside.try_where_(&index, -1)?;
        let axis = c.int("axis", -1)?;
        let place = if axis < 0 { axis + index.rank() as i64 + 1 } else { axis } as usize;
        let mut extents = vec![1; index.rank() + 1];
        let Some(extent) = extents.get_mut(place) else { bail!(Shape, "there is no axis {axis}") };
        *extent = classes;
        let class = c.make(|| Tensor::try_arange(0, classes as i64))?.try_reshape(&extents)?;
        let hit = index.try_unsqueeze(place as isize)?.try_eq(&class)?;
        one(hit.try_where_(&values.try_select(0, 1)?, &values.try_select(0, 0)?)?)
    }),
];

/// The positions of an input, counted from the beginning of an axis of this extent.
pub(super) fn positions(c: &Call, k: usize, extent: usize) -> Result<Tensor> {
    let index = c.x(k)?;
    if let Some(value) = c.value(k)
        && value.known
        && c.ints(k)?.iter().all(|&place| place >= 0)
    {
        return Ok(index);
    }
    super::index_from_start(&index, extent as i64)
}

fn gather(c: &Call) -> Result<Outputs> {
    let x = c.x(0)?;
    let axis = x.shape().axis(c.axis(0)?)?;
    let index = positions(c, 1, x.shape()[axis])?;
    if axis == 0 && x.rank() == 2 && index.rank() > 0 {
        return one(x.try_embedding(&index)?);
    }
    let picked = x.try_index_select(axis as isize, &index.try_reshape([index.numel()])?)?;
    let shape = [&x.shape()[..axis], &index.shape()[..], &x.shape()[axis + 1..]].concat();
    one(picked.try_reshape(&shape)?)
}

/// The places, in a tensor whose axes from `skip` on are flat, that tuples of positions name.
fn flat_places(index: &Tensor, extents: &[usize]) -> Result<Tensor> {
    let mut place: Option<Tensor> = None;
    for (k, &extent) in extents.iter().enumerate() {
        let along = super::index_from_start(&index.try_select(-1, k as isize)?, extent as i64)?;
        place = Some(match place {
            Some(before) => before.try_mul(extent as i64)?.try_add(&along)?,
            None => along,
        });
    }
    match place {
        Some(place) => Ok(place),
        None => bail!(Data, "positions have no axes to name"),
    }
}

fn gather_nd(c: &Call) -> Result<Outputs> {
    let (x, index, batch) = (c.x(0)?, c.x(1)?, size(c.int("batch_dims", 0)?)?);
    let (xs, is) = (x.shape(), index.shape());
    let Some(&count) = is.last() else { bail!(Shape, "the positions have no axes") };
    if batch + count > xs.rank() || batch >= is.rank() || count == 0 {
        bail!(Shape, "positions of shape {is} do not fit shape {xs}");
    }
    let lead: usize = xs[..batch].iter().product();
    let (named, rest) = (&xs[batch..batch + count], &xs[batch + count..]);
    let (places, width): (usize, usize) = (named.iter().product(), rest.iter().product());
    let mut place = flat_places(&index, named)?;
    if batch > 0 {
        let per = place.numel() / lead.max(1);
        let first =
            c.make(|| Tensor::try_arange(0, lead as i64))?.try_mul(places as i64)?.try_reshape([lead, 1])?;
        place = place.try_reshape([lead, per])?.try_add(&first.try_to_dtype(place.dtype())?)?;
    }
    let rows =
        x.try_reshape([lead * places, width])?.try_index_select(0, &place.try_reshape([place.numel()])?)?;
    one(rows.try_reshape(&[&is[..is.rank() - 1], rest].concat())?)
}

/// What updates do to what stands there.
fn put(flat: &Tensor, places: &Tensor, updates: &Tensor, reduction: &str) -> Result<Tensor> {
    let dtype = flat.dtype();
    if dtype == DType::Bool {
        let number = |t: &Tensor| t.try_to_dtype(DType::I32);
        return put(&number(flat)?, places, &number(updates)?, reduction)?.try_to_dtype(dtype);
    }
    let columns = flat.shape()[1];
    let ones = updates.ones_like();
    match reduction {
        "none" => {
            let zeros = flat.zeros_like();
            let hit = zeros.try_index_add(0, places, &ones)?.try_gt(0)?;
            // Of several updates of one place the standard takes any; here it is one of equal ones.
            let count = zeros.try_index_add(0, places, &ones)?.try_maximum(1)?;
            let sum = zeros.try_index_add(0, places, updates)?;
            let mean = if dtype.is_float() { sum.try_div(&count)? } else { sum.try_floor_divide(&count)? };
            hit.try_where_(&mean, flat)
        }
        "add" => flat.try_index_add(0, places, updates),
        // Every place looks at all updates.
        "mul" | "max" | "min" => {
            let rows = flat.shape()[0];
            let index = volta::with_device(flat.device(), || Tensor::try_arange(0, rows as i64))?;
            let hit = index
                .try_reshape([rows, 1, 1])?
                .try_eq(&places.try_to_dtype(DType::I32)?.try_reshape([1, places.numel(), 1])?)?;
            let seen = updates.try_unsqueeze(0)?;
            let hit = hit.try_expand([rows, places.numel(), columns])?;
            match reduction {
                "mul" => hit
                    .try_where_(&seen, seen.ones_like())?
                    .try_prod_dim(1, false)?
                    .try_to_dtype(dtype)?
                    .try_mul(flat),
                "max" => {
                    flat.try_maximum(&hit.try_where_(&seen, &flat.try_unsqueeze(1)?)?.try_max_dim(1, false)?)
                }
                _ => {
                    flat.try_minimum(&hit.try_where_(&seen, &flat.try_unsqueeze(1)?)?.try_min_dim(1, false)?)
                }
            }
        }
        other => bail!(Data, "the reduction {other:?} is not known"),
    }
}

fn scatter_elements(c: &Call) -> Result<Outputs> {
    let (x, updates, axis) = (c.x(0)?, c.x(2)?, c.axis(0)?);
    let (shape, k) = (x.shape(), x.shape().axis(axis)?);
    let index = positions(c, 1, shape[k])?.try_to_dtype(DType::I32)?;
    let reduction = c.text("reduction", "none")?;
    if reduction == "add" && x.dtype() != DType::Bool {
        return one(x.try_scatter_add(axis, &index, &updates)?);
    }
    // The flat place of every update.
    let mut place: Option<Tensor> = None;
    for (j, &extent) in shape.iter().enumerate() {
        let along = if j == k {
            index.clone()
        } else {
            let mut extents = vec![1; shape.rank()];
            extents[j] = index.shape()[j];
            c.make(|| Tensor::try_arange(0, index.shape()[j] as i64))?
                .try_reshape(&extents)?
                .try_expand(index.shape())?
        };
        place = Some(match place {
            Some(before) => before.try_mul(extent as i64)?.try_add(&along)?,
            None => along,
        });
    }
    let Some(place) = place else { bail!(Shape, "the input has no axes") };
    let count = place.numel();
    let y = put(
        &x.try_reshape([x.numel(), 1])?,
        &place.try_reshape([count])?,
        &updates.try_reshape([count, 1])?,
        &reduction,
    )?;
    one(y.try_reshape(shape)?)
}

fn scatter_nd(c: &Call) -> Result<Outputs> {
    let (x, index, updates) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let (xs, is) = (x.shape(), index.shape());
    let count = is.last().copied().unwrap_or(0);
    if count == 0 || count > xs.rank() {
        bail!(Shape, "positions of shape {is} do not fit shape {xs}");
    }
    let (places, width): (usize, usize) = (xs[..count].iter().product(), xs[count..].iter().product());
    let place = flat_places(&index, &xs[..count])?;
    let place = place.try_reshape([place.numel()])?;
    let rows = updates.try_reshape([place.numel(), width])?;
    one(put(&x.try_reshape([places, width])?, &place, &rows, &c.text("reduction", "none")?)?
        .try_reshape(xs)?)
}

/// New keys or values of a cache, from a place of each example on.
fn tensor_scatter(c: &Call) -> Result<Outputs> {
    let (past, update) = (c.x(0)?, c.x(1)?);
    let shape = past.shape();
    let axis = shape.axis(c.axis(-2)?)?;
    let (batch, length, new) = (shape[0], shape[axis], update.shape().try_size(axis as isize)?);
    let starts = c.maybe_ints(2)?.unwrap_or_else(|| vec![0; batch]);
    let circular = c.text("mode", "linear")? == "circular";
    // Which element of old and new ones, side by side, stands in every place.
    let mut source = Vec::new();
    for &start in &starts {
        for place in 0..length as i64 {
            let step = place - start;
            let step = if circular { step.rem_euclid(length as i64) } else { step };
            source.push(if (0..new as i64).contains(&step) { length as i64 + step } else { place });
        }
    }
    let mut extents = vec![1; shape.rank()];
    (extents[0], extents[axis]) = (batch, length);
    let index = c.vector(source)?.try_reshape(&extents)?.try_expand(shape)?;
    let both = Tensor::try_cat(&[past, update], axis as isize)?;
    Ok(vec![Value::from(both.try_gather(axis as isize, &index)?)])
}

/// A shape with one axis.
pub(super) fn along(rank: usize, axis: usize, extent: usize) -> Shape {
    let mut extents = vec![1; rank];
    extents[axis] = extent;
    Shape::of(&extents)
}
