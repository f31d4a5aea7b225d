//! The part of the recorded graph that one plan computes, with sources as positions.

use crate::call::Origin;
use crate::dtype::DType;
use crate::op::Op;
use crate::shape::{MAX_RANK, Shape};
use smallvec::SmallVec;

pub(crate) struct PlanNode {
    pub op: Op,
    pub sources: SmallVec<[usize; 3]>,
    pub shape: Shape,
    pub dtype: DType,
    pub origin: Origin,
    /// Its values exist already.
    pub input: bool,
    /// An input that nobody else will read: its memory may be written.
    pub donated: bool,
    /// Its values must outlive the plan.
    pub keep: bool,
    /// A backward pass may follow that asks for what its gradient is made of.
    pub taped: bool,
}

/// Nodes in an order in which sources come first.
pub(crate) struct PlanGraph {
    pub nodes: Vec<PlanNode>,
}

impl PlanGraph {
    /// The node whose value this one names, or brings back to where it was before it was permuted.
    pub fn resolve(&self, n: usize) -> usize {
        let n = self.named(n);
        let Some((outer, source)) = self.permuted(n) else { return n };
        let Some((inner, before)) = self.permuted(self.named(source)) else { return n };
        let back = (0..self.nodes[n].shape.rank()).all(|k| inner[outer[k] as usize] as usize == k);
        if back { self.resolve(before) } else { n }
    }

    /// The node whose value this one names.
    fn named(&self, mut n: usize) -> usize {
        while !self.nodes[n].input && self.nodes[n].op.renames() {
            n = self.nodes[n].sources[0];
        }
        n
    }

    /// The order and the source of a node that permutes axes.
    fn permuted(&self, n: usize) -> Option<(&[u8; MAX_RANK], usize)> {
        match &self.nodes[n] {
            PlanNode { op: Op::Permute(order), sources, input: false, .. } => Some((order, sources[0])),
            _ => None,
        }
    }

    /// The value of `n` that is not just moved: through movement and names.
    pub fn base(&self, n: usize) -> usize {
        let mut n = self.resolve(n);
        while !self.nodes[n].input && self.nodes[n].op.moves() {
            n = self.resolve(self.nodes[n].sources[0]);
        }
        n
    }

    pub fn source(&self, n: usize, k: usize) -> usize {
        self.resolve(self.nodes[n].sources[k])
    }

    /// The slots that a kernel may see of `slots`: where something is asserted, one is for what failed.
    pub fn most_slots(&self, slots: usize) -> usize {
        let asserts = |n: &PlanNode| !n.input && matches!(n.op, Op::Assert(_));
        slots - usize::from(self.nodes.iter().any(asserts))
    }

    /// Whether a kernel computes it (it is neither there already nor a name, a movement or a rule).
    pub fn computes(&self, n: usize) -> bool {
        let node = &self.nodes[n];
        !node.input && !node.op.renames() && !node.op.moves() && !node.op.is_rule()
    }
}
