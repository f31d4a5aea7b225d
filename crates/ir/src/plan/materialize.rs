//! Which values get memory. Everything else is computed where it is needed, from what is in memory.

use super::graph::PlanGraph;
use super::lower_loops::operand;
use crate::op::formula::FormulaStep;
use crate::op::{BinaryOp, Op, UnaryOp};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashSet};

/// A value used by several kernels is computed again in each if that costs at most this much…
const CHEAP_RECOMPUTE: u32 = 24;
/// …and a kernel reads at most this many large tensors for one value…
const MAX_LOADS: usize = 6;
/// …or this many, if it is a single number, for which reading costs nothing…
const MAX_SCALAR_LOADS: usize = 96;
/// …through at most this many ops, which bounds programs and the recursion that writes them.
const DEEPEST: u32 = 96;
/// Elements of a table that no first cache holds: to pick from it is to read a large tensor, however many are picked.
const LARGE_TABLE: usize = 1 << 16;

/// What is put into memory.
pub struct Materialized {
    /// One flag a node.
    pub flags: Vec<bool>,
    /// Where kernels see only so many slots.
    crowding: Option<Crowding>,
}

impl Materialized {
    /// Stores one more value, and what has to be stored then, where kernels are `fuse`d. Gives all of these.
    pub fn add(&mut self, graph: &PlanGraph, n: usize, fuse: bool) -> Vec<usize> {
        self.flags[n] = true;
        let mut added = vec![n];
        if fuse && let Some(crowding) = &mut self.crowding {
            crowding.look_again(n, &self.flags);
            added.extend(crowding.spill(graph, &mut self.flags));
        }
        added
    }
}

/// Decides what is put into memory.
pub fn choose(graph: &PlanGraph, fuse: bool, most_slots: usize) -> Materialized {
    let mut stored: Vec<bool> = graph.nodes.iter().map(|n| n.keep && !n.input).collect();
    for (n, stored) in stored.iter_mut().enumerate() {
        let folds = matches!(graph.nodes[n].op, Op::Reduce { .. } | Op::ArgReduce { .. });
        let alone = graph.nodes[n].op.needs_own_kernel();
        *stored |= graph.computes(n) && (alone || folds || !fuse);
    }
    for n in 0..graph.nodes.len() {
        if graph.computes(n) && graph.nodes[n].op.needs_own_kernel() {
            require_operands(graph, &mut stored, n);
        }
    }
    if !fuse {
        return Materialized { flags: stored, crowding: None };
    }
    share(graph, &mut stored, most_slots);
    let crowding = (most_slots < usize::MAX).then(|| {
        let mut crowding = Crowding::new(graph, most_slots);
        crowding.spill(graph, &mut stored);
        crowding
    });
    Materialized { flags: stored, crowding }
}

/// Stores what a kernel of its own kind reads.
fn require_operands(graph: &PlanGraph, stored: &mut [bool], n: usize) {
    for (k, &s) in graph.nodes[n].sources.iter().enumerate() {
        let s = graph.resolve(s);
        let in_order = matches!(&graph.nodes[n].op, Op::Native(op) if op.needs_contiguous(k));
        loop {
            match operand(graph, stored, s) {
                Err(first) => stored[first] = true,
                Ok(o) if in_order && !o.is_contiguous() => stored[s] = true,
                Ok(_) => break,
            }
        }
    }
}

#[derive(Clone, Default)]
struct RecomputeCost {
    cost: u32,
    /// Ops between it and memory.
    depth: u32,
    /// The large tensors that are read for it, and the elements that each counts for.
    loads: SmallVec<[(usize, usize); 4]>,
    /// All tensors that are read for it, and [`REPORT`] where it asserts something.
    slots: SmallVec<[usize; 8]>,
}

/// The slot in which a kernel that asserts something reports what failed.
const REPORT: usize = usize::MAX;

impl RecomputeCost {
    fn load(&mut self, slot: usize, elements: usize) {
        match self.loads.iter_mut().find(|(known, _)| *known == slot) {
            Some((_, known)) => *known = elements.max(*known),
            None => self.loads.push((slot, elements)),
        }
    }

    fn read(&mut self, slot: usize) {
        if !self.slots.contains(&slot) {
            self.slots.push(slot);
        }
    }
}

