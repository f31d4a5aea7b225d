//! The part of the recorded graph that one plan computes, with sources as positions.

use crate::call::Origin;
use crate::dtype::DType;
use crate::op::Op;
use crate::shape::{MAX_RANK, Shape};
use smallvec::SmallVec;

pub struct PlanNode {
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
    /// A value inside of the plan that lies in the host's memory.
    pub on_host: bool,
}

/// Nodes in an order in which sources come first.
pub struct PlanGraph {
    pub nodes: Vec<PlanNode>,
    /// What each node resolves to, and its base.
    resolved: Vec<(usize, usize)>,
}

impl PlanGraph {
    pub fn new(nodes: Vec<PlanNode>) -> PlanGraph {
        let mut graph = PlanGraph { nodes, resolved: Vec::new() };
        graph.resolve_all();
        graph
    }

    /// A value inside of the plan of the type and shape of another one, in the device's memory or in the host's.
    pub fn add_copy(&mut self, of: usize, on_host: bool) -> usize {
        let PlanNode { shape, dtype, origin, .. } = self.nodes[of];
        let copy = self.nodes.len();
        let (op, sources) = (Op::Data, SmallVec::new());
        let [input, donated, keep, taped] = [false; 4];
        self.nodes.push(PlanNode { op, sources, shape, dtype, origin, input, donated, keep, taped, on_host });
        self.resolved.push((copy, copy));
        copy
    }

    /// Forgets the nodes behind the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.nodes.truncate(count);
        self.resolved.truncate(count);
    }

    /// Follows names and movement once for all: nodes are not to get other ops or sources after this.
    pub fn resolve_all(&mut self) {
        self.resolved.clear();
        // What a node names, through all names.
        let mut names: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for n in 0..self.nodes.len() {
            let node = &self.nodes[n];
            let named = if !node.input && node.op.is_alias() { names[node.sources[0]] } else { n };
            names.push(named);
            let resolved = if named < n { self.resolved[named].0 } else { self.unpermuted(n, &names) };
            let at = &self.nodes[resolved];
            let base = match !at.input && at.op.is_movement() {
                true => self.resolved[at.sources[0]].1,
                false => resolved,
            };
            self.resolved.push((resolved, base));
        }
    }

    /// What `n` brings back to where it was before it was permuted, or itself.
    fn unpermuted(&self, n: usize, names: &[usize]) -> usize {
        let Some((outer, source)) = self.permuted(n) else { return n };
        let Some((inner, before)) = self.permuted(names[source]) else { return n };
        let back = (0..self.nodes[n].shape.rank()).all(|k| inner[outer[k] as usize] as usize == k);
        if back { self.resolved[before].0 } else { n }
    }

    /// The node whose value this one names, or brings back to where it was before it was permuted.
    pub fn resolve(&self, n: usize) -> usize {
        self.resolved[n].0
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
        self.resolved[n].1
    }

    pub fn source(&self, n: usize, k: usize) -> usize {
        self.resolve(self.nodes[n].sources[k])
    }

    /// Whether it asserts something of its source.
    pub fn asserts(&self, n: usize) -> bool {
        matches!(self.nodes[n].op, Op::Assert(_))
    }

    /// Whether a kernel computes it (it is neither there already nor a name, a movement or a rule).
    pub fn computes(&self, n: usize) -> bool {
        let node = &self.nodes[n];
        !node.input && !node.op.is_alias() && !node.op.is_movement() && !node.op.is_rule()
    }
}
