//! Elementwise ops: PyTorch's names and meanings, broadcasting, promotion of types.

use super::Tensor;
use super::record::record;
use crate::dtype::{DType, Scalar};
use crate::error::{Result, bail};
use crate::op::{BinaryOp, Domain, Halves, Op, UnaryOp};
use crate::shape::Shape;
use volta_derive::op;

/// The other operand of a binary op: a tensor or a number.
pub enum Operand {
    /// A tensor, broadcast to the common shape.
    Tensor(Tensor),
    /// A number, which takes the tensor's type.
    Scalar(Scalar),
}

impl From<Tensor> for Operand {
    fn from(t: Tensor) -> Self {
        Operand::Tensor(t)
    }
}
impl From<&Tensor> for Operand {
    fn from(t: &Tensor) -> Self {
        Operand::Tensor(t.clone())
    }
}
impl<S: Into<Scalar>> From<S> for Operand {
    fn from(s: S) -> Self {
        Operand::Scalar(s.into())
    }
}

fn unary(x: &Tensor, op: UnaryOp) -> Result<Tensor> {
    let dtype = x.dtype();
    if op.halves() == Halves::Widened && dtype.is_half() {
        let x = x.upcast()?;
        return record(Op::Unary(op), &[&x], x.shape(), x.dtype());
    }
    match op.domain() {
        Domain::Float if !dtype.is_float() => {
            let x = x.cast(DType::F32)?;
            return record(Op::Unary(op), &[&x], x.shape(), DType::F32);
        }
        Domain::Number if dtype == DType::Bool => {
            bail!(DType, "bool is not a number: convert it with to_dtype")
        }
        Domain::Rounding if !dtype.is_float() => return Ok(x.clone()),
        _ => {}
    }
    record(Op::Unary(op), &[x], x.shape(), dtype)
}

/// The type a tensor and a number meet in.
fn with_scalar(dtype: DType, s: Scalar) -> DType {
    match s {
        Scalar::Float(_) if !dtype.is_float() => DType::F32,
        Scalar::Int(x) if dtype == DType::Bool => Scalar::Int(x).natural_dtype(),
        _ => dtype,
    }
}

/// The type two tensors meet in. One without axes is like a number: it takes the other's type unless it is of a higher kind.
fn common_type(a: &Tensor, b: &Tensor) -> DType {
    let kind = |dtype: DType| (dtype.is_float(), dtype != DType::Bool);
    let (one, other) = (a.dtype(), b.dtype());
    match (a.rank(), b.rank()) {
        (0, 1..) if kind(one) <= kind(other) => other,
        (1.., 0) if kind(other) <= kind(one) => one,
        _ => one.promote(other),
    }
}

impl Tensor {
    /// [`to_dtype`](Tensor::to_dtype) inside another op.
    pub(crate) fn cast(&self, dtype: DType) -> Result<Tensor> {
        match self.with_node(|n| (n.dtype == dtype, n.shape)) {
            (true, _) => Ok(self.clone()),
            (false, shape) => record(Op::Cast, &[self], shape, dtype),
        }
    }
}

/// An operand of a power, which easily leaves the range of halves.
fn upcast(operand: Operand) -> Result<Operand> {
    match operand {
        Operand::Tensor(t) => t.upcast().map(Operand::Tensor),
        number => Ok(number),
    }
}

fn power(a: &Tensor, b: Operand, op: BinaryOp) -> Result<Tensor> {
    binary(&a.upcast()?, upcast(b)?, op)
}

/// Both operands in one type and shape.
pub(super) fn promote_and_broadcast(
    a: &Tensor,
    b: Operand,
    force: Option<DType>,
) -> Result<(Tensor, Tensor)> {
    match b {
        Operand::Scalar(s) => {
            let dtype = force.unwrap_or_else(|| with_scalar(a.dtype(), s));
            let a = a.cast(dtype)?;
            let s = if force == Some(DType::Bool) { Scalar::Bool(s.is_true()) } else { s };
            let b = a.constant_like(s);
            Ok((a, b))
        }
        Operand::Tensor(b) => {
            let dtype = force.unwrap_or_else(|| common_type(a, &b));
            let (a, b) = (a.cast(dtype)?, b.cast(dtype)?);
            let shape = a.shape().broadcast(&b.shape())?;
            Ok((a.expand_to(shape)?, b.expand_to(shape)?))
        }
    }
}

