//! Integers of 8 and 16 bits that stand for floats.

use super::Rows;
use super::product::exact;
use crate::call::{Call, Outputs, one, size};
use crate::element::ElementType;
use crate::value::Value;
use volta::{ConvOptions, DType, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("QuantizeLinear", |c| {
        let kind = match (c.has(2), c.int("output_dtype", 0)?) {
            (true, _) => c.kind(2),
            (false, 0) => ElementType::U8,
            (false, number) => ElementType::numbered(number)?,
        };
        let (x, scale) = (c.x(0)?, c.x(1)?);
        let (scale, zero) =
            (spread(c, &x, &scale)?, c.maybe(2)?.map(|zero| spread(c, &x, &zero)).transpose()?);
        quantized(&x.try_to_dtype(DType::F32)?, &scale.try_to_dtype(DType::F32)?, zero.as_ref(), kind)
    }),
    ("DequantizeLinear", |c| {
        let (x, scale) = (c.x(0)?, c.x(1)?);
        let dtype = scale.dtype();
        let mut y = x.try_to_dtype(DType::F32)?;
        if let Some(zero) = c.maybe(2)? {
            y = y.try_sub(&spread(c, &x, &zero)?.try_to_dtype(DType::F32)?)?;
        }
        one(y.try_mul(&spread(c, &x, &scale)?.try_to_dtype(DType::F32)?)?.try_to_dtype(dtype)?)
    }),
    ("DynamicQuantizeLinear", |c| {
        let x = c.x(0)?;
        let (most, least) = (x.try_max()?.try_maximum(0.0)?, x.try_min()?.try_minimum(0.0)?);
        let scale = most.try_sub(&least)?.try_div(255.0)?;
        let zero = least.try_neg()?.try_div(&scale)?.try_round()?.try_clamp(Some(0.0), Some(255.0))?;
        let y = quantized(&x, &scale, Some(&zero), ElementType::U8)?;
        Ok(vec![y[0].clone(), scale.into(), zero.try_to_dtype(DType::I32)?.try_to_dtype(DType::U8)?.into()])
    }),
    ("MatMulInteger", |c| {
        let (a, b) = (centred(c, 0, 2, false)?, centred(c, 1, 3, true)?);
        one(a.try_matmul(&b)?.try_to_dtype(DType::I32)?)
    }),
    ("ConvInteger", |c| {
        let (x, w) = (centred(c, 0, 2, false)?, c.x(1)?);
        let w = match c.maybe(3)? {
            Some(zero) if zero.numel() > 1 => {
                exact(&w)?.try_sub(&exact(&zero)?.try_reshape([-1, 1, 1, 1])?)?
            }
            Some(zero) => exact(&w)?.try_sub(&exact(&zero)?.try_reshape([1usize; 0])?)?,
            None => exact(&w)?,
        };
        one(conv(c, &x, &w)?.try_to_dtype(DType::I32)?)
    }),
    ("QLinearMatMul", |c| {
        let kind = c.kind(7);
        let row = |t: Tensor| if t.numel() > 1 { t.try_unsqueeze(-1) } else { Ok(t) };
        let a = exact(&c.x(0)?)?.try_sub(&exact(&row(c.x(2)?)?)?)?.try_mul(&exact(&row(c.x(1)?)?)?)?;
        let b = exact(&c.x(3)?)?.try_sub(&exact(&c.x(5)?)?)?.try_mul(&exact(&c.x(4)?)?)?;
        quantized(&a.try_matmul(&b)?, &exact(&c.x(6)?)?, Some(&c.x(7)?), kind)
    }),
    ("QLinearConv", |c| {
        let kind = c.kind(7);
        let per_output =
            |t: Tensor| if t.numel() > 1 { t.try_reshape([-1, 1, 1, 1]) } else { t.try_reshape([1usize; 0]) };
        let x = exact(&c.x(0)?)?.try_sub(&exact(&c.x(2)?)?.try_reshape([1usize; 0])?)?;
        let w = exact(&c.x(3)?)?.try_sub(&exact(&per_output(c.x(5)?)?)?)?;
        let mut sums = conv(c, &x, &w)?;
        if let Some(bias) = c.maybe(8)? {
            sums = sums.try_add(&exact(&bias)?.try_reshape([1, -1, 1, 1])?)?;
        }
        let factor = exact(&c.x(4)?)?;
        let factor = if factor.numel() > 1 {
            factor.try_reshape([1, -1, 1, 1])?
        } else {
            factor.try_reshape([1usize; 0])?
        };
        let y = sums.try_mul(&factor)?.try_mul(&exact(&c.x(1)?)?.try_reshape([1usize; 0])?)?;
        quantized(
            &y,
            &exact(&c.x(6)?)?.try_reshape([1usize; 0])?,
            Some(&c.x(7)?.try_reshape([1usize; 0])?),
            kind,
        )
    }),
];

/// Scales or zero points in a view that meets `x`: one for all, one a channel, or one a block.
fn spread(c: &Call, x: &Tensor, t: &Tensor) -> Result<Tensor> {
    if t.numel() == 1 {
        return t.try_reshape([1usize; 0]);
    }
    let axis = x.shape().axis(c.axis(1)?)?;
    let block = size(c.int("block_size", 0)?)?;
    if block > 0 {
        return t.try_repeat_interleave(block, Some(axis as isize))?.try_narrow(
            axis as isize,
            0,
            x.shape()[axis],
        );
    }
    t.try_reshape(super::index::along(x.rank(), axis, t.numel()))
}

fn quantized(x: &Tensor, scale: &Tensor, zero: Option<&Tensor>, kind: ElementType) -> Result<Outputs> {
    let mut y = x.try_div(scale)?.try_round()?;
    if let Some(zero) = zero {
        y = y.try_add(&zero.try_to_dtype(y.dtype())?)?;
    }
    let (least, most) = kind.limits();
    let y = y
        .try_clamp(Some(least as f64), Some(most as f64))?
        .try_to_dtype(DType::I32)?
        .try_to_dtype(kind.held_as())?;
    Ok(vec![Value::from(y).of_kind(kind)])
}

/// An operand less its zero point, which may be one a row or column.
fn centred(c: &Call, k: usize, zero: usize, is_right: bool) -> Result<Tensor> {
    let x = exact(&c.x(k)?)?;
    let Some(zero) = c.maybe(zero)? else { return Ok(x) };
    let zero = exact(&zero)?;
    let zero = if zero.numel() == 1 {
        zero.try_reshape([1usize; 0])?
    } else if zero.rank() == 1 && !is_right {
        zero.try_unsqueeze(-1)?
    } else {
        zero
    };
    x.try_sub(&zero)
}

fn conv(c: &Call, x: &Tensor, w: &Tensor) -> Result<Tensor> {
    let window = super::conv::Window::of(c, w)?;
    let pads = window.pads(&x.shape()[2..]);
    if window.kernel.len() != 2 {
        bail!(Shape, "weights of shape {}: integers are convolved over two axes", w.shape());
    }
    let x = super::pad::padded(x, &[&[(0, 0), (0, 0)], &pads[..]].concat(), 0.0)?;
    let options = ConvOptions {
        stride: [window.stride[0], window.stride[1]],
        dilation: [window.dilation[0], window.dilation[1]],
        groups: window.groups,
        ..ConvOptions::default()
    };
    x.try_conv2d(w, None, options)
}
