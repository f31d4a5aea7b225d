//! Formulas of elementwise rules, written as formulas.

use super::step_count::Factor;
use crate::op::{BinaryOp, Op, UnaryOp};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops;

/// A value that each parameter of a step has of its own: the parameter, its gradient, what is remembered of it, or what
/// is computed of these, element by element. Other operands are such values, numbers, and [`Factor`]s.
#[derive(Clone, Copy)]
pub struct Expression<'a> {
    sheet: &'a RefCell<ExprGraph>,
    at: usize,
}

/// What is written down of a formula.
#[derive(Default)]
pub(super) struct ExprGraph {
    pub lines: Vec<ExprNode>,
    /// The numbers that the lines name: they change from step to step, and the lines do not.
    pub numbers: SmallVec<[Factor; 8]>,
    /// What a state is at first, for those that the formula uses.
    pub initial: SmallVec<[Option<f64>; 3]>,
    /// The states that get new values, and the lines with these values.
    pub states: SmallVec<[(usize, usize); 3]>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum ExprNode {
    Parameter,
    Gradient,
    State(usize),
    /// Whether the step is made.
    Condition,
    Number(usize),
    Unary(UnaryOp, usize),
    Binary(BinaryOp, usize, usize),
    Where(usize, usize, usize),
}

impl ExprNode {
    /// The op it applies to earlier lines, if it does.
    pub fn applied(&self) -> Option<(Op, SmallVec<[usize; 3]>)> {
        match self {
            ExprNode::Unary(op, a) => Some((Op::Unary(*op), [*a].into_iter().collect())),
            ExprNode::Binary(op, a, b) => Some((Op::Binary(*op), [*a, *b].into_iter().collect())),
            ExprNode::Where(c, a, b) => Some((Op::Where, [*c, *a, *b].into_iter().collect())),
            _ => None,
        }
    }
}

impl ExprGraph {
    pub fn write(&mut self, line: ExprNode) -> usize {
        self.lines.push(line);
        self.lines.len() - 1
    }
}

/// What an elementwise formula is made of.
pub struct Inputs<'a>(&'a RefCell<ExprGraph>);

impl<'a> Inputs<'a> {
    /// For `states` states of each parameter.
    pub(super) fn on(sheet: &'a RefCell<ExprGraph>, states: usize) -> Inputs<'a> {
        {
            let mut sheet = sheet.borrow_mut();
            sheet.lines.extend([ExprNode::Parameter, ExprNode::Gradient]);
            sheet.initial.resize(states, None);
        }
        Inputs(sheet)
    }

    /// The parameter.
    pub fn parameter(&self) -> Expression<'a> {
        Expression { sheet: self.0, at: 0 }
    }

    /// Its gradient.
    pub fn gradient(&self) -> Expression<'a> {
        Expression { sheet: self.0, at: 1 }
    }

    /// What is remembered under the name [`Options::STATE`](super::Options::STATE)`[k]`; zeros at first.
    pub fn state(&self, k: usize) -> Expression<'a> {
        self.state_or(k, 0.0)
    }

    /// [`state`](Self::state) that is `initial` everywhere at first.
    pub fn state_or(&self, k: usize, initial: f64) -> Expression<'a> {
        let mut sheet = self.0.borrow_mut();
        sheet.initial[k].get_or_insert(initial);
        let known = sheet.lines.iter().position(|line| *line == ExprNode::State(k));
        Expression { sheet: self.0, at: known.unwrap_or_else(|| sheet.write(ExprNode::State(k))) }
    }

    /// Remembers another value from the next step on.
    pub fn set_state(&self, k: usize, value: Expression<'a>) {
        let mut sheet = self.0.borrow_mut();
        sheet.initial[k].get_or_insert(0.0);
        sheet.states.retain(|(known, _)| *known != k);
        sheet.states.push((k, value.at));
    }
}

/// The other operand of an op on an [`Expression`].
pub trait Term<'a> {
    /// Its line on the sheet of `beside`.
    #[doc(hidden)]
    fn line(self, beside: Expression<'a>) -> usize;
}

impl<'a> Term<'a> for Expression<'a> {
    fn line(self, _: Expression<'a>) -> usize {
        self.at
    }
}

impl<'a> Term<'a> for &Factor {
    fn line(self, beside: Expression<'a>) -> usize {
        let mut sheet = beside.sheet.borrow_mut();
        sheet.numbers.push(self.clone());
        let number = sheet.numbers.len() - 1;
        sheet.write(ExprNode::Number(number))
    }
}

impl<'a> Term<'a> for f64 {
    fn line(self, beside: Expression<'a>) -> usize {
        Factor::Number(self).line(beside)
    }
}

impl<'a> Expression<'a> {
    pub(super) fn line(self) -> usize {
        self.at
    }

    fn unary(self, op: UnaryOp) -> Expression<'a> {
        let at = self.sheet.borrow_mut().write(ExprNode::Unary(op, self.at));
        Expression { at, ..self }
    }

    fn binary(self, op: BinaryOp, other: impl Term<'a>) -> Expression<'a> {
        let other = other.line(self);
        let at = self.sheet.borrow_mut().write(ExprNode::Binary(op, self.at, other));
        Expression { at, ..self }
    }

    /// Times itself.
    pub fn square(self) -> Expression<'a> {
        self * self
    }

    /// The larger one of both.
    pub fn maximum(self, other: impl Term<'a>) -> Expression<'a> {
        self.binary(BinaryOp::Max, other)
    }

    /// The smaller one of both.
    pub fn minimum(self, other: impl Term<'a>) -> Expression<'a> {
        self.binary(BinaryOp::Min, other)
    }
}

macro_rules! unary {
    ($($(#[$meta:meta])* $name:ident = $op:ident;)*) => {
        impl<'a> Expression<'a> {$(
            $(#[$meta])*
            pub fn $name(self) -> Expression<'a> {
                self.unary(UnaryOp::$op)
            }
        )*}
    };
}
unary! {
    /// The square root.
    sqrt = Sqrt;
    /// 1 by it.
    recip = Recip;
    /// Without its sign.
    abs = Abs;
    /// −1, 0 or 1.
    sign = Sign;
    /// e to its power.
    exp = Exp;
    /// The natural logarithm.
    log = Log;
    /// The hyperbolic tangent.
    tanh = Tanh;
    /// Zero instead of what is negative.
    relu = Relu;
}

macro_rules! operators {
    ($($trait:ident $name:ident;)*) => {$(
        impl<'a, T: Term<'a>> ops::$trait<T> for Expression<'a> {
            type Output = Expression<'a>;
            fn $name(self, other: T) -> Expression<'a> {
                self.binary(BinaryOp::$trait, other)
            }
        }
    )*};
}
operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl<'a> ops::Neg for Expression<'a> {
    type Output = Expression<'a>;
    fn neg(self) -> Expression<'a> {
        self.unary(UnaryOp::Neg)
    }
}
