//! Arithmetic, comparisons and functions of single elements.

use super::Rows;
use crate::call::{Call, Outputs, one};
use crate::value::Value;
use volta::{DType, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("Abs", |c| one(c.x(0)?.try_abs()?)),
    ("Neg", |c| wrapped(c, c.x(0)?.try_neg()?)),
    ("Sign", |c| one(c.x(0)?.try_sign()?)),
    ("Floor", |c| one(c.x(0)?.try_floor()?)),
    ("Ceil", |c| one(c.x(0)?.try_ceil()?)),
    ("Round", |c| one(c.x(0)?.try_round()?)),
    ("Reciprocal", |c| one(c.x(0)?.try_recip()?)),
    ("Sqrt", |c| one(c.x(0)?.try_sqrt()?)),
    ("Exp", |c| one(c.x(0)?.try_exp()?)),
    ("Log", |c| one(c.x(0)?.try_log()?)),
    ("Erf", |c| one(c.x(0)?.try_erf()?)),
    ("Sin", |c| one(c.x(0)?.try_sin()?)),
    ("Cos", |c| one(c.x(0)?.try_cos()?)),
    ("Tan", |c| one(c.x(0)?.try_tan()?)),
    ("Asin", |c| one(asin(&c.x(0)?)?)),
    ("Acos", |c| one(asin(&c.x(0)?)?.try_neg()?.try_add(std::f64::consts::FRAC_PI_2)?)),
    ("Atan", |c| one(atan(&c.x(0)?)?)),
    ("Sinh", |c| {
        let t = c.x(0)?.try_expm1()?;
        one(t.try_add(&t.try_div(&t.try_add(1)?)?)?.try_div(2)?)
    }),
    ("Cosh", |c| {
        let x = c.x(0)?;
        one(x.try_exp()?.try_add(&x.try_neg()?.try_exp()?)?.try_div(2)?)
    }),
    ("Asinh", |c| {
        let x = c.x(0)?;
        let a = x.try_abs()?;
        one(a.try_add(&a.try_square()?.try_add(1)?.try_sqrt()?)?.try_log()?.try_mul(&x.try_sign()?)?)
    }),
    ("Acosh", |c| {
        let x = c.x(0)?;
        one(x.try_add(&x.try_square()?.try_sub(1)?.try_sqrt()?)?.try_log()?)
    }),
    ("Atanh", |c| {
        let x = c.x(0)?;
        let quotient = x.try_mul(2)?.try_div(&x.try_neg()?.try_add(1)?)?;
        one(quotient.try_log1p()?.try_div(2)?)
    }),
    ("IsNaN", |c| one(c.x(0)?.try_isnan()?)),
    ("IsInf", is_inf),
    ("Not", |c| one(c.x(0)?.try_logical_not()?)),
    ("And", |c| one(c.x(0)?.try_logical_and(&c.x(1)?)?)),
    ("Or", |c| one(c.x(0)?.try_logical_or(&c.x(1)?)?)),
    ("Xor", |c| one(c.x(0)?.try_logical_xor(&c.x(1)?)?)),
    ("Add", |c| wrapped(c, c.x(0)?.try_add(&c.x(1)?)?)),
    ("Sub", |c| wrapped(c, c.x(0)?.try_sub(&c.x(1)?)?)),
    ("Mul", |c| wrapped(c, c.x(0)?.try_mul(&c.x(1)?)?)),
    ("Div", |c| one(divide(&c.x(0)?, &c.x(1)?)?)),
    ("Mod", |c| {
        let (a, b) = (c.x(0)?, c.x(1)?);
        if !c.flag("fmod", false)? {
            return one(a.try_remainder(&b)?);
        }
        if a.dtype().is_float() {
            // The quotient's integer part takes as many bits as the quotient has.
            let r = a.try_abs()?.try_remainder(&b.try_abs()?)?;
            return one(a.try_lt(0)?.try_where_(&r.try_neg()?, &r)?);
        }
        one(a.try_sub(&divide(&a, &b)?.try_mul(&b)?)?)
    }),
    ("Pow", |c| {
        let (x, y) = (c.x(0)?, c.x(1)?);
        let dtype = x.dtype();
        let kind = if dtype.is_float() || !y.dtype().is_float() { dtype } else { DType::F32 };
        one(x.try_to_dtype(kind)?.try_pow(&y.try_to_dtype(kind)?)?.try_to_dtype(dtype)?)
    }),
    ("Equal", |c| one(c.x(0)?.try_eq(&c.x(1)?)?)),
    ("Less", |c| one(c.x(0)?.try_lt(&c.x(1)?)?)),
    ("LessOrEqual", |c| one(c.x(0)?.try_le(&c.x(1)?)?)),
    ("Greater", |c| one(c.x(0)?.try_gt(&c.x(1)?)?)),
    ("GreaterOrEqual", |c| one(c.x(0)?.try_ge(&c.x(1)?)?)),
    ("Where", |c| Ok(vec![Value::from(c.x(0)?.try_where_(&c.x(1)?, &c.x(2)?)?).of_kind_if_held(c.kind(1))])),
    ("Max", |c| one(fold(c, |a, b| a.try_maximum(&b))?)),
    ("Min", |c| one(fold(c, |a, b| a.try_minimum(&b))?)),
    ("Sum", |c| one(fold(c, |a, b| a.try_add(&b))?)),
    ("Mean", |c| one(fold(c, |a, b| a.try_add(&b))?.try_div(c.count() as f64)?)),
    ("Clip", clip),
    ("BitwiseAnd", |c| one(c.x(0)?.try_bitwise_and(&c.x(1)?)?)),
    ("BitwiseOr", |c| one(c.x(0)?.try_bitwise_or(&c.x(1)?)?)),
    ("BitwiseXor", |c| one(c.x(0)?.try_bitwise_xor(&c.x(1)?)?)),
    ("BitwiseNot", |c| wrapped(c, c.x(0)?.try_bitwise_not()?)),
    ("BitShift", bit_shift),
];

