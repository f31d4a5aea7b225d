//! Losses.

use super::Rows;
use crate::call::Call;
use crate::value::Value;
use volta::{Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("NegativeLogLikelihoodLoss", |c| Ok(vec![Value::from(likelihood(c, &c.x(0)?)?)])),
    ("SoftmaxCrossEntropyLoss", |c| {
        let logs = c.x(0)?.try_log_softmax(1)?;
        Ok(vec![likelihood(c, &logs)?.into(), logs.into()])
    }),
];

/// The loss of logarithms of probabilities along axis 1, for the classes in input 1.
fn likelihood(c: &Call, logs: &Tensor) -> Result<Tensor> {
    let (classes, target) = (logs.shape().try_size(1)? as i64, c.x(1)?);
    let ignored = c.maybe_int("ignore_index")?;
    let counts = ignored.map(|ignored| target.try_ne(ignored)).transpose()?;
    let safe = match &counts {
        Some(counts) => counts.try_where_(&target, target.zeros_like())?,
        None => target,
    };
    let safe = super::index_from_start(&safe, classes)?;
    let picked = logs.try_gather(1, &safe.try_unsqueeze(1)?)?.try_squeeze(1)?.try_neg()?;
    let mut weight = match c.maybe(2)? {
        Some(weights) => {
            let flat = weights.try_index_select(0, &safe.try_reshape([safe.numel()])?)?;
            Some(flat.try_reshape(safe.shape())?)
        }
        None => None,
    };
    if let Some(counts) = counts {
        let one = counts.try_to_dtype(logs.dtype())?;
        weight = Some(match weight {
            Some(weight) => weight.try_mul(&one)?,
            None => one,
        });
    }
    let loss = match &weight {
        Some(weight) => picked.try_mul(weight)?,
        None => picked,
    };
    match (c.text("reduction", "mean")?.as_str(), weight) {
        ("none", _) => Ok(loss),
        ("sum", _) => loss.try_sum(),
        ("mean", Some(weight)) => loss.try_sum()?.try_div(&weight.try_sum()?),
        ("mean", None) => loss.try_mean(),
        (other, _) => bail!(Data, "the reduction {other:?} is not known"),
    }
}
