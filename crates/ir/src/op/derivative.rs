//! What the table of derivatives (`autograd/derivatives.rs`) holds and looks at, for whoever only asks that.

use super::{BinaryOp, Op, ReduceOp, Saved};

/// Whether a float result of this op can be differentiated.
pub fn exists(op: &Op) -> bool {
    !matches!(op, Op::Binary(BinaryOp::FloorDiv) | Op::FusedElementwise(_))
}

/// What the rule of an op looks at: whether at its result, and at which sources, one bit each. Who knows what a user's
/// own function looks at besides its result: its inputs are kept if others need them.
pub fn needs(op: &Op) -> (bool, u8) {
    match op {
        Op::Unary(op) => match op.saved() {
            Saved::Nothing => (false, 0),
            Saved::Operand => (false, 0b1),
            Saved::Result => (true, 0),
        },
        Op::Binary(op) => op.saved(),
        Op::Native(op) => op.saved(),
        Op::Where => (false, 0b1),
        Op::Gather { .. } => (false, 0b10),
        Op::Reduce { op: ReduceOp::Max | ReduceOp::Min | ReduceOp::Prod, .. } => (true, 0b1),
        Op::Custom(_) => (true, 0),
        _ => (false, 0),
    }
}
