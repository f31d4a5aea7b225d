//! The table of operators: each file has the rows of one family.

mod activation;
mod attention;
mod control;
mod conv;
mod convert;
mod elementwise;
mod fourier;
mod index;
mod join;
mod loss;
mod movement;
mod norm;
mod pad;
mod pool;
mod product;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod resize;
mod sample;
mod select;
mod shape;

use crate::call::{Call, Operator};
use crate::protobuf::NodeProto;
use std::collections::HashMap;
use std::sync::OnceLock;
use volta::Result;
use volta_ir::bail;

/// Rows of a family.
type Rows = &'static [(&'static str, Operator)];

const FAMILIES: [Rows; 23] = [
    activation::ROWS,
    attention::ROWS,
    control::ROWS,
    conv::ROWS,
    convert::ROWS,
    elementwise::ROWS,
    fourier::ROWS,
    index::ROWS,
    join::ROWS,
    loss::ROWS,
    movement::ROWS,
    norm::ROWS,
    pad::ROWS,
    pool::ROWS,
    product::ROWS,
    quantize::ROWS,
    random::ROWS,
    recurrent::ROWS,
    reduce::ROWS,
    resize::ROWS,
    sample::ROWS,
    select::ROWS,
    shape::ROWS,
];

/// How a node is computed, if Volta has its operator.
pub(crate) fn find(node: &NodeProto) -> Option<Operator> {
    static TABLE: OnceLock<HashMap<&'static str, Operator>> = OnceLock::new();
    let table = TABLE.get_or_init(|| FAMILIES.iter().flat_map(|rows| rows.iter().copied()).collect());
    if node.domain.is_empty() { table.get(node.op.as_str()).copied() } else { None }
}

/// How many axes the first inputs of an operator have at least.
fn least_ranks(op: &str) -> &'static [usize] {
    match op {
        "Conv" | "ConvTranspose" | "ConvInteger" | "CausalConvWithState" => &[3, 3],
        "QLinearConv" => &[3, 0, 0, 3],
        "MaxPool" | "AveragePool" | "LpPool" | "MaxUnpool" | "STFT" => &[3],
        "GlobalAveragePool"
        | "GlobalMaxPool"
        | "GlobalLpPool"
        | "BatchNormalization"
        | "LRN"
        | "EyeLike"
        | "Det"
        | "InstanceNormalization"
        | "GroupNormalization"
        | "Trilu"
        | "Col2Im"
        | "DFT" => &[2],
        "RNN" | "GRU" | "LSTM" => &[3, 3, 3],
        "Attention" => &[3, 3, 3, 1],
        "RotaryEmbedding" => &[3, 2, 2],
        "GridSample" => &[3, 3],
        "AffineGrid" => &[3],
        "RoiAlign" => &[4, 2],
        "TensorScatter" => &[2, 2],
        "NonMaxSuppression" => &[3, 3],
        "MatMul" | "MatMulInteger" => &[1],
        "Gemm" | "ReverseSequence" => &[2],
        _ => &[],
    }
}

/// An error if an input has fewer axes than its operator looks at.
pub(crate) fn check_ranks(call: &Call) -> Result<()> {
    for (k, &least) in least_ranks(&call.node.op).iter().enumerate() {
        if let Some(value) = call.value(k)
            && value.tensor.rank() < least
        {
            bail!(Shape, "input {k} has shape {}: at least {least} axes are needed", value.tensor.shape());
        }
    }
    Ok(())
}

/// The names of all operators that Volta has, in order.
pub fn operators() -> Vec<&'static str> {
    let mut names: Vec<_> = FAMILIES.iter().flat_map(|rows| rows.iter().map(|row| row.0)).collect();
    names.sort_unstable();
    names
}

/// Positions counted from the beginning of an axis of this extent.
fn index_from_start(index: &volta::Tensor, extent: i64) -> volta::Result<volta::Tensor> {
    index.try_lt(0)?.try_where_(&index.try_add(extent)?, index)
}
