//! Integers of 32 bits that stand for those of 64, on devices that have no i64. How far their numbers reach is known when they
//! are recorded, so that an op that could leave 32 bits is an error, and never a number that wrapped around.

use super::Node;
use crate::dtype::{DType, Scalar};
use crate::op::{BinaryOp as B, Op, ReduceOp, UnaryOp as U};
use crate::shape::Shape;
use std::sync::Arc;

/// The least and the most that the elements of a tensor may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRange {
    pub least: i64,
    pub most: i64,
}

impl IndexRange {
    /// Whatever an i32 holds.
    const ANY: IndexRange = IndexRange { least: i32::MIN as i64, most: i32::MAX as i64 };

    pub fn new(least: i64, most: i64) -> IndexRange {
        IndexRange { least, most }
    }

    pub fn fits_i32(self) -> bool {
        Self::ANY.least <= self.least && self.most <= Self::ANY.most
    }

    fn of(bounds: &[i64]) -> IndexRange {
        let bounds = bounds.iter().copied();
        bounds.map(|x| IndexRange::new(x, x)).reduce(IndexRange::or).unwrap_or(Self::ANY)
    }

    /// One of either.
    fn or(self, other: IndexRange) -> IndexRange {
        IndexRange::new(self.least.min(other.least), self.most.max(other.most))
    }

    /// The farthest from zero.
    fn size(self) -> i64 {
        self.least.saturating_abs().max(self.most.saturating_abs())
    }

    fn add(self, other: IndexRange) -> IndexRange {
        IndexRange::new(self.least.saturating_add(other.least), self.most.saturating_add(other.most))
    }

    fn negated(self) -> IndexRange {
        IndexRange::new(self.most.saturating_neg(), self.least.saturating_neg())
    }

    fn mul(self, other: IndexRange) -> IndexRange {
        let corner = |a: i64, b: i64| a.saturating_mul(b);
        IndexRange::of(&[
            corner(self.least, other.least),
            corner(self.least, other.most),
            corner(self.most, other.least),
            corner(self.most, other.most),
        ])
    }

    /// The sum of up to so many.
    fn times(self, count: usize) -> IndexRange {
        self.mul(IndexRange::new(0, i64::try_from(count).unwrap_or(i64::MAX)))
    }

    /// Up to so many of them multiplied.
    fn power(self, count: i64) -> IndexRange {
        let size = self.size().saturating_pow(u32::try_from(count.max(0)).unwrap_or(u32::MAX)).max(1);
        IndexRange::new(if self.least < 0 { -size } else { 0 }, size)
    }
}

/// How far a source reaches, whether it stands for 64 bits or not.
fn reach(node: &Arc<Node>) -> IndexRange {
    if let Some(&range) = node.index_range.get() {
        return range;
    }
    let extent = |k: usize| node.shape[k].saturating_sub(1) as i64;
    match &node.op {
        Op::Const(number @ (Scalar::Int(_) | Scalar::Bool(_))) => IndexRange::of(&[number.to_i64()]),
        Op::Iota { axis } => IndexRange::new(0, extent(*axis as usize)),
        Op::Cast | Op::Expand | Op::Reshape => match node.sources().first() {
            Some(source) => match source.dtype {
                DType::Bool => IndexRange::new(0, 1),
                DType::U8 => IndexRange::new(0, 255),
                DType::I32 => reach(source),
                _ => IndexRange::ANY,
            },
            None => IndexRange::ANY,
        },
        _ => IndexRange::ANY,
    }
}

/// How far the result of an op reaches, if it is made of integers that stand for 64 bits.
pub(crate) fn of(op: &Op, sources: &[Arc<Node>], shape: Shape, dtype: DType) -> Option<IndexRange> {
    // Conditions and positions decide which numbers are taken, and not what they are.
    let values = match op {
        Op::Gather { .. } => &sources[..1],
        Op::Where | Op::ScatterAdd { .. } => &sources[1..],
        Op::ArgReduce { .. } | Op::ArgSort { .. } | Op::FirstPosition | Op::MaxPoolIndex(_) => return None,
        _ => &sources[..op.value_sources(sources.len())],
    };
    if dtype != DType::I32 || !values.iter().any(|s| s.index_range.get().is_some()) {
        return None;
    }
    let each: Vec<IndexRange> = values.iter().map(reach).collect();
    let one = each[0];
    let two = || each[1];
    Some(match op {
        Op::Binary(B::Add) => one.add(two()),
        Op::Binary(B::Sub) => one.add(two().negated()),
        Op::Binary(B::Mul) => one.mul(two()),
        Op::Binary(B::Max) => IndexRange::new(one.least.max(two().least), one.most.max(two().most)),
        Op::Binary(B::Min) => IndexRange::new(one.least.min(two().least), one.most.min(two().most)),
        // Between zero and the divisor.
        Op::Binary(B::Mod) => IndexRange::new((two().least + 1).min(0), (two().most - 1).max(0)),
        Op::Binary(B::FloorDiv) if two().least >= 0 => one.or(IndexRange::of(&[0])),
        Op::Binary(B::FloorDiv) => one.or(one.negated()).or(IndexRange::of(&[0])),
        Op::Binary(B::Pow) => one.power(two().most),
        Op::Unary(U::Neg) => one.negated(),
        Op::Unary(U::Abs) => one.or(one.negated()),
        Op::Unary(U::Sign) => IndexRange::new(-1, 1),
        Op::Unary(U::Relu) => one.or(IndexRange::of(&[0])),
        Op::Where => one.or(two()),
        Op::Reduce { op: ReduceOp::Max | ReduceOp::Min, .. } => one,
        Op::Reduce { op: ReduceOp::Sum, .. } => one.times(sources[0].shape.numel() / shape.numel().max(1)),
        Op::Reduce { op: ReduceOp::Prod, .. } => {
            one.power((sources[0].shape.numel() / shape.numel().max(1)) as i64)
        }
        Op::Cumsum { axis } => one.times(shape[*axis as usize]),
        Op::ScatterAdd { axis } => one.times(sources[1].shape[*axis as usize]),
        Op::Matmul => one.mul(two()).times(sources[0].shape.size(-1)),
        Op::Pad { fill, .. } => one.or(IndexRange::of(&[fill.to_i64()])),
        // An index outside reads 0.
        Op::Gather { .. } => one.or(IndexRange::of(&[0])),
        op if op.moves() || op.renames() => one,
        _ => IndexRange::ANY,
    })
}
