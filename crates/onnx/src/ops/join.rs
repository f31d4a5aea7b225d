//! Parts and wholes.

use super::Rows;
use crate::call::{Call, Outputs, list_length, one, size};
use crate::value::Value;
use volta::{Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("Concat", |c| {
        let (all, axis) = (c.all()?, c.axis(if c.opset < 4 { 1 } else { 0 })?);
        // Empty vectors, as exporters write them, add nothing.
        let parts: Vec<_> = all
            .iter()
            .filter(|t| t.rank() != 1 || t.numel() > 0 || all.iter().all(|t| t.rank() == 1))
            .collect();
        let parts: Vec<Tensor> = parts.into_iter().cloned().collect();
        one(Tensor::try_cat(&parts, axis)?)
    }),
    ("Split", split),
    ("Tile", |c| {
        let times = c.ints(1)?.into_iter().map(size).collect::<Result<Vec<_>>>()?;
        one(c.x(0)?.try_repeat(&times)?)
    }),
    ("Expand", |c| {
        let (x, wanted) = (c.x(0)?, c.ints(1)?.into_iter().map(size).collect::<Result<Vec<_>>>()?);
        let shape = x.shape().broadcast(&volta::Shape::new(&wanted)?)?;
        one(x.try_expand(shape)?)
    }),
];

fn split(c: &Call) -> Result<Outputs> {
    let (x, axis) = (c.x(0)?, c.axis(0)?);
    let extent = x.shape().try_size(axis)?;
    let sizes = match c.ints_of("split", 1)? {
        Some(list) => list.into_iter().map(size).collect::<Result<Vec<_>>>()?,
        None => {
            let parts = list_length(c.int("num_outputs", c.node.outputs.len() as i64)?)?;
            if parts == 0 {
                bail!(Data, "it has no outputs");
            }
            // The last part may be smaller.
            let each = extent.div_ceil(parts);
            (0..parts).map(|k| each.min(extent.saturating_sub(k * each))).collect()
        }
    };
    Ok(x.try_split_sizes(&sizes, axis)?.into_iter().map(Value::from).collect())
}
