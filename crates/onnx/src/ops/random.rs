//! Random numbers, and what drops some.

use super::Rows;
use crate::call::{Call, Outputs, size};
use crate::element::ElementType;
use crate::value::Value;
use volta::{DType, Result, Shape, Tensor};

pub(super) const ROWS: Rows = &[
    ("RandomNormal", |c| normal(c, wanted(c)?)),
    ("RandomNormalLike", |c| normal(c, c.x(0)?.shape())),
    ("RandomUniform", |c| uniform(c, wanted(c)?)),
    ("RandomUniformLike", |c| uniform(c, c.x(0)?.shape())),
    ("Bernoulli", |c| {
        let p = c.x(0)?;
        let drawn = c.make(|| Tensor::try_rand(p.shape()))?;
        typed(c, drawn.try_lt(&p)?)
    }),
    ("Dropout", |c| {
        let x = c.x(0)?;
        let ratio = if c.has(1) { c.float_at(1)? } else { c.float("ratio", 0.5)? };
        let is_training = c.has(2) && c.int_at(2)? != 0;
        if !is_training || ratio == 0.0 {
            let all = c.make(|| Tensor::try_full_of(x.shape(), true, DType::Bool))?;
            return Ok(vec![x.into(), all.into()]);
        }
        let kept = c.make(|| Tensor::try_bernoulli(1.0 - ratio, x.shape()))?;
        let y = kept.try_where_(&x.try_div(1.0 - ratio)?, x.zeros_like())?;
        Ok(vec![y.into(), kept.into()])
    }),
];

fn wanted(c: &Call) -> Result<Shape> {
    let extents =
        c.int_list("shape")?.unwrap_or_default().into_iter().map(size).collect::<Result<Vec<_>>>()?;
    Shape::new(&extents)
}

/// In the type that an attribute names, or the input has.
fn typed(c: &Call, x: Tensor) -> Result<Outputs> {
    let kind = c.maybe_int("dtype")?.map_or(Ok(c.kind(0)), ElementType::numbered)?;
    Ok(vec![Value::from(x.try_to_dtype(kind.held_as())?).of_kind(kind)])
}

fn normal(c: &Call, shape: Shape) -> Result<Outputs> {
    let drawn = c.make(|| Tensor::try_randn(shape))?;
    typed(c, drawn.try_mul(c.float("scale", 1.0)?)?.try_add(c.float("mean", 0.0)?)?)
}

fn uniform(c: &Call, shape: Shape) -> Result<Outputs> {
    let (low, high) = (c.float("low", 0.0)?, c.float("high", 1.0)?);
    let drawn = c.make(|| Tensor::try_rand(shape))?;
    typed(c, drawn.try_mul(high - low)?.try_add(low)?)
}
