//! Integers that are asserted to be what an op can compute with: indices of places that are there, divisors that are not zero.
//! Where the way they are made shows that they are, nothing is asserted; where it shows that they are not, that is an error at
//! once. All others are looked at by the kernel that computes with them.

use super::Tensor;
use super::record::record;
use crate::dtype::{DType, Scalar};
use crate::error::{Result, bail};
use crate::graph::Node;
use crate::op::{Assertion, BinaryOp, Op, RandomKind};
use std::sync::Arc;

/// Nodes that are followed to find out what integers are made of.
const DEEPEST: usize = 12;

impl Tensor {
    /// The same indices, each of which is to name a place of an axis of this extent.
    pub(crate) fn in_bounds(&self, extent: usize) -> Result<Tensor> {
        let range = Range::of(&self.node(), DEEPEST);
        let last = extent as i64 - 1;
        if range.least >= 0 && range.most <= last {
            return Ok(self.clone());
        }
        if (range.most < 0 || range.least > last) && self.numel() > 0 {
            bail!(Index, "index {} is out of bounds for an axis of {extent}", range.least);
        }
        self.assert(Assertion::InBounds { extent })
    }

    /// The same integers, none of which is to be zero; floats as they are.
    pub(crate) fn non_zero(&self) -> Result<Tensor> {
        if !self.dtype().is_int() {
            return Ok(self.clone());
        }
        let range = Range::of(&self.node(), DEEPEST);
        if range.least > 0 || range.most < 0 {
            return Ok(self.clone());
        }
        if range == Range::number(0) && self.numel() > 0 {
            bail!(ZeroDivision, "integers of shape {} are divided by zero", self.shape());
        }
        self.assert(Assertion::NonZero)
    }

    fn assert(&self, assertion: Assertion) -> Result<Tensor> {
        record(Op::Assert(assertion), &[self], self.shape(), self.dtype())
    }

    /// The same integers, of which nothing is asserted once more: for gradients.
    pub(crate) fn without_assertions(&self) -> Result<Tensor> {
        let node = self.node();
        let Some(source) = node.sources().first().cloned().map(Tensor::from_node) else {
            return Ok(self.clone());
        };
        match node.op {
            Op::Assert(_) => Ok(source),
            Op::Reshape | Op::Expand => {
                let bare = source.without_assertions()?;
                match &node.op {
                    _ if Arc::ptr_eq(&bare.node(), &source.node()) => Ok(self.clone()),
                    Op::Reshape => bare.reshape_to(node.shape),
                    _ => bare.expand_to(node.shape),
                }
            }
            _ => Ok(self.clone()),
        }
    }
}

/// Integers between these two, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    least: i64,
    most: i64,
}

impl Range {
    fn number(number: i64) -> Range {
        Range { least: number, most: number }
    }

    /// All that a type holds.
    fn all(dtype: DType) -> Range {
        let (least, most) = dtype.range();
        Range { least, most }
    }

    /// Places of an axis.
    fn places(extent: usize) -> Range {
        Range { least: 0, most: (extent as i64 - 1).max(0) }
    }

    fn within(self, dtype: DType) -> bool {
        dtype.holds(self.least) && dtype.holds(self.most)
    }

    /// Where all values of a node lie, as far as the ops that make it show.
    fn of(node: &Arc<Node>, deepest: usize) -> Range {
        let all = Range::all(node.dtype);
        // Who was given its memory may have written it.
        let shown = || node.storage().is_some_and(|storage| storage.was_shown());
        if deepest == 0 || !node.dtype.is_int() || shown() {
            return all;
        }
        // What a value was made of may be forgotten when it is there.
        let sources = node.sources();
        let source = |k: usize| sources.get(k).map(|source| Range::of(source, deepest - 1));
        let found = match &node.op {
            Op::Const(Scalar::Int(number)) => Some(Range::number(*number)),
            Op::Iota { axis } => Some(Range::places(node.shape[*axis as usize])),
            Op::Random { kind: RandomKind::Bits, .. } => Some(Range { least: 0, most: i64::from(i32::MAX) }),
            Op::ArgSort { axis, .. } => Some(Range::places(node.shape[*axis as usize])),
            Op::ArgReduce { axes, .. } => sources.first().map(|source| {
                let reduced = (0..source.shape.rank()).filter(|k| axes >> k & 1 == 1);
                Range::places(reduced.map(|k| source.shape[k]).product())
            }),
            Op::Cast => sources.first().filter(|source| source.dtype.is_int()).and_then(|_| source(0)),
            Op::Pad { .. } => None,
            op if op.moves() || matches!(op, Op::Alias | Op::Assert(_)) => source(0),
            Op::Where => source(1).zip(source(2)).map(|(a, b)| a.or(b)),
            Op::Binary(op) => source(0).zip(source(1)).and_then(|(a, b)| a.combined(*op, b)),
            _ => None,
        };
        found.filter(|range| range.within(node.dtype)).unwrap_or(all)
    }

