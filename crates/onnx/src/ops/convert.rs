//! Other types of the same numbers.

use super::Rows;
use crate::call::{Call, Outputs};
use crate::element::ElementType;
use crate::value::Value;
use volta::{DType, Result};

pub(super) const ROWS: Rows =
    &[("Cast", |c| cast(c, ElementType::numbered(c.int("to", 1)?)?)), ("CastLike", |c| cast(c, c.kind(1)))];

fn cast(c: &Call, to: ElementType) -> Result<Outputs> {
    let x = c.x(0)?;
    if x.dtype() == to.held_as() && c.kind(0) == to {
        return Ok(vec![Value::from(x).of_kind(to)]);
    }
    let y = match (to.held_as(), x.dtype()) {
        // A device without 64 bits has 32.
        (DType::I64, _) => x.try_to_dtype(DType::I64).or_else(|_| x.try_to_dtype(DType::I32))?,
        (DType::F64, _) => x.try_to_dtype(DType::F64).or_else(|_| x.try_to_dtype(DType::F32))?,
        // A float's bits are cut as those of an integer.
        (DType::U8, dtype) if dtype.is_float() => x.try_to_dtype(DType::I32)?.try_to_dtype(DType::U8)?,
        (held, _) => x.try_to_dtype(held)?,
    };
    Ok(vec![Value::from(to.wrap(y)?).of_kind_if_held(to)])
}