fn binary(a: &Tensor, b: Operand, op: BinaryOp) -> Result<Tensor> {
    // Mostly the operands fit as they are.
    let (dtype, shape) = a.with_node(|n| (n.dtype, n.shape));
    match &b {
        Operand::Tensor(t) if fits(t, dtype, shape) => {
            return binary_of_equals(a, t, op, dtype, shape);
        }
        Operand::Tensor(t) if a.meets_wider(t, op) => {
            return binary(&a.widened()?, t.widened()?.into(), op)?.cast(common_type(a, t));
        }
        &Operand::Scalar(s) if widens(dtype, op) => return a.in_wide(|a| binary(a, s.into(), op)),
        &Operand::Scalar(s) if with_scalar(dtype, s) == dtype => {
            return binary_of_equals(a, &a.constant_like(held(s, dtype, op)?), op, dtype, shape);
        }
        _ => {}
    }
    let (a, b) = promote_and_broadcast(a, b, None)?;
    binary_of_equals(&a, &b, op, a.dtype(), a.shape())
}

/// Whether a number that meets halves is not made one of them: it may lie out of their range where the result does not. What
/// is picked or compared is one of theirs.
fn widens(dtype: DType, op: BinaryOp) -> bool {
    dtype.is_half() && op.halves() == Halves::Widened
}

impl Tensor {
    /// Whether one of two tensors holds halves, and the other is a single number of a wider type: see [`widens`].
    fn meets_wider(&self, other: &Tensor, op: BinaryOp) -> bool {
        self.dtype() != other.dtype()
            && self.rank().min(other.rank()) == 0
            && widens(common_type(self, other), op)
    }
}

/// A number that a tensor is computed with, as its type holds it if that is one of integers. Sums and products are the same whether it wraps around before or after.
fn held(number: Scalar, dtype: DType, op: BinaryOp) -> Result<Scalar> {
    let Scalar::Int(x) = number else { return Ok(number) };
    match op {
        BinaryOp::Max | BinaryOp::Min => Ok(Scalar::Int(dtype.nearest(x))),
        BinaryOp::Mod | BinaryOp::FloorDiv | BinaryOp::Pow if !dtype.holds(x) => {
            bail!(DType, "{x} is no {dtype}: convert the tensor with to_dtype first")
        }
        _ => Ok(number),
    }
}

/// A comparison, which is known if the number is none of the integers' type.
fn compare(a: &Tensor, b: Operand, op: BinaryOp) -> Result<Tensor> {
    let (above, below) = match op {
        BinaryOp::Lt | BinaryOp::Le => (true, false),
        BinaryOp::Ne => (true, true),
        _ => (false, false),
    };
    match foregone(a, &b, above, below) {
        Some(known) => Ok(known),
        None => binary(a, b, op),
    }
}

/// A comparison of the operands the other way round.
fn compare_back(a: &Tensor, b: Operand, op: BinaryOp) -> Result<Tensor> {
    if let Some(known) = foregone(a, &b, false, true) {
        return Ok(known);
    }
    let (a, b) = promote_and_broadcast(a, b, None)?;
    record(Op::Binary(op), &[&b, &a], a.shape(), DType::Bool)
}

/// What a comparison of integers says everywhere, if their type does not hold the number they are compared with: it lies
/// `above` all of them or `below`.
fn foregone(x: &Tensor, other: &Operand, above: bool, below: bool) -> Option<Tensor> {
    let &Operand::Scalar(Scalar::Int(number)) = other else { return None };
    let (dtype, shape) = x.with_node(|n| (with_scalar(n.dtype, number.into()), n.shape));
    let outside = dtype.is_int() && !dtype.holds(number);
    outside.then(|| x.constant(if number > 0 { above } else { below }, shape, DType::Bool))
}