/// Results that may leave a type which a wider one holds.
fn wrapped(c: &Call, x: Tensor) -> Result<Outputs> {
    let kind = c.kind(0);
    Ok(vec![Value::from(kind.wrap(x)?).of_kind_if_held(kind)])
}

/// A quotient; of integers it is cut, not rounded down.
pub(super) fn divide(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.dtype().is_float() {
        return a.try_div(b);
    }
    if matches!(a.dtype(), DType::U8 | DType::U32) {
        return a.try_floor_divide(b);
    }
    let whole = a.try_abs()?.try_floor_divide(&b.try_abs()?)?;
    whole.try_mul(&a.try_sign()?.try_mul(&b.try_sign()?)?)
}

fn fold(c: &Call, f: impl Fn(Tensor, Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let mut all = c.all()?.into_iter();
    let Some(first) = all.next() else { bail!(Data, "there is no input") };
    all.try_fold(first, f)
}

fn is_inf(c: &Call) -> Result<Outputs> {
    let x = c.x(0)?;
    let (above, below) = (c.flag("detect_positive", true)?, c.flag("detect_negative", true)?);
    one(match (above, below) {
        (true, true) => x.try_abs()?.try_eq(f64::INFINITY)?,
        (true, false) => x.try_eq(f64::INFINITY)?,
        (false, true) => x.try_eq(f64::NEG_INFINITY)?,
        (false, false) => x.try_ne(&x)?.try_logical_and(&x.try_eq(&x)?)?,
    })
}

fn clip(c: &Call) -> Result<Outputs> {
    let mut x = c.x(0)?;
    let dtype = x.dtype();
    if c.opset < 11 {
        return one(x.try_clamp(c.maybe_float("min")?, c.maybe_float("max")?)?);
    }
    // What is cut off at both ends at once is a node less, and the numbers are in the file.
    if dtype.is_float() && (1..3).all(|k| c.value(k).is_none_or(|v| v.known)) {
        let bound = |k| if c.has(k) { c.float_at(k).map(Some) } else { Ok(None) };
        let (least, most): (Option<f64>, Option<f64>) = (bound(1)?, bound(2)?);
        if least.unwrap_or(f64::NEG_INFINITY) <= most.unwrap_or(f64::INFINITY) {
            return one(if least.is_none() && most.is_none() { x } else { x.try_clamp(least, most)? });
        }
    }
    if let Some(least) = c.maybe(1)? {
        x = x.try_maximum(&least.try_to_dtype(dtype)?)?;
    }
    if let Some(most) = c.maybe(2)? {
        x = x.try_minimum(&most.try_to_dtype(dtype)?)?;
    }
    one(x)
}

fn bit_shift(c: &Call) -> Result<Outputs> {
    let (x, places) = (c.x(0)?, c.x(1)?);
    let wide = |t: &Tensor| t.try_to_dtype(DType::I64);
    // Where fewer than none or all bits are shifted out, the sign is left.
    let (least, most) = c.kind(0).limits();
    let bits = i64::from((most.wrapping_sub(least) as u64).count_ones());
    let (x64, places) = (wide(&x)?, wide(&places)?);
    let inside = places.try_ge(0)?.try_logical_and(&places.try_lt(bits)?)?;
    let factor = places.try_mul(0)?.try_add(2)?.try_pow(&places.try_maximum(0)?.try_minimum(62)?)?;
    let shifted = if c.text("direction", "")? == "LEFT" {
        inside.try_where_(&x64.try_mul(&factor)?, &x64.try_mul(0)?)?
    } else {
        let sign = x64.try_lt(0)?.try_to_dtype(DType::I64)?.try_neg()?;
        inside.try_where_(&x64.try_floor_divide(&factor)?, &sign)?
    };
    wrapped(c, shifted.try_to_dtype(x.dtype())?)
}

/// The angle of a tangent, by the polynomial of Cephes.
pub(super) fn atan(x: &Tensor) -> Result<Tensor> {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};
    let a = x.try_abs()?;
    let (large, middle) = (a.try_gt(2.414_213_562_373_095)?, a.try_gt(0.414_213_562_373_095_03)?);
    let folded = a.try_sub(1)?.try_div(&a.try_add(1)?)?;
    let y = large.try_where_(&a.try_recip()?.try_neg()?, &middle.try_where_(&folded, &a)?)?;
    let base = large
        .try_where_(FRAC_PI_2, &middle.try_where_(FRAC_PI_4, &a.try_mul(0)?.try_to_dtype(x.dtype())?)?)?;
    let base = large.try_where_(FRAC_PI_2, &base)?;
    let z = y.try_square()?;
    let mut p = z.try_mul(8.053_744_495_38e-2)?;
    for term in [-1.387_768_560_32e-1, 1.997_771_064_78e-1, -3.333_294_915_39e-1] {
        p = p.try_add(term)?;
        p = p.try_mul(&z)?;
    }
    base.try_add(&p.try_mul(&y)?)?.try_add(&y)?.try_mul(&x.try_sign()?)?.try_to_dtype(x.dtype())
}

fn asin(x: &Tensor) -> Result<Tensor> {
    let other = x.try_neg()?.try_add(1)?.try_mul(&x.try_add(1)?)?.try_sqrt()?;
    atan(&x.try_div(&other)?)
}
