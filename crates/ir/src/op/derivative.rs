//! What the table of derivatives (`autograd/derivatives.rs`) holds and looks at, for whoever only asks that.

use super::{BinaryOp as B, Op, ReduceOp, Saved};

/// Whether a float result of this op can be differentiated.
pub fn exists(op: &Op) -> bool {
    !matches!(op, Op::Binary(B::FloorDiv) | Op::FusedElementwise(_))
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
        Op::Binary(B::Mul | B::Max | B::Min | B::Mod) => (false, 0b11),
        Op::Binary(B::Div) => (true, 0b10),
        Op::Binary(B::Pow) => (true, 0b11),
        Op::Where | Op::ScatterAdd { .. } => (false, 0b1),
        Op::Gather { .. } => (false, 0b10),
        Op::Reduce { op: ReduceOp::Max | ReduceOp::Min | ReduceOp::Prod, .. } => (true, 0b1),
        Op::Matmul | Op::Conv(..) => (false, 0b11),
        Op::Attention { .. } | Op::AttentionGrad { .. } => (true, u8::MAX),
        Op::Custom(_) => (true, 0),
        _ => (false, 0),
    }
}
