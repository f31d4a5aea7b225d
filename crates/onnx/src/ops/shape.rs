//! Shapes as values, and values of a given shape.

use super::Rows;
use crate::call::{Call, Outputs, one, size};
use crate::element::ElementType;
use crate::value::Value;
use volta::{DType, Device, Result, Shape, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("Shape", |c| {
        let x = c.x(0)?;
        let rank = x.rank() as i64;
        let clamp = |k: i64| if k < 0 { k + rank } else { k }.clamp(0, rank) as usize;
        let (start, end) = (clamp(c.int("start", 0)?), clamp(c.int("end", rank)?));
        let extents = x.shape().iter().map(|&e| e as i64).collect::<Vec<_>>();
        known(extents.get(start..end).unwrap_or_default().to_vec(), None)
    }),
    ("Size", |c| known(vec![c.x(0)?.numel() as i64], Some(Shape::of(&[])))),
    ("Identity", |c| c.value(0).map_or_else(|| Ok(Vec::new()), |value| Ok(vec![value.clone()]))),
    ("Constant", constant),
    ("ConstantOfShape", |c| {
        let extents = c.ints(0)?.into_iter().map(size).collect::<Result<Vec<_>>>()?;
        let (value, kind) = match c.tensor("value")? {
            Some(proto) => {
                let value = c.weights.constant(proto)?;
                (value.tensor.try_reshape([1usize; 0])?, value.kind)
            }
            None => {
                (volta::with_device(Device::Cpu, || Tensor::try_full([1usize; 0], 0.0))?, ElementType::F32)
            }
        };
        let filled = crate::value::to_device(&value, c.device)?.try_expand(&extents)?;
        Ok(vec![Value::from(filled).of_kind_if_held(kind)])
    }),
    ("Range", range),
    ("EyeLike", |c| {
        let x = c.x(0)?;
        let kind = c.maybe_int("dtype")?.map_or(Ok(c.kind(0)), ElementType::numbered)?;
        let (rows, columns) = (x.size(0), x.size(1));
        let k = c.int("k", 0)?;
        let upper = c.make(|| Tensor::try_triu_mask(rows, columns, k))?;
        let lower = c.make(|| Tensor::try_tril_mask(rows, columns, k))?;
        Ok(vec![Value::from(upper.try_logical_and(&lower)?.try_to_dtype(kind.held_as())?).of_kind(kind)])
    }),
    ("Trilu", |c| {
        let (x, k) = (c.x(0)?, if c.has(1) { c.int_at(1)? } else { 0 });
        let (rows, columns) = (x.size(-2), x.size(-1));
        let upper = c.flag("upper", true)?;
        let mask = c.make(|| {
            if upper {
                Tensor::try_triu_mask(rows, columns, k)
            } else {
                Tensor::try_tril_mask(rows, columns, k)
            }
        })?;
        one(mask.try_where_(&x, x.zeros_like())?)
    }),
];

/// Integers that follow from a shape.
fn known(numbers: Vec<i64>, shape: Option<Shape>) -> Result<Outputs> {
    let shape = shape.unwrap_or(Shape::of(&[numbers.len()]));
    let host = volta::with_device(Device::Cpu, || Tensor::try_from_vec(numbers, shape))?;
    Ok(vec![Value::known(host)])
}

fn constant(c: &Call) -> Result<Outputs> {
    if let Some(proto) = c.tensor("value")? {
        return Ok(vec![c.weights.constant(proto)?]);
    }
    let host = volta::with_device(Device::Cpu, || {
        if let Some(x) = c.maybe_float("value_float")? {
            return Tensor::try_from_vec(vec![x as f32], [1usize; 0]);
        }
        if let Some(x) = c.maybe_int("value_int")? {
            return Tensor::try_from_vec(vec![x], [1usize; 0]);
        }
        if let Some(list) = c.float_list("value_floats")? {
            return Tensor::try_from_slice(&list, [list.len()]);
        }
        if let Some(list) = c.int_list("value_ints")? {
            return Tensor::try_from_slice(&list, [list.len()]);
        }
        bail!(Data, "the constant is neither a tensor nor numbers")
    })?;
    Ok(vec![Value::known(host)])
}

fn range(c: &Call) -> Result<Outputs> {
    let dtype = c.x(0)?.dtype();
    if dtype.is_float() {
        let (start, limit, delta) = (c.float_at(0)?, c.float_at(1)?, c.float_at(2)?);
        let count = ((limit - start) / delta).ceil().max(0.0);
        if !count.is_finite() || count > 1e12 {
            bail!(Data, "there are no numbers from {start} to {limit} by {delta}");
        }
        let index = c.make(|| Tensor::try_arange(0, count as i64))?;
        return one(index.try_to_dtype(dtype)?.try_mul(delta)?.try_add(start)?);
    }
    let (start, limit, delta) = (c.int_at(0)?, c.int_at(1)?, c.int_at(2)?);
    let span = limit.checked_sub(start).filter(|_| delta != 0);
    let Some(span) = span else { bail!(Data, "there are no numbers from {start} to {limit} by {delta}") };
    let count = span.checked_div(delta).unwrap_or(0) + i64::from(span % delta != 0);
    let index = c.make(|| Tensor::try_arange(0, count.max(0)))?;
    let index = if dtype == DType::I32 { index } else { index.try_to_dtype(dtype)? };
    one(index.try_mul(delta)?.try_add(start)?)
}