/// Whether `t` can be an operand of an op of this type and shape as it is.
fn fits(t: &Tensor, dtype: DType, shape: Shape) -> bool {
    t.with_node(|n| n.dtype == dtype && n.shape == shape)
}

/// A binary op of operands of one type and shape.
fn binary_of_equals(a: &Tensor, b: &Tensor, op: BinaryOp, dtype: DType, shape: Shape) -> Result<Tensor> {
    if dtype == DType::Bool
        && matches!(op, BinaryOp::Sub | BinaryOp::Mod | BinaryOp::Pow | BinaryOp::FloorDiv)
    {
        bail!(DType, "bool is not a number: convert it with to_dtype");
    }
    if op == BinaryOp::Mul {
        // Gradients often start from ones.
        if is_one(a) {
            return Ok(b.clone());
        }
        if is_one(b) {
            return Ok(a.clone());
        }
    }
    let out = if op.compares() { DType::Bool } else { dtype };
    record(Op::Binary(op), &[a, &divisor(b, op)?], shape, out)
}

/// The second operand: of integers that are divided, none is to be zero.
fn divisor(b: &Tensor, op: BinaryOp) -> Result<Tensor> {
    if matches!(op, BinaryOp::Mod | BinaryOp::FloorDiv) { b.non_zero() } else { Ok(b.clone()) }
}

fn is_one(t: &Tensor) -> bool {
    t.with_node(|n| matches!(n.op, Op::Const(s) if s.to_f64() == 1.0))
}

/// A scalar on the left: `2.0 - x`.
pub(super) fn scalar_left(s: Scalar, b: &Tensor, op: BinaryOp) -> Result<Tensor> {
    let b = &if matches!(op, BinaryOp::Div | BinaryOp::Pow) { b.upcast()? } else { b.clone() };
    if widens(b.dtype(), op) {
        return b.in_wide(|b| scalar_left(s, b, op));
    }
    let mut dtype = with_scalar(b.dtype(), s);
    if op == BinaryOp::Div && !dtype.is_float() {
        dtype = DType::F32;
    }
    let b = b.cast(dtype)?;
    record(Op::Binary(op), &[&b.constant_like(s), &divisor(&b, op)?], b.shape(), dtype)
}

fn logical(a: &Tensor, b: Operand, op: BinaryOp) -> Result<Tensor> {
    let (a, b) = promote_and_broadcast(a, b, Some(DType::Bool))?;
    record(Op::Binary(op), &[&a, &b], a.shape(), DType::Bool)
}

/// The bits of two integers, in the type they meet in.
fn bits(a: &Tensor, b: Operand, op: BinaryOp) -> Result<Tensor> {
    let (a, b) = promote_and_broadcast(a, b, None)?;
    if a.dtype().is_float() {
        bail!(DType, "{} has no bits to compute with: convert it with to_dtype", a.dtype());
    }
    record(Op::Binary(op), &[&a, &b], a.shape(), a.dtype())
}

fn divide(a: &Tensor, b: Operand, op: BinaryOp) -> Result<Tensor> {
    let (dtype, shape) = a.with_node(|n| (n.dtype, n.shape));
    match &b {
        Operand::Tensor(b) if dtype.is_float() && fits(b, dtype, shape) => {
            return record(Op::Binary(op), &[a, b], shape, dtype);
        }
        Operand::Tensor(t) if a.meets_wider(t, op) => {
            return divide(&a.widened()?, t.widened()?.into(), op)?.cast(common_type(a, t));
        }
        &Operand::Scalar(s) if widens(dtype, op) => return a.in_wide(|a| divide(a, s.into(), op)),
        _ => {}
    }
    let dtype = match &b {
        Operand::Tensor(b) => common_type(a, b),
        Operand::Scalar(_) => dtype,
    };
    // A number may be one that integers do not hold.
    let (a, b) = promote_and_broadcast(a, b, (!dtype.is_float()).then_some(DType::F32))?;
    record(Op::Binary(op), &[&a, &b], a.shape(), a.dtype())
}

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident: $name:ident $try_name:ident, $domain:ident, $halves:ident, $saved:ident;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            #[op]
            pub fn $try_name(&self) -> Result<Tensor> {
                unary(self, UnaryOp::$variant)
            }
        )*}
    };
}

