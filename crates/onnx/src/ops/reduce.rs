//! Folding axes, and what runs along one.

use super::Rows;
use crate::call::{Call, Outputs, one};
use volta::{DType, Result, Tensor};

pub(super) const ROWS: Rows = &[
    ("ReduceSum", |c| reduce(c, 13, |x, axes| x.try_sum_dim(axes, true))),
    ("ReduceMean", |c| reduce(c, 18, |x, axes| floats(x)?.try_mean_dim(axes, true))),
    ("ReduceProd", |c| reduce(c, 18, |x, axes| x.try_prod_dim(axes, true))),
    ("ReduceMax", |c| reduce(c, 18, |x, axes| extreme(x, axes, true))),
    ("ReduceMin", |c| reduce(c, 18, |x, axes| extreme(x, axes, false))),
    ("ReduceL1", |c| reduce(c, 18, |x, axes| x.try_abs()?.try_sum_dim(axes, true))),
    ("ReduceL2", |c| reduce(c, 18, |x, axes| floats(x)?.try_square()?.try_sum_dim(axes, true)?.try_sqrt())),
    ("ReduceLogSum", |c| reduce(c, 18, |x, axes| floats(x)?.try_sum_dim(axes, true)?.try_log())),
    ("ReduceLogSumExp", |c| reduce(c, 18, |x, axes| floats(x)?.try_logsumexp(axes, true))),
    ("ReduceSumSquare", |c| reduce(c, 18, |x, axes| x.try_square()?.try_sum_dim(axes, true))),
    ("ArgMax", |c| arg(c, true)),
    ("ArgMin", |c| arg(c, false)),
    ("CumSum", |c| cumulative(c, |x, axis| x.try_cumsum(axis), 0)),
    ("CumProd", |c| cumulative(c, |x, axis| x.try_cumprod(axis), 1)),
];

fn floats(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_float() {
        Ok(x.clone())
    } else {
        x.try_to_dtype(DType::F64).or_else(|_| x.try_to_dtype(DType::F32))
    }
}

fn extreme(x: &Tensor, axes: &[isize], max: bool) -> Result<Tensor> {
    if x.numel() == 0 {
        // Of nothing it is what every number beats.
        let zeros = x.try_sum_dim(axes, true)?;
        let (least, most) = match x.dtype() {
            dtype if dtype.is_float() => (f64::NEG_INFINITY, f64::INFINITY),
            dtype => (dtype.nearest(i64::MIN) as f64, dtype.nearest(i64::MAX) as f64),
        };
        return zeros.try_to_dtype(DType::F64)?.try_add(if max { least } else { most });
    }
    let x = if x.dtype() == DType::Bool { x.try_to_dtype(DType::I32)? } else { x.clone() };
    if max { x.try_max_dim(axes, true) } else { x.try_min_dim(axes, true) }
}

/// Reduces the axes that an attribute names, or an input since version `since` of the operators.
fn reduce(c: &Call, since: i64, f: impl Fn(&Tensor, &[isize]) -> Result<Tensor>) -> Result<Outputs> {
    let x = c.x(0)?;
    let axes = if c.opset >= since { c.maybe_ints(1)? } else { c.int_list("axes")? };
    let axes: Vec<isize> = axes.unwrap_or_default().iter().map(|&axis| axis as isize).collect();
    if axes.is_empty() && c.flag("noop_with_empty_axes", false)? {
        // The function of one element.
        let apart = x.try_unsqueeze(-1)?;
        return one(if c.node.op == "ReduceSum" {
            x
        } else {
            f(&apart, &[-1])?.try_squeeze(-1)?.try_to_dtype(x.dtype())?
        });
    }
    let axes = if axes.is_empty() { (0..x.rank() as isize).collect() } else { axes };
    let mut y = f(&x, &axes)?;
    if !c.flag("keepdims", true)? {
        let mask = x.shape().axes(&axes)?;
        y = y.try_reshape(x.shape().without(mask))?;
    }
    one(y.try_to_dtype(x.dtype())?)
}

fn arg(c: &Call, max: bool) -> Result<Outputs> {
    let (x, axis, keep) = (c.x(0)?, c.axis(0)?, c.flag("keepdims", true)?);
    let last = c.flag("select_last_index", false)?;
    let seen = if last { x.try_flip([axis])? } else { x.clone() };
    let place = if max { seen.try_argmax_dim(axis, keep)? } else { seen.try_argmin_dim(axis, keep)? };
    let place = if last { place.try_neg()?.try_add(x.size(axis) as i64 - 1)? } else { place };
    one(c.positions(place))
}

fn cumulative(c: &Call, f: impl Fn(&Tensor, isize) -> Result<Tensor>, start: i64) -> Result<Outputs> {
    let (x, axis) = (c.x(0)?, c.int_at(1)? as isize);
    let (exclusive, reverse) = (c.flag("exclusive", false)?, c.flag("reverse", false)?);
    let mut y = if reverse { x.try_flip([axis])? } else { x.clone() };
    if exclusive && x.size(axis) > 0 {
        let k = x.shape().axis(axis)?;
        let mut pads = vec![(0, 0); x.rank()];
        pads[k].0 = 1;
        y = y.try_pad(&pads, start)?.try_narrow(axis, 0, x.size(axis))?;
    }
    y = f(&y, axis)?;
    one(if reverse { y.try_flip([axis])? } else { y }.try_to_dtype(x.dtype())?)
}
