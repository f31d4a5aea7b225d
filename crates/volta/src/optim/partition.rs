//! Cuts the nodes of a formula into values that are computed for each parameter.

use super::expression::ExprNode;
use crate::dtype::DType;
use crate::op::formula::{FormulaStep, FusedElementwise};
use std::sync::Arc;

/// Where a source of a formula comes from, or a value.
pub(super) enum ExprSource {
    Parameter,
    Gradient,
    State(usize),
    Condition,
    Number(usize),
    /// What another formula gives.
    Value(usize),
}

/// The nodes of an expression graph, and which of them are values of their own.
pub(super) struct ExprPartition {
    nodes: Vec<ExprNode>,
    /// The number of the value that a node is; others are part of the formulas that use them.
    value: Vec<Option<usize>>,
}

impl ExprPartition {
    /// Each of `results` is a value of its own, and so is what several of them use.
    pub fn cut(nodes: Vec<ExprNode>, results: &[usize]) -> ExprPartition {
        let mut whole: Vec<bool> =
            (0..nodes.len()).map(|k| results.contains(&k) && nodes[k].applied().is_some()).collect();
        // The formula that each node is part of: known when all its users were seen.
        let mut part_of: Vec<Option<usize>> = vec![None; nodes.len()];
        for k in (0..nodes.len()).rev() {
            let Some((_, of)) = nodes[k].applied() else { continue };
            if whole[k] {
                part_of[k] = Some(k);
            }
            // Nobody uses a node that is part of nothing.
            let Some(own) = part_of[k] else { continue };
            for s in of.into_iter().filter(|&s| nodes[s].applied().is_some()) {
                whole[s] |= part_of[s].is_some_and(|other| other != own);
                part_of[s] = Some(own);
            }
        }
        let mut next = 0;
        let number = |whole: bool| {
            let number = whole.then_some(next);
            next += usize::from(whole);
            number
        };
        let value = whole.into_iter().map(number).collect();
        ExprPartition { nodes, value }
    }

    /// Where the value of node `k` is, for those that use it.
    pub fn source(&self, k: usize) -> ExprSource {
        match (&self.nodes[k], self.value[k]) {
            (ExprNode::Parameter, _) => ExprSource::Parameter,
            (ExprNode::Gradient, _) => ExprSource::Gradient,
            (ExprNode::State(k), _) => ExprSource::State(*k),
            (ExprNode::Condition, _) => ExprSource::Condition,
            (ExprNode::Number(k), _) => ExprSource::Number(*k),
            (_, Some(value)) => ExprSource::Value(value),
            (_, None) => unreachable!("a part of a formula is written out there"),
        }
    }

    /// All values, in an order in which everyone finds what it uses: a formula, and what it is applied to.
    pub fn values(&self, dtype: DType) -> Vec<(Arc<FusedElementwise>, Vec<ExprSource>)> {
        let whole = |k: &usize| self.value[*k].is_some();
        (0..self.nodes.len()).filter(whole).map(|k| self.formula(k, dtype)).collect()
    }

    /// The formula of node `k` with all that is part of it.
    fn formula(&self, k: usize, dtype: DType) -> (Arc<FusedElementwise>, Vec<ExprSource>) {
        let (mut steps, mut sources, mut written) = (Vec::new(), Vec::new(), vec![None; self.nodes.len()]);
        self.write(k, true, dtype, &mut steps, &mut sources, &mut written);
        (FusedElementwise::of(steps), sources)
    }

    fn write(
        &self,
        k: usize,
        result: bool,
        dtype: DType,
        steps: &mut Vec<FormulaStep>,
        sources: &mut Vec<ExprSource>,
        written: &mut [Option<usize>],
    ) -> usize {
        if let Some(step) = written[k] {
            return step;
        }
        let step = match self.nodes[k].applied() {
            Some((op, of)) if result || self.value[k].is_none() => {
                let of = of.iter().map(|&s| self.write(s, false, dtype, steps, sources, written)).collect();
                FormulaStep::Apply { op, of, dtype }
            }
            _ => {
                sources.push(self.source(k));
                FormulaStep::Source(sources.len() - 1)
            }
        };
        steps.push(step);
        written[k] = Some(steps.len() - 1);
        steps.len() - 1
    }
}
