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
    graph: &'a RefCell<ExprGraph>,
    at: usize,
}

/// What is written down of a formula.
#[derive(Default)]
pub(super) struct ExprGraph {
    pub nodes: Vec<ExprNode>,
    /// The numbers that the nodes name: they change from step to step, and the nodes do not.
    pub numbers: SmallVec<[Factor; 8]>,
    /// What a state is at first, for those that the formula uses.
    pub initial: SmallVec<[Option<f64>; 3]>,
    /// The states that get new values, and the nodes with these values.
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
    /// The op it applies to earlier nodes, if it does.
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
    pub fn write(&mut self, node: ExprNode) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }
}

/// What an elementwise formula is made of.
pub struct Inputs<'a>(&'a RefCell<ExprGraph>);

impl<'a> Inputs<'a> {
    /// For `states` states of each parameter.
    pub(super) fn on(graph: &'a RefCell<ExprGraph>, states: usize) -> Inputs<'a> {
        {
            let mut graph = graph.borrow_mut();
            graph.nodes.extend([ExprNode::Parameter, ExprNode::Gradient]);
            graph.initial.resize(states, None);
        }
        Inputs(graph)
    }

    /// The parameter.
    pub fn parameter(&self) -> Expression<'a> {
        Expression { graph: self.0, at: 0 }
    }

    /// Its gradient.
    pub fn gradient(&self) -> Expression<'a> {
        Expression { graph: self.0, at: 1 }
    }

    /// What is remembered under the name [`Options::STATE`](super::Options::STATE)`[k]`; zeros at first.
    pub fn state(&self, k: usize) -> Expression<'a> {
        self.state_or(k, 0.0)
    }

    /// [`state`](Self::state) that is `initial` everywhere at first.
    pub fn state_or(&self, k: usize, initial: f64) -> Expression<'a> {
        let mut graph = self.0.borrow_mut();
        graph.initial[k].get_or_insert(initial);
        let known = graph.nodes.iter().position(|node| *node == ExprNode::State(k));
        Expression { graph: self.0, at: known.unwrap_or_else(|| graph.write(ExprNode::State(k))) }
    }

    /// Remembers another value from the next step on.
    pub fn set_state(&self, k: usize, value: Expression<'a>) {
        let mut graph = self.0.borrow_mut();
        graph.initial[k].get_or_insert(0.0);
        graph.states.retain(|(known, _)| *known != k);
        graph.states.push((k, value.at));
    }
}

/// The other operand of an op on an [`Expression`].
pub trait Term<'a> {
    /// Its node on the graph of `other`.
    #[doc(hidden)]
    fn node(self, other: Expression<'a>) -> usize;
}

impl<'a> Term<'a> for Expression<'a> {
    fn node(self, _: Expression<'a>) -> usize {
        self.at
    }
}

impl<'a> Term<'a> for &Factor {
    fn node(self, other: Expression<'a>) -> usize {
        let mut graph = other.graph.borrow_mut();
        graph.numbers.push(self.clone());
        let number = graph.numbers.len() - 1;
        graph.write(ExprNode::Number(number))
    }
}

impl<'a> Term<'a> for f64 {
    fn node(self, other: Expression<'a>) -> usize {
        Factor::Number(self).node(other)
    }
}

impl<'a> Expression<'a> {
    pub(super) fn node(self) -> usize {
        self.at
    }

    fn unary(self, op: UnaryOp) -> Expression<'a> {
        let at = self.graph.borrow_mut().write(ExprNode::Unary(op, self.at));
        Expression { at, ..self }
    }

    fn binary(self, op: BinaryOp, other: impl Term<'a>) -> Expression<'a> {
        let other = other.node(self);
        let at = self.graph.borrow_mut().write(ExprNode::Binary(op, self.at, other));
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
