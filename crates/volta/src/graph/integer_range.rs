//! How far integers reach, as the ops that make them show. An index that is in bounds by the way it is made needs no check, and
//! a divisor that is not zero neither. On a device that has no i64, integers of 32 bits stand for those of 64: the range of
//! these is known when they are recorded, so that an op that could leave 32 bits is an error, and never a number that wrapped
//! around.

use super::Node;
use crate::dtype::{DType, Scalar};
use crate::op::{BinaryOp as B, NativeOp as N, Op, RandomKind, ReduceOp, UnaryOp as U};
use crate::shape::Shape;
use std::sync::Arc;

/// Nodes that are followed to find out what integers are made of.
const DEEPEST: usize = 12;

/// The least and the most that the elements of a tensor may be. In 128 bits, what leaves 64 is seen to leave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntegerRange {
    pub least: i128,
    pub most: i128,
}

impl IntegerRange {
    pub fn new(least: i128, most: i128) -> IntegerRange {
        IntegerRange { least, most }
    }

    pub fn number(number: i64) -> IntegerRange {
        IntegerRange::new(number.into(), number.into())
    }

    /// All that a type holds.
    pub fn all(dtype: DType) -> IntegerRange {
        let (least, most) = dtype.range();
        IntegerRange::new(least.into(), most.into())
    }

    /// Places of an axis.
    fn places(extent: usize) -> IntegerRange {
        IntegerRange::new(0, (extent as i128 - 1).max(0))
    }

    /// Whether a type holds all of it.
    pub fn fits(self, dtype: DType) -> bool {
        let all = IntegerRange::all(dtype);
        all.least <= self.least && self.most <= all.most
    }

    fn of_corners(corners: [i128; 4]) -> IntegerRange {
        let [a, b, c, d] = corners;
        IntegerRange::new(a.min(b).min(c).min(d), a.max(b).max(c).max(d))
    }

    /// One of either.
    fn or(self, other: IntegerRange) -> IntegerRange {
        IntegerRange::new(self.least.min(other.least), self.most.max(other.most))
    }

    fn or_zero(self) -> IntegerRange {
        self.or(IntegerRange::number(0))
    }

    fn negated(self) -> IntegerRange {
        IntegerRange::new(-self.most, -self.least)
    }

    fn mul(self, other: IntegerRange) -> IntegerRange {
        let (a, b) = (self, other);
        let corner = |a: i128, b: i128| a.saturating_mul(b);
        IntegerRange::of_corners([
            corner(a.least, b.least),
            corner(a.least, b.most),
            corner(a.most, b.least),
            corner(a.most, b.most),
        ])
    }

    /// The sum of up to so many.
    fn times(self, count: usize) -> IntegerRange {
        self.mul(IntegerRange::new(0, count as i128))
    }

    /// Up to so many of them multiplied.
    fn power(self, count: i128) -> IntegerRange {
        let size = self.least.abs().max(self.most.abs());
        let size = size.saturating_pow(u32::try_from(count.max(0)).unwrap_or(u32::MAX)).max(1);
        IntegerRange::new(if self.least < 0 { -size } else { 0 }, size)
    }

    /// Of either sign.
    fn either_sign(self) -> IntegerRange {
        self.or(self.negated())
    }

    /// Rounded down.
    fn divided(self, other: IntegerRange) -> IntegerRange {
        let (a, b) = (self, other);
        if b.least <= 0 && b.most >= 0 {
            return a.either_sign().or_zero();
        }
        let divide = |x: i128, y: i128| x / y - i128::from(x % y != 0 && (x < 0) != (y < 0));
        IntegerRange::of_corners([
            divide(a.least, b.least),
            divide(a.least, b.most),
            divide(a.most, b.least),
            divide(a.most, b.most),
        ])
    }

    fn binary(self, op: B, other: IntegerRange) -> Option<IntegerRange> {
        let (a, b) = (self, other);
        Some(match op {
            B::Add => IntegerRange::new(a.least + b.least, a.most + b.most),
            B::Sub => IntegerRange::new(a.least - b.most, a.most - b.least),
            B::Mul => a.mul(b),
            B::Max => IntegerRange::new(a.least.max(b.least), a.most.max(b.most)),
            B::Min => IntegerRange::new(a.least.min(b.least), a.most.min(b.most)),
            // Between zero and the divisor.
            B::Mod => IntegerRange::new((b.least + 1).min(0), (b.most - 1).max(0)),
            B::FloorDiv => a.divided(b),
            B::Pow => a.power(b.most),
            _ => return None,
        })
    }