fn own_cost(op: &Op) -> u32 {
    match op {
        Op::Unary(op) => match op {
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Relu | UnaryOp::Not | UnaryOp::Floor | UnaryOp::Sign => 1,
            UnaryOp::Recip
            | UnaryOp::Sqrt
            | UnaryOp::Rsqrt
            | UnaryOp::Ceil
            | UnaryOp::Round
            | UnaryOp::Trunc => 2,
            _ => 8,
        },
        Op::Binary(BinaryOp::Pow | BinaryOp::Mod) => 16,
        // An argument is there already, and what is asserted is computed anyway.
        Op::Const(_) | Op::Assert(_) => 0,
        Op::Random { .. } => CHEAP_RECOMPUTE,
        Op::Gather { .. } => 4,
        Op::FusedElementwise(formula) => formula
            .steps
            .iter()
            .map(|step| match step {
                FormulaStep::Source(_) => 0,
                FormulaStep::Apply { op, .. } => own_cost(op),
            })
            .sum(),
        _ => 1,
    }
}

/// Stores elementwise values that would be expensive to compute once more for every use.
fn share(graph: &PlanGraph, stored: &mut [bool], most_slots: usize) {
    let uses = uses(graph);
    let mut efforts: Vec<RecomputeCost> = vec![RecomputeCost::default(); graph.nodes.len()];
    for n in 0..graph.nodes.len() {
        if graph.nodes[n].input {
            continue;
        }
        if stored[n] {
            if graph.computes(n) && !graph.nodes[n].op.needs_own_kernel() {
                limit_slots(graph, n, stored, &mut efforts, most_slots);
            }
            continue;
        }
        let deepest = graph.nodes[n].sources.iter().map(|&s| efforts[s].depth).max();
        efforts[n].depth = deepest.map_or(0, |d| d + 1);
        if efforts[n].depth > DEEPEST && !graph.nodes[n].op.is_alias() {
            stored[n] = true;
            efforts[n].depth = 0;
            continue;
        }
        if !graph.computes(n) {
            continue;
        }
        let size = graph.nodes[n].shape.numel();
        let is_large = |elements: usize| elements * 8 >= size;
        let depth = efforts[n].depth;
        limit_slots(graph, n, stored, &mut efforts, most_slots);
        let mut effort =
            RecomputeCost { cost: own_cost(&graph.nodes[n].op), depth, ..RecomputeCost::default() };
        let picks = matches!(graph.nodes[n].op, Op::Gather { .. });
        let counts_slots = most_slots < usize::MAX;
        if counts_slots && graph.asserts(n) {
            effort.read(REPORT);
        }
        for (k, &s) in graph.nodes[n].sources.iter().enumerate() {
            let base = graph.base(s);
            if graph.nodes[base].input || stored[base] {
                if counts_slots {
                    effort.read(base);
                }
                let elements = graph.nodes[base].shape.numel();
                let from_table = picks && k == 0 && elements >= LARGE_TABLE;
                let elements = if from_table { elements.max(size) } else { elements };
                if is_large(elements) {
                    effort.load(base, elements);
                }
                continue;
            }
            effort.cost += if graph.nodes[base].op.is_rule() {
                own_cost(&graph.nodes[base].op)
            } else {
                efforts[base].cost
            };
            efforts[base].slots.iter().for_each(|&slot| effort.read(slot));
            // What is large beside a bias may be small beside what it is added to.
            for &(slot, elements) in efforts[base].loads.iter().filter(|(_, elements)| is_large(*elements)) {
                effort.load(slot, elements);
            }
        }
        let (count, widest) = uses[n];
        let repeated = count > 1 && (effort.loads.len() > 1 || effort.cost > CHEAP_RECOMPUTE);
        let spread = widest > 2 * size && effort.cost >= 4;
        let most_loads = if size > 1 { MAX_LOADS } else { MAX_SCALAR_LOADS };
        stored[n] = repeated || spread || effort.loads.len() > most_loads;
        if stored[n] {
            effort = RecomputeCost::default();
        }
        efforts[n] = effort;
    }
}

/// Stores sources of what would still read too many slots: estimates are made while it is not known yet what else gets memory.
struct Crowding {
    most_slots: usize,
    /// Who has each node as a source.
    users: Vec<SmallVec<[u32; 2]>>,
    /// Stored values that may read other slots than when they were looked at last.
    again: BTreeSet<usize>,
}

