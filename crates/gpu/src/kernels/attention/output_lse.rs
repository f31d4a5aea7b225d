//! The forward pass's result: the rows of all heads side by side, and behind them the log-sum-exp of every query. In f16
//! this is a 64th of it, for the range of f16 is small, and 2048 times what that number is short of: 22 bits in all. With a mask
//! there is one number more: what weights that are computed from the log-sum-exp must be multiplied by. It is nearly 1, but
//! where a mask hides a whole row by a large number: the log-sum-exp has no digits left then for the logarithm of the sum.

use super::problem::Problem;
use super::view::{OperandTile, View, result};
use crate::dispatch::Binding;
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::Operand;

/// Where the forward pass writes.
pub(super) struct Packed {
    pub rows: OperandTile,
    lse: OperandTile,
    dtype: DType,
    masked: bool,
}

/// Numbers that a log-sum-exp takes.
fn of_lse(dtype: DType) -> usize {
    if dtype == DType::F16 { 2 } else { 1 }
}

/// Numbers that are kept of each query.
fn each(p: &Problem, dtype: DType) -> usize {
    of_lse(dtype) + usize::from(p.mask.is_some())
}

impl Packed {
    pub fn new(p: &Problem, output: &Operand) -> Packed {
        let start = output.offset as usize;
        let behind = start + p.items() * p.queries * p.value_width;
        Packed {
            rows: OperandTile::new("result", start, p.queries, p.value_width).side_by_side(p.heads),
            lse: OperandTile::new("result", behind, p.queries, each(p, output.dtype)),
            dtype: output.dtype,
            masked: p.mask.is_some(),
        }
    }

    pub fn binding(&self) -> Binding {
        result(self.dtype, &[&self.rows])
    }

    /// Stores the log-sum-exp of a query, `peak` + log(`total`), or -inf if it sees `nothing`.
    pub fn store_lse(&self, row: &str, [peak, total]: [&str; 2], nothing: &str) -> String {
        let at = |col: usize| self.lse.at(row, &format!("{col}u"));
        let value = format!("{peak} + log({total})");
        let mut text = match (self.dtype, self.masked) {
            (DType::F16, _) => format!(
                r"let lse_part = clamp(({value}) / 64.0, -65504.0, 65504.0);
let lse_high = quantizeToF16(lse_part);
store_result({}, select(lse_high, hidden, {nothing}));
store_result({}, select((lse_part - lse_high) * 2048.0, 0.0, {nothing}));
",
                at(0),
                at(1)
            ),
            (_, false) => format!("store_result({}, select({value}, hidden, {nothing}));\n", at(0)),
            (_, true) => {
                format!("let lse = {value};\nstore_result({}, select(lse, hidden, {nothing}));\n", at(0))
            }
        };
        if self.masked {
            // What was rounded must stay so: a driver may take (a + b) - a for b, but not where a maximum stands between. The sum
            // is at least 1.
            let kept = match self.dtype {
                DType::F16 => {
                    "(lse_high + quantizeToF16((lse_part - lse_high) * 2048.0) / 2048.0) * 64.0".to_string()
                }
                _ => format!("max(lse, {peak})"),
            };
            let share = at(of_lse(self.dtype));
            // Out of the range of f16 the weights are 0, whatever they are multiplied by.
            text += &format!(
                r"let lse_off = {kept} - {peak};
let lse_share = exp(min(lse_off, 80.0)) / {total};
store_result({share}, select(lse_share, 1.0, {nothing} || lse_off > 80.0));
"
            );
        }
        text
    }
}

/// The rows and the log-sum-exps of operand `number`, which is such a result.
pub(super) fn views(p: &Problem, number: usize, operand: &Operand) -> [View; 2] {
    let rows = [p.batch, p.heads, p.queries, p.value_width];
    let each = [p.batch, p.heads, p.queries, each(p, operand.dtype)];
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
