//! Integers that are asserted to be what an op can compute with: indices of places that are there, divisors that are not zero.
//! Where the way they are made shows that they are, nothing is asserted; where it shows that they are not, that is an error at
//! once. All others are looked at by the kernel that computes with them.

use super::Tensor;
use super::record::record;
use crate::error::{Result, bail};
use crate::graph::IntegerRange;
use crate::op::{Assertion, Op};
use std::sync::Arc;

impl Tensor {
    /// The same indices, each of which is to name a place of an axis of this extent.
    pub(crate) fn in_bounds(&self, extent: usize) -> Result<Tensor> {
        let range = IntegerRange::of(&self.node());
        let last = extent as i128 - 1;
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
        let range = IntegerRange::of(&self.node());
        if range.least > 0 || range.most < 0 {
            return Ok(self.clone());
        }
        if range == IntegerRange::number(0) && self.numel() > 0 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::{DType, Device, with_device};

    fn range(t: &Tensor) -> (i64, i64) {
        let IntegerRange { least, most } = IntegerRange::of(&t.node());
        (least as i64, most as i64)
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
            assert_eq!(range(&place.pad(&[(0, 0), (1, 1)], -1)), (-1, 6));
            assert_eq!(range(&(&place - 9).floor_divide(-2)), (1, 4));
            assert_eq!(range(&(&place - 9).sum_dim(1, false)), (-63, 0));
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
