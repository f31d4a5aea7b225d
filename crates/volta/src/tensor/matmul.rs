//! Matrix products of every rank pair.

use super::Tensor;
use super::record::record;
use crate::error::{Result, bail};
use crate::op::{NativeOp, Op};
use crate::shape::Shape;
use volta_derive::op;

impl Tensor {
    /// The product of (…, M, K) and (…, K, N) with the same batch extents.
    pub(crate) fn matmul_primitive(&self, other: &Tensor) -> Result<Tensor> {
        let (a, b) = (self.shape(), other.shape());
        let mut extents = a.to_vec();
        *extents.last_mut().expect("a matrix") = b[b.rank() - 1];
        record(Op::Native(NativeOp::Matmul), &[self, other], Shape::new(&extents)?, self.dtype())
    }
}

impl Tensor {
    /// The matrix product with PyTorch's rules: vectors count as a row on the left and a column on the right,
    /// batch axes broadcast.
    #[op]
    pub fn try_matmul(&self, other: &Tensor) -> Result<Tensor> {
        product(&self.autocast_operand()?, &other.autocast_operand()?)
    }

    /// `x·weightᵀ + bias` over the last axis: the weight is (outputs, inputs), the bias (outputs).
    #[op]
    pub fn try_linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        if weight.rank() != 2 {
            bail!(Shape, "the weight has shape {}, and (outputs, inputs) is needed", weight.shape());
        }
        let y = self.try_matmul(&weight.try_transpose(0, 1)?)?;
        match bias {
            Some(bias) if bias.shape()[..] != [weight.shape()[0]] => {
                bail!(
                    Shape,
                    "the bias has shape {}, and there are {} outputs",
                    bias.shape(),
                    weight.shape()[0]
                )
            }
            Some(bias) => y.try_add(&bias.autocast_operand()?),
            None => Ok(y),
        }
    }

    /// The inner product of two vectors.
    #[op]
    pub fn try_dot(&self, other: &Tensor) -> Result<Tensor> {
        if self.rank() != 1 || other.rank() != 1 {
            bail!(Shape, "shapes {} and {}: both operands must be vectors", self.shape(), other.shape());
        }
        self.try_matmul(other)
    }

    /// Every element of one vector by every element of another.
    #[op]
    pub fn try_outer(&self, other: &Tensor) -> Result<Tensor> {
        if self.rank() != 1 || other.rank() != 1 {
            bail!(Shape, "shapes {} and {}: both operands must be vectors", self.shape(), other.shape());
        }
        self.try_unsqueeze(1)?.try_mul(&other.try_unsqueeze(0)?)
    }
}

/// [`matmul`](Tensor::matmul) of operands of one type, which they keep in mixed precision, too.
pub(super) fn product(x: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (a, b) = (x.shape(), other.shape());
    if a.rank() == 0 || b.rank() == 0 {
        bail!(Shape, "shapes {a} and {b}: both operands need at least one axis");
    }
    if x.dtype() != other.dtype() {
        bail!(DType, "operands are {} and {}: convert one with to_dtype", x.dtype(), other.dtype());
    }
    if x.dtype() == crate::DType::Bool {
        bail!(DType, "bool is not a number: convert it with to_dtype");
    }
    let (inner_a, inner_b) = (a[a.rank() - 1], if b.rank() == 1 { b[0] } else { b[b.rank() - 2] });
    if inner_a != inner_b {
        bail!(Shape, "shapes {a} and {b} do not fit: the inner extents {inner_a} and {inner_b} differ");
    }
    let (left, right) = match (a.rank(), b.rank()) {
        (1, 1) => (x.reshape_to(Shape::of(&[1, a[0]]))?, other.reshape_to(Shape::of(&[b[0], 1]))?),
        (1, _) => (x.reshape_to(Shape::of(&[1, a[0]]))?, other.clone()),
        (_, 1) => (x.clone(), other.reshape_to(Shape::of(&[b[0], 1]))?),
        _ => (x.clone(), other.clone()),
    };
    let (l, r) = (left.shape(), right.shape());
    let (rows, columns) = (l[l.rank() - 2], r[r.rank() - 1]);
    let product = if r.rank() == 2 && l.rank() > 2 {
        // One tall product instead of many small ones.
        let tall: usize = l[..l.rank() - 1].iter().product();
        left.reshape_to(Shape::of(&[tall, inner_a]))?.matmul_primitive(&right)?
    } else {
        let batch = Shape::of(&l[..l.rank() - 2]).broadcast(&Shape::of(&r[..r.rank() - 2]))?;
        let with = |m: usize, n: usize| Shape::new(&[&batch[..], &[m, n]].concat());
        left.expand_to(with(rows, inner_a)?)?.matmul_primitive(&right.expand_to(with(inner_a, columns)?)?)?
    };
    let batch = Shape::of(&l[..l.rank() - 2]).broadcast(&Shape::of(&r[..r.rank() - 2]))?;
    let mut extents = batch.to_vec();
    if a.rank() > 1 {
        extents.push(rows);
    }
    if b.rank() > 1 {
        extents.push(columns);
    }
    product.reshape_to(Shape::new(&extents)?)
}