    fn or(self, other: Range) -> Range {
        Range { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// Of an op of two operands that lie in these.
    fn combined(self, op: BinaryOp, other: Range) -> Option<Range> {
        let (a, b) = (self, other);
        let (least, most) = match op {
            BinaryOp::Add => (a.least.checked_add(b.least)?, a.most.checked_add(b.most)?),
            BinaryOp::Sub => (a.least.checked_sub(b.most)?, a.most.checked_sub(b.least)?),
            BinaryOp::Mul if a.least >= 0 && b.least >= 0 => {
                (a.least.checked_mul(b.least)?, a.most.checked_mul(b.most)?)
            }
            BinaryOp::Max => (a.least.max(b.least), a.most.max(b.most)),
            BinaryOp::Min => (a.least.min(b.least), a.most.min(b.most)),
            // What is left has the divisor's sign.
            BinaryOp::Mod if b.least > 0 => (0, b.most - 1),
            BinaryOp::FloorDiv if a.least >= 0 && b.least > 0 => (a.least / b.most, a.most / b.least),
            _ => return None,
        };
        Some(Range { least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::{Device, with_device};

    fn range(t: &Tensor) -> (i64, i64) {
        let Range { least, most } = Range::of(&t.node(), DEEPEST);
        (least, most)
    }

    #[test]
    fn the_ops_show_where_integers_lie() {
        with_device(Device::Cpu, || {
            let scores = Tensor::rand([3, 7]);
            assert_eq!(range(&scores.argmax_dim(1, false)), (0, 6));
            assert_eq!(range(&scores.argsort(0, false)), (0, 2));
            assert_eq!(range(&Tensor::randint(-2, 9, [4])), (-2, 8));
            let place = scores.index_rule(1, scores.shape(), DType::I32);
            assert_eq!(range(&(&place * 2 + 5).flip(0)), (5, 17));
            assert_eq!(range(&(&place - 3).maximum(0).to_dtype(DType::I64)), (0, 3));
            assert_eq!(range(&place.gt(2).where_(&place, -1).remainder(4)), (0, 3));
            // A byte wraps around.
            assert_eq!(range(&(place.to_dtype(DType::U8) + 250)), (0, 255));
            assert_eq!(range(&place.pad(&[(0, 0), (1, 1)], -1)), DType::I32.range());
        });
    }

    #[test]
    fn what_is_known_to_be_right_is_not_asserted_and_what_is_wrong_is_an_error_at_once() {
        with_device(Device::Cpu, || {
            let index = Tensor::randint(0, 5, [4]);
            assert!(index.in_bounds(5).unwrap().is_same(&index));
            let asserted = index.in_bounds(4).unwrap();
            assert!(matches!(asserted.node().op, Op::Assert(Assertion::InBounds { extent: 4 })));
            let spread = asserted.reshape([4, 1]).expand([4, 3]);
            let bare = spread.without_assertions().unwrap();
            assert!(matches!(bare.node().op, Op::Expand) && bare.shape() == spread.shape());
            assert!(index.without_assertions().unwrap().is_same(&index));
            let error = Tensor::full_of([2], 7, DType::I32).in_bounds(7).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Index);
            assert!(Tensor::full_of([2], 7, DType::I32).non_zero().is_ok());
            let error = Tensor::full_of([2], 0, DType::I32).non_zero().map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ZeroDivision);
        });
    }
}