impl Crowding {
    fn new(graph: &PlanGraph, most_slots: usize) -> Crowding {
        let mut users = vec![SmallVec::new(); graph.nodes.len()];
        for (n, node) in graph.nodes.iter().enumerate().filter(|(_, node)| !node.input) {
            node.sources.iter().for_each(|&s| users[graph.resolve(s)].push(n as u32));
        }
        Crowding { most_slots, users, again: (0..graph.nodes.len()).collect() }
    }

    /// Notes those that read a value which was not stored before, and the value itself.
    fn look_again(&mut self, n: usize, stored: &[bool]) {
        self.again.insert(n);
        let (mut queue, mut seen) = (vec![n], HashSet::new());
        while let Some(n) = queue.pop() {
            for &user in &self.users[n] {
                let user = user as usize;
                if stored[user] {
                    self.again.insert(user);
                } else if seen.insert(user) {
                    queue.push(user);
                }
            }
        }
    }

    /// Looks at all that is noted. Gives what is stored now.
    fn spill(&mut self, graph: &PlanGraph, stored: &mut [bool]) -> Vec<usize> {
        let mut added = Vec::new();
        // What is stored on the way comes before what needs it, and is looked at later; what has been looked at already has its
        // turn the next time.
        let mut end = usize::MAX;
        while let Some(&n) = self.again.range(..end).next_back() {
            self.again.remove(&n);
            end = n;
            if !stored[n] || graph.nodes[n].op.needs_own_kernel() {
                continue;
            }
            while slots_of(graph, stored, n) >= self.most_slots {
                let free = graph.nodes[n].sources.iter().map(|&s| graph.base(s));
                let free = free.filter(|&base| graph.computes(base) && !stored[base]);
                let Some(widest) = free.max_by_key(|&base| slots_of(graph, stored, base)) else { break };
                stored[widest] = true;
                added.push(widest);
                self.look_again(widest, stored);
                self.again.remove(&n);
            }
        }
        added
    }
}

/// How many slots a kernel for this node reads, and reports to where it asserts something. What is moved, and kept so, has one
/// of its own.
fn slots_of(graph: &PlanGraph, stored: &[bool], node: usize) -> usize {
    let (mut seen, mut slots, mut asserts) = (Vec::new(), 0, graph.asserts(node));
    let mut queue: Vec<usize> = graph.nodes[node].sources.iter().map(|&s| graph.resolve(s)).collect();
    while let Some(n) = queue.pop() {
        if seen.contains(&n) {
            continue;
        }
        seen.push(n);
        if graph.nodes[n].input || stored[n] {
            slots += 1;
        } else {
            asserts |= graph.asserts(n);
            queue.extend(graph.nodes[n].sources.iter().map(|&s| graph.resolve(s)));
        }
    }
    slots + usize::from(asserts)
}

/// Stores sources of `n` until a kernel can read what `n` is made of; it writes `n` itself, too.
fn limit_slots(
    graph: &PlanGraph,
    n: usize,
    stored: &mut [bool],
    efforts: &mut [RecomputeCost],
    most_slots: usize,
) {
    if most_slots == usize::MAX {
        return;
    }
    loop {
        let mut all = RecomputeCost::default();
        if graph.asserts(n) {
            all.read(REPORT);
        }
        let mut widest = None;
        for &s in &graph.nodes[n].sources {
            let base = graph.base(s);
            if graph.nodes[base].input || stored[base] {
                all.read(base);
                continue;
            }
            efforts[base].slots.iter().for_each(|&slot| all.read(slot));
            if graph.computes(base)
                && widest.is_none_or(|w: usize| efforts[w].slots.len() < efforts[base].slots.len())
            {
                widest = Some(base);
            }
        }
        match widest {
            Some(source) if all.slots.len() >= most_slots => {
                stored[source] = true;
                efforts[source] = RecomputeCost::default();
            }
            _ => return,
        }
    }
}

/// For every node: how many computed nodes use it, through movement, and the size of the largest.
fn uses(graph: &PlanGraph) -> Vec<(usize, usize)> {
    let mut uses = vec![(0, 0); graph.nodes.len()];
    for n in 0..graph.nodes.len() {
        if !graph.computes(n) {
            continue;
        }
        let size = graph.nodes[n].shape.numel();
        let mut bases: SmallVec<[usize; 4]> = graph.nodes[n].sources.iter().map(|&s| graph.base(s)).collect();
        bases.sort_unstable();
        bases.dedup();
        for b in bases {
            uses[b] = (uses[b].0 + 1, uses[b].1.max(size));
        }
    }
    uses
}
