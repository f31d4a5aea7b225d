//! Values of long rows that are computed together with those they are made of, in one pass over a block. A pass
//! costs a dispatch, and its results a way through the cache, which is more than the arithmetic of most ops.

use smallvec::{SmallVec, smallvec};
use volta_ir::dtype::DType;
use volta_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use volta_ir::plan::kernel::{Instruction, LoopLevel, Step, Value};

/// How a value is computed otherwise than by its own step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// e^(x − shift), and the sum of that, for the reduction that wants it.
    ExpShifted { x: Value, shift: Value, sum: Option<Value> },
    /// (x − shift)·scale.
    ShiftedScaled { x: Value, shift: Value, scale: Value },
    /// A sum that comes with the values it is made of.
    SumWith(Value),
    /// The sum of (x − shift)².
    SumSquares { x: Value, shift: Value },
    /// The sum of a·b.
    SumProducts(Value, Value),
}

impl Joint {
    fn reads(self) -> SmallVec<[Value; 3]> {
        match self {
            Joint::ExpShifted { x, shift, .. } | Joint::SumSquares { x, shift } => smallvec![x, shift],
            Joint::ShiftedScaled { x, shift, scale } => smallvec![x, shift, scale],
            Joint::SumWith(of) => smallvec![of],
            Joint::SumProducts(a, b) => smallvec![a, b],
        }
    }
}

/// What every value is computed from, and how, where that is not its step. Only blocks within one row can be
/// computed so (`in_long_rows`): what belongs to the row is then one number.
pub(super) fn find(
    code: &[Instruction],
    in_long_rows: bool,
) -> (Vec<Option<Joint>>, Vec<SmallVec<[Value; 3]>>) {
    let mut joint = vec![None; code.len()];
    if in_long_rows {
        let mut readers = vec![0; code.len()];
        code.iter().flat_map(|i| i.step.operands()).for_each(|o| readers[o] += 1);
        for (v, joint) in joint.iter_mut().enumerate() {
            *joint = of_value(code, v).or_else(|| of_sum(code, v, &readers));
        }
        for (v, instruction) in code.iter().enumerate() {
            let Step::Reduce(ReduceOp::Sum, of) = instruction.step else { continue };
            if let Some(Joint::ExpShifted { sum: sum @ None, .. }) = &mut joint[of] {
                *sum = Some(v);
                joint[v] = Some(Joint::SumWith(of));
            }
        }
    }
    let reads = (0..code.len()).map(|v| joint[v].map_or_else(|| code[v].step.operands(), Joint::reads));
    let reads = reads.collect();
    (joint, reads)
}

fn is_full(i: &Instruction) -> bool {
    i.rank == LoopLevel::Full && i.dtype == DType::F32
}

fn is_number(i: &Instruction) -> bool {
    matches!(i.rank, LoopLevel::Row | LoopLevel::Uniform) && i.dtype == DType::F32
}

/// x and m of a value x − m that has its own m in every row.
fn shifted(code: &[Instruction], v: Value) -> Option<(Value, Value)> {
    match code[v].step {
        Step::Binary(BinaryOp::Sub, x, m) if is_full(&code[x]) && is_number(&code[m]) => Some((x, m)),
        _ => None,
    }
}

fn of_value(code: &[Instruction], v: Value) -> Option<Joint> {
    if !is_full(&code[v]) {
        return None;
    }
    match code[v].step {
        Step::Unary(UnaryOp::Exp, d) => {
            let (x, shift) = shifted(code, d)?;
            Some(Joint::ExpShifted { x, shift, sum: None })
        }
        Step::Binary(BinaryOp::Mul, d, scale) if is_number(&code[scale]) => {
            let (x, shift) = shifted(code, d)?;
            Some(Joint::ShiftedScaled { x, shift, scale })
        }
        _ => None,
    }
}

fn of_sum(code: &[Instruction], v: Value, readers: &[usize]) -> Option<Joint> {
    let Step::Reduce(ReduceOp::Sum, product) = code[v].step else { return None };
    let Step::Binary(BinaryOp::Mul, a, b) = code[product].step else { return None };
    if !is_full(&code[product]) {
        return None;
    }
    match shifted(code, a) {
        Some((x, shift)) if a == b => Some(Joint::SumSquares { x, shift }),
        _ if is_full(&code[a]) && is_full(&code[b]) && readers[product] == 1 => {
            Some(Joint::SumProducts(a, b))
        }
        _ => None,
    }
}