    /// Where all values of a node lie.
    pub fn of(node: &Arc<Node>) -> IntegerRange {
        within(node, DEEPEST)
    }

    /// Where the results of an op lie if they are i32 that stand for i64: if a value they are made of does.
    pub fn of_wide(op: &Op, sources: &[Arc<Node>], shape: Shape, dtype: DType) -> Option<IntegerRange> {
        if dtype != DType::I32 {
            return None;
        }
        // Conditions and positions decide which numbers are taken, and not what they are.
        let values = match op {
            Op::Gather { .. } => &sources[..1],
            Op::Where | Op::Native(N::ScatterAdd { .. }) => &sources[1..],
            Op::ArgReduce { .. } => return None,
            Op::Native(op) if op.gives_positions() => return None,
            _ => &sources[..op.value_sources(sources.len())],
        };
        let is_wide = values.iter().any(|s| s.wide_range.get().is_some());
        is_wide.then(|| made_by(op, sources, shape, DEEPEST).unwrap_or(IntegerRange::all(dtype)))
    }
}

fn within(node: &Arc<Node>, deepest: usize) -> IntegerRange {
    let all = IntegerRange::all(node.dtype);
    // Who was given its memory may have written it.
    let shown = || node.storage().is_some_and(|storage| storage.is_exported());
    if deepest == 0 || !node.dtype.is_int() || shown() {
        return all;
    }
    if let Some(&range) = node.wide_range.get() {
        return range;
    }
    let found = made_by(&node.op, &node.sources(), node.shape, deepest - 1);
    found.filter(|range| range.fits(node.dtype)).unwrap_or(all)
}

/// Where an op's results lie before their type wraps them around, as far as the ops before it show.
fn made_by(op: &Op, sources: &[Arc<Node>], shape: Shape, deepest: usize) -> Option<IntegerRange> {
    // What a value was made of may be forgotten when it is there.
    let source = |k: usize| sources.get(k).map(|source| within(source, deepest));
    let fewer = || sources.first().map(|source| source.shape.numel() / shape.numel().max(1));
    Some(match op {
        Op::Const(number @ (Scalar::Int(_) | Scalar::Bool(_))) => IntegerRange::number(number.to_i64()),
        Op::Iota { axis } => IntegerRange::places(shape[*axis as usize]),
        Op::Native(N::ArgSort { axis, .. }) => IntegerRange::places(shape[*axis]),
        Op::ArgReduce { .. } => IntegerRange::places(fewer()?),
        Op::Random { kind: RandomKind::Bits, .. } => IntegerRange::new(0, i32::MAX.into()),
        Op::Cast if sources.first()?.dtype.is_float() => return None,
        Op::Cast | Op::Alias | Op::Assert(_) => source(0)?,
        Op::Pad { fill, .. } => source(0)?.or(IntegerRange::number(fill.to_i64())),
        // An index outside reads 0.
        Op::Gather { .. } => source(0)?.or_zero(),
        Op::Where => source(1)?.or(source(2)?),
        Op::Binary(op) => source(0)?.binary(*op, source(1)?)?,
        Op::Unary(U::Neg) => source(0)?.negated(),
        Op::Unary(U::Abs) => source(0)?.either_sign(),
        Op::Unary(U::Sign) => IntegerRange::new(-1, 1),
        Op::Unary(U::Relu) => source(0)?.or_zero(),
        Op::Reduce { op: ReduceOp::Max | ReduceOp::Min, .. } => source(0)?,
        Op::Reduce { op: ReduceOp::Sum, .. } => source(0)?.times(fewer()?),
        Op::Reduce { op: ReduceOp::Prod, .. } => source(0)?.power(fewer()? as i128),
        Op::Native(N::Cumsum { axis }) => source(0)?.times(shape[*axis]),
        Op::Native(N::ScatterAdd { axis }) => source(1)?.times(sources.get(1)?.shape[*axis]),
        Op::Native(N::Matmul) => source(0)?.mul(source(1)?).times(sources[0].shape.size(-1)),
        op if op.is_movement() || op.is_alias() => source(0)?,
        _ => return None,
    })
}