volta_ir::unary_ops!(methods);

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $variant:ident: $name:literal, $method:ident = $settle:ident, $gives:ident, $halves:ident, $result:literal,
        $operands:literal;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            #[op]
            pub fn $method(&self, other: impl Into<Operand>) -> Result<Tensor> {
                $settle(self, other.into(), BinaryOp::$variant)
            }
        )*}
    };
}

volta_ir::binary_ops!(binary_methods);

impl Tensor {
    /// a > b
    #[op]
    pub fn try_gt(&self, other: impl Into<Operand>) -> Result<Tensor> {
        compare_back(self, other.into(), BinaryOp::Lt)
    }

    /// a ≥ b
    #[op]
    pub fn try_ge(&self, other: impl Into<Operand>) -> Result<Tensor> {
        compare_back(self, other.into(), BinaryOp::Le)
    }

    /// True where zero or false.
    #[op]
    pub fn try_logical_not(&self) -> Result<Tensor> {
        let x = self.try_to_dtype(DType::Bool)?;
        record(Op::Unary(UnaryOp::Not), &[&x], x.shape(), DType::Bool)
    }

    /// The bits that both integers have.
    #[op]
    pub fn try_bitwise_and(&self, other: impl Into<Operand>) -> Result<Tensor> {
        bits(self, other.into(), BinaryOp::And)
    }

    /// The bits that at least one of two integers has.
    #[op]
    pub fn try_bitwise_or(&self, other: impl Into<Operand>) -> Result<Tensor> {
        bits(self, other.into(), BinaryOp::Or)
    }

    /// The bits that exactly one of two integers has.
    #[op]
    pub fn try_bitwise_xor(&self, other: impl Into<Operand>) -> Result<Tensor> {
        bits(self, other.into(), BinaryOp::Xor)
    }

    /// The bits that an integer does not have.
    #[op]
    pub fn try_bitwise_not(&self) -> Result<Tensor> {
        if self.dtype().is_float() {
            bail!(DType, "{} has no bits to compute with: convert it with to_dtype", self.dtype());
        }
        if self.dtype() == DType::U8 {
            // A byte's `not` is logical.
            return self.try_neg()?.try_sub(1);
        }
        record(Op::Unary(UnaryOp::Not), &[self], self.shape(), self.dtype())
    }

    /// True where NaN.
    #[op]
    pub fn try_isnan(&self) -> Result<Tensor> {
        record(Op::Binary(BinaryOp::Ne), &[self, self], self.shape(), DType::Bool)
    }

    /// The elements of `a` where this condition holds, of `b` elsewhere.
    #[op]
    pub fn try_where_(&self, a: impl Into<Operand>, b: impl Into<Operand>) -> Result<Tensor> {
        let condition = self.try_to_dtype(DType::Bool)?;
        let (a, b) = match (a.into(), b.into()) {
            (Operand::Tensor(a), b) => promote_and_broadcast(&a, b, None)?,
            (Operand::Scalar(a), Operand::Tensor(b)) => {
                let (b, a) = promote_and_broadcast(&b, Operand::Scalar(a), None)?;
                (a, b)
            }
            (Operand::Scalar(a), Operand::Scalar(b)) => {
                let dtype = a.natural_dtype().promote(b.natural_dtype());
                (self.constant(a, self.shape(), dtype), self.constant(b, self.shape(), dtype))
            }
        };
        let shape = condition.shape().broadcast(&a.shape())?;
        let (c, a, b) = (condition.expand_to(shape)?, a.expand_to(shape)?, b.expand_to(shape)?);
        record(Op::Where, &[&c, &a, &b], shape, a.dtype())
    }

    /// The same values as another type: floats truncate to integers, anything but zero is true.
    #[op]
    pub fn try_to_dtype(&self, dtype: DType) -> Result<Tensor> {
        self.cast(dtype)
    }

    /// x²
    #[op]
    pub fn try_square(&self) -> Result<Tensor> {
        let x = self.upcast()?;
        x.try_mul(&x)
    }
}
