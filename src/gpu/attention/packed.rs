//! The forward pass's result: the rows of all heads side by side, and behind them the log-sum-exp of every query. In f16
//! this is a 64th of it, for the range of f16 is small, and 2048 times what that number is short of: 22 bits in all.

use super::problem::Problem;
use super::view::{Piece, View, result};
use crate::dtype::DType;
use crate::gpu::dispatch::Binding;
use crate::plan::kernel::Operand;

/// Where the forward pass writes.
pub(super) struct Packed {
    pub rows: Piece,
    lse: Piece,
    dtype: DType,
}

/// Numbers that a log-sum-exp takes.
fn each(dtype: DType) -> usize {
    if dtype == DType::F16 { 2 } else { 1 }
}

impl Packed {
    pub fn new(p: &Problem, output: &Operand) -> Packed {
        let start = output.offset as usize;
        let behind = start + p.items() * p.queries * p.value_width;
        Packed {
            rows: Piece::new("result", start, p.queries, p.value_width).side_by_side(p.heads),
            lse: Piece::new("result", behind, p.queries, each(output.dtype)),
            dtype: output.dtype,
        }
    }

    pub fn binding(&self) -> Binding {
        result(self.dtype, &[&self.rows])
    }

    /// Stores the log-sum-exp `value` of a query, or -inf if it sees `nothing`.
    pub fn store_lse(&self, row: &str, value: &str, nothing: &str) -> String {
        let at = |col: &str| self.lse.at(row, col);
        if self.dtype != DType::F16 {
            return format!("store_result({}, select({value}, hidden, {nothing}));\n", at("0u"));
        }
        format!(
            r"let lse_part = clamp(({value}) / 64.0, -65504.0, 65504.0);
let lse_high = quantizeToF16(lse_part);
store_result({}, select(lse_high, hidden, {nothing}));
store_result({}, select((lse_part - lse_high) * 2048.0, 0.0, {nothing}));
",
            at("0u"),
            at("1u")
        )
    }
}

/// The rows and the log-sum-exps of operand `number`, which is such a result.
pub(super) fn views(p: &Problem, number: usize, operand: &Operand) -> [View; 2] {
    let rows = [p.batch, p.heads, p.queries, p.value_width];
    let each = [p.batch, p.heads, p.queries, each(operand.dtype)];
    [
        View::of_result(("forward", "out"), number, operand, rows),
        View::packed(("forward", "lse"), number, operand, each, rows.iter().product()),
    ]
}

/// The log-sum-exp of a query.
pub(super) fn lse(view: &View, row: &str) -> String {
    if view.dtype != DType::F16 {
        return view.element(row, "0u");
    }
    format!("(({} + {} / 2048.0) * 64.0)", view.element(row, "0u"), view.element(row, "1u"))
}
