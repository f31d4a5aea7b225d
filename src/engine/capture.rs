//! Collects what must be computed, and writes down its structure: the key under which plans are found.

use crate::graph::{Node, Sources, Storage};
use crate::op::Op;
use crate::plan::executor::Argument;
use crate::plan::graph::{PlanGraph, PlanNode};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// In a node's mark: being visited in this pass, no place yet.
const OPEN: u64 = u32::MAX as u64;

#[derive(Default)]
pub(super) struct Capture {
    pub nodes: Vec<Arc<Node>>,
    pub key: Vec<u64>,
    sources: Vec<SmallVec<[u32; 3]>>,
    inputs: Vec<Option<Storage>>,
    /// How often other captured nodes use each node.
    uses: Vec<u32>,
    keep: Vec<bool>,
    donated: Vec<bool>,
    pass: u64,
    stack: Vec<Visit>,
}

enum Visit {
    Enter(Arc<Node>),
    Leave(Arc<Node>, Sources, Option<Storage>),
}

impl Capture {
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.key.clear();
        self.sources.clear();
        self.inputs.clear();
        self.uses.clear();
        self.keep.clear();
        self.donated.clear();
        self.stack.clear();
    }

    fn place(&self, node: &Node) -> Option<u32> {
        let mark = node.mark.load(Relaxed);
        (mark >> 32 == self.pass).then_some(mark as u32)
    }

    /// Walks from the roots to what is there already.
    pub fn collect(&mut self, roots: Vec<Arc<Node>>, pending: Vec<Arc<Node>>, fuse: bool) {
        self.clear();
        self.pass += 1;
        let root_count = roots.len();
        let mut root_places = SmallVec::<[u32; 8]>::new();
        for (k, root) in roots.into_iter().chain(pending).enumerate() {
            let node = root.clone();
            self.visit(root);
            if k < root_count {
                root_places.push(self.place(&node).expect("a root was visited"));
            }
        }
        self.count_uses();
        self.decide_keeping(&root_places);
        self.write_key(fuse);
    }

    fn visit(&mut self, root: Arc<Node>) {
        self.stack.push(Visit::Enter(root));
        while let Some(visit) = self.stack.pop() {
            match visit {
                Visit::Enter(node) => {
                    if self.place(&node).is_some() {
                        continue;
                    }
                    node.mark.store(self.pass << 32 | OPEN, Relaxed);
                    let (sources, storage) = node.inspect(|sources, storage| match storage {
                        Some(s) => (Sources::new(), Some(s.clone())),
                        None => (sources.iter().cloned().collect(), None),
                    });
                    // A name's gradient has other sources; its value has one.
                    let reach = if node.op.renames() { sources.len().min(1) } else { sources.len() };
                    let enter: SmallVec<[Arc<Node>; 4]> = sources[..reach].iter().rev().cloned().collect();
                    self.stack.push(Visit::Leave(node, sources, storage));
                    self.stack.extend(enter.into_iter().map(Visit::Enter));
                }
                Visit::Leave(node, sources, storage) => {
                    let reach = if node.op.renames() { sources.len().min(1) } else { sources.len() };
                    let places = sources[..reach].iter().map(|s| self.place(s).expect("sources come first"));
                    self.sources.push(places.collect());
                    drop(sources);
                    node.mark.store(self.pass << 32 | self.nodes.len() as u64, Relaxed);
                    self.inputs.push(storage);
                    self.nodes.push(node);
                }
            }
        }
    }

    fn count_uses(&mut self) {
        self.uses.resize(self.nodes.len(), 0);
        for sources in &self.sources {
            for &s in sources {
                self.uses[s as usize] += 1;
            }
        }
    }

    /// Whether anybody but captured nodes holds it: a tensor, or a node that is not asked for now.
    fn held(&self, n: usize) -> bool {
        Arc::strong_count(&self.nodes[n]) > self.uses[n] as usize + 1
    }

    /// Where `n`'s value comes from, through names and, where asked, movement.
    fn origin_of(&self, mut n: usize, through: impl Fn(&Op) -> bool) -> usize {
        while self.inputs[n].is_none() && (self.nodes[n].op.renames() || through(&self.nodes[n].op)) {
            n = self.sources[n][0] as usize;
        }
        n
    }

    fn is_computed(&self, n: usize) -> bool {
        let op = &self.nodes[n].op;
        self.inputs[n].is_none() && !op.renames() && !op.moves() && !op.is_rule()
    }

    fn decide_keeping(&mut self, roots: &[u32]) {
        self.keep.resize(self.nodes.len(), false);
        self.donated.resize(self.nodes.len(), false);
        for &root in roots {
            let target = self.origin_of(root as usize, |op| matches!(op, Op::Reshape));
            self.keep[target] = self.inputs[target].is_none();
        }
        for n in 0..self.nodes.len() {
            let node = &self.nodes[n];
            if let Some(storage) = &self.inputs[n] {
                // The node and this capture hold the storage.
                self.donated[n] = !self.held(n) && Arc::strong_count(storage) == 2;
                continue;
            }
            // A backward pass may follow: it must not find the expensive part gone.
            let taped =
                node.tape_needed() && (node.op.stands_alone() || matches!(node.op, Op::Reduce { .. }));
            if taped || self.held(n) {
                let target =
                    if node.op.moves() || node.op.renames() { self.origin_of(n, Op::moves) } else { n };
                if self.is_computed(target) {
                    self.keep[target] = true;
                }
            }
        }
    }

    fn write_key(&mut self, fuse: bool) {
        let key = &mut self.key;
        key.push(u64::from(fuse));
        for (n, node) in self.nodes.iter().enumerate() {
            let flags = u64::from(self.keep[n]) | u64::from(self.donated[n]) << 1 | (node.dtype as u64) << 8;
            key.push(flags | (node.shape.rank() as u64) << 16 | u64::from(self.inputs[n].is_some()) << 2);
            key.extend(node.shape.iter().map(|&e| e as u64));
            if self.inputs[n].is_none() {
                node.op.encode(key);
                key.extend(self.sources[n].iter().map(|&s| u64::from(s)));
            }
        }
    }

    pub fn nothing_to_do(&self) -> bool {
        !self.keep.contains(&true) && self.nodes.iter().all(|n| n.is_realized() || !n.op.renames())
    }

    /// The captured graph for the planner.
    pub fn graph(&self) -> PlanGraph {
        let node = |n: usize| {
            let node = &self.nodes[n];
            PlanNode {
                op: if self.inputs[n].is_some() { Op::Data } else { node.op.clone() },
                sources: self.sources[n].iter().map(|&s| s as usize).collect(),
                shape: node.shape,
                dtype: node.dtype,
                origin: node.origin,
                input: self.inputs[n].is_some(),
                donated: self.donated[n],
                keep: self.keep[n],
            }
        };
        PlanGraph { nodes: (0..self.nodes.len()).map(node).collect() }
    }

    /// An input's storage; one that was given away is not held here any more.
    pub fn take_input(&mut self, n: usize) -> Storage {
        self.inputs[n].clone().expect("an input of the plan has storage")
    }

    /// Gives computed values to their nodes, and to the names of those.
    pub fn hand_out(&mut self, outputs: impl Iterator<Item = (usize, Storage)>) {
        let mut storages: Vec<Option<Storage>> = std::mem::take(&mut self.inputs);
        let mut computed = vec![false; self.nodes.len()];
        for (n, storage) in outputs {
            self.nodes[n].realize(storage.clone());
            storages[n] = Some(storage);
            computed[n] = true;
        }
        for n in 0..self.nodes.len() {
            if storages[n].is_none()
                && (self.nodes[n].op.renames() || matches!(self.nodes[n].op, Op::Reshape))
            {
                let source = self.sources[n][0] as usize;
                if let Some(storage) = storages[source].clone()
                    && (self.nodes[n].op.renames() || is_held_beyond(&self.nodes[n], self.uses[n]))
                {
                    self.nodes[n].realize(storage.clone());
                    storages[n] = Some(storage);
                }
            }
        }
    }
}

fn is_held_beyond(node: &Arc<Node>, uses: u32) -> bool {
    Arc::strong_count(node) > uses as usize + 1
}

/// Whether a tensor may still name this node after its capture ends.
pub(super) fn is_held(node: &Arc<Node>) -> bool {
    Arc::strong_count(node) > 1
}

/// The changing part of a rule.
pub(super) fn argument(op: &Op) -> Argument {
    match op {
        Op::Const(value) => Argument::Number(*value),
        Op::Random { key, .. } => Argument::Key(*key),
        op => unreachable!("{} has no argument", op.name()),
    }
}
