//! Collects what must be computed, and writes down its structure: the key under which plans are found.

use super::check_values;
use super::dry_run::is_assumed;
use crate::call::Origin;
use crate::error::Result;
use crate::graph::{Node, Sources, Storage};
use crate::op::{BinaryOp, NativeOp, Op};
use crate::plan::executor::Argument;
use crate::plan::graph::{PlanGraph, PlanNode};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The flag of a plan with guards, in the first of its circumstances.
pub(super) const GUARDED: u64 = 2;

#[derive(Default)]
pub(super) struct Capture {
    pub nodes: Vec<Arc<Node>>,
    pub key: Vec<u64>,
    sources: Vec<SmallVec<[u32; 4]>>,
    inputs: Vec<Option<Storage>>,
    /// How often other captured nodes use each node.
    uses: Vec<u32>,
    keep: Vec<bool>,
    donated: Vec<bool>,
    /// Views, rules and what has stand-ins, if somebody holds it: they stay pending.
    pending: Vec<u32>,
    order: Vec<(u64, u32)>,
    moved: Vec<u32>,
    pass: u64,
    /// Whether some of the inputs are lost.
    gone: bool,
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
        self.pending.clear();
    }

    /// Walks from the roots to what is there already. The circumstances that shape a plan become part of its key.
    pub fn collect(&mut self, roots: Vec<Arc<Node>>, pending: Vec<Arc<Node>>, cache_context: [u64; 3]) {
        self.clear();
        self.pass += 1;
        let wanted: SmallVec<[u64; 8]> = roots.iter().map(|r| r.id).collect();
        roots.into_iter().for_each(|node| self.add(node));
        let asked = self.nodes.len();
        pending.into_iter().for_each(|node| self.add(node));
        self.gone = self.walk();
        if self.gone && self.nodes.len() > asked {
            // What is pending may be lost with its device, or with a run that failed. It must not take along what was asked for.
            let asked: Vec<Arc<Node>> = self.nodes.drain(..asked).collect();
            self.clear();
            self.pass += 1;
            asked.into_iter().for_each(|node| self.add(node));
            self.gone = self.walk();
        }
        self.sort_by_age();
        self.count_uses();
        self.decide_keeping(&wanted);
        self.decide_donations(cache_context[0] & GUARDED != 0);
        self.write_key(cache_context);
    }

    /// Adds all that is needed for the nodes that are there. Whether any of it is gone.
    fn walk(&mut self) -> bool {
        let mut gone = false;
        // Breadth first, every node looked at once; sources by the place they were found at.
        let mut next = 0;
        let mut found = Sources::new();
        while next < self.nodes.len() {
            let (mut places, mut storage) = (SmallVec::new(), None);
            let (node, known) = (&self.nodes[next], self.nodes.len());
            node.inspect(|sources, values| {
                storage = values.cloned();
                let reach = if values.is_some() { 0 } else { node.op.value_sources(sources.len()) };
                for source in &sources[..reach] {
                    let place = self.place_of(source).unwrap_or_else(|| {
                        let place = (known + found.len()) as u32;
                        source.mark.store(self.pass << 32 | u64::from(place), Relaxed);
                        found.push(source.clone());
                        place
                    });
                    places.push(place);
                }
            });
            self.nodes.extend(found.drain(..));
            gone |= storage.as_ref().is_some_and(|s: &Storage| s.is_gone());
            self.sources.push(places);
            self.inputs.push(storage);
            next += 1;
        }
        gone
    }

    fn place_of(&self, node: &Node) -> Option<u32> {
        let mark = node.mark.load(Relaxed);
        (mark >> 32 == self.pass).then_some(mark as u32)
    }

    fn add(&mut self, node: Arc<Node>) {
        if self.place_of(&node).is_some() {
            return;
        }
        node.mark.store(self.pass << 32 | self.nodes.len() as u64, Relaxed);
        self.nodes.push(node);
    }

    /// Puts sources before those who use them: they are older.
    fn sort_by_age(&mut self) {
        let order = &mut self.order;
        order.clear();
        order.extend(self.nodes.iter().zip(0..).map(|(n, place)| (n.id, place)));
        order.sort_unstable();
        self.moved.clear();
        self.moved.resize(order.len(), 0);
        for (new, &(_, old)) in order.iter().enumerate() {
            self.moved[old as usize] = new as u32;
        }
        for sources in &mut self.sources {
            sources.iter_mut().for_each(|p| *p = self.moved[*p as usize]);
        }
        // Follow each cycle of the permutation, swapping everything into its place.
        for k in 0..self.nodes.len() {
            while self.moved[k] as usize != k {
                let to = self.moved[k] as usize;
                self.nodes.swap(k, to);
                self.sources.swap(k, to);
                self.inputs.swap(k, to);
                self.moved.swap(k, to);
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
        while self.inputs[n].is_none() && (self.nodes[n].op.is_alias() || through(&self.nodes[n].op)) {
            n = self.sources[n][0] as usize;
        }
        n
    }

    fn is_computed(&self, n: usize) -> bool {
        let op = &self.nodes[n].op;
        self.inputs[n].is_none() && !op.is_alias() && !op.is_movement() && !op.is_rule()
    }

    /// What to keep instead of `n`, which can be made of it at any time: it takes no more memory, and nothing is written twice.
    /// Gradients are such, and are seldom looked at: those that a scaler has unscaled, and those of few rows of a table.
    fn recompute_sources(&self, n: usize) -> Option<SmallVec<[usize; 2]>> {
        // What a backward pass goes through is kept as it asks for it.
        if self.nodes[n].tape_needed() {
            return None;
        }
        let (base, scaled) = self.unscaled(n)?;
        if matches!(self.nodes[base].op, Op::Where) && self.inputs[base].is_none() {
            return self.found_rows(base);
        }
        let bytes = |n: usize| self.nodes[n].shape.numel() * self.nodes[n].dtype.size();
        let fits = scaled && self.nodes[base].op.needs_own_kernel() && bytes(base) <= bytes(n);
        fits.then(|| smallvec![base])
    }

    /// The sums of rows, and where each row is summed, that a gradient of a table looks for its rows in: what
    /// [`Tensor::scatter_rows`](crate::tensor::Tensor::scatter_rows) makes.
    fn found_rows(&self, n: usize) -> Option<SmallVec<[usize; 2]>> {
        let source =
            |n: usize, k: usize| self.sources[n].get(k).map(|&s| self.origin_of(s as usize, Op::is_movement));
        let found = source(n, 1).filter(|&found| matches!(self.nodes[found].op, Op::Gather { .. }))?;
        let sums = source(found, 0)
            .filter(|&sums| matches!(self.nodes[sums].op, Op::Native(NativeOp::ScatterAdd { .. })))?;
        let firsts = source(source(found, 1)?, 0)?;
        matches!(self.nodes[firsts].op, Op::Native(NativeOp::FirstPosition)).then(|| smallvec![sums, firsts])
    }

    /// What `n` is but for its type and factors that are the same everywhere and are made of what is there already, and
    /// whether there are such factors.
    fn unscaled(&self, n: usize) -> Option<(usize, bool)> {
        let is_there = |n: &u32| {
            let origin = self.origin_of(*n as usize, Op::is_movement);
            self.inputs[origin].is_some() || self.nodes[origin].op.is_rule()
        };
        let is_factor = |n: u32| {
            let origin = self.origin_of(n as usize, Op::is_movement);
            let known = self.inputs[origin].is_some() || self.sources[origin].iter().all(is_there);
            self.nodes[origin].shape.numel() == 1 && known
        };
        let (mut at, mut scaled) = (n, false);
        while self.inputs[at].is_none() && !self.nodes[at].op.needs_own_kernel() {
            let sources = &self.sources[at];
            at = match &self.nodes[at].op {
                Op::Where => break,
                Op::Cast | Op::Reshape | Op::Permute(_) => sources[0],
                op if op.is_alias() => sources[0],
                Op::Binary(BinaryOp::Mul) => {
                    scaled = true;
                    let place = usize::from(is_factor(sources[0]));
                    if !is_factor(sources[1 - place]) {
                        return None;
                    }
                    sources[place]
                }
                _ => return None,
            } as usize;
        }
        Some((at, scaled))
    }

    fn decide_keeping(&mut self, roots: &[u64]) {
        self.keep.resize(self.nodes.len(), false);
        for root in roots {
            let root = self.nodes.binary_search_by_key(root, |n| n.id).expect("a root was captured");
            let target = self.origin_of(root, |op| matches!(op, Op::Reshape));
            self.keep[target] = self.inputs[target].is_none();
        }
        for n in 0..self.nodes.len() {
            let node = &self.nodes[n];
            if self.inputs[n].is_some() {
                continue;
            }
            let held = self.held(n);
            if held
                && !self.keep[n]
                && let Some(recomputed) = self.recompute_sources(n)
            {
                // What is made of what is there needs nobody to look at it again.
                if recomputed.iter().any(|&other| self.inputs[other].is_none()) {
                    self.pending.push(n as u32);
                }
                for other in recomputed {
                    self.keep[other] |= self.inputs[other].is_none();
                }
                continue;
            }
            if held && !self.is_computed(n) && !matches!(node.op, Op::Const(_)) {
                self.pending.push(n as u32);
            }
            if held {
                let target = if node.op.is_movement() || node.op.is_alias() {
                    self.origin_of(n, Op::is_movement)
                } else {
                    n
                };
                if self.is_computed(target) {
                    self.keep[target] = true;
                }
            }
        }
    }

    /// Gives away the memory of inputs that nobody can ask for after this run: neither a tensor, nor a view
    /// that stays pending, nor a tape. A run that guards find fault with can be asked for again, and keeps its inputs.
    fn decide_donations(&mut self, guarded: bool) {
        self.donated.resize(self.nodes.len(), false);
        if guarded {
            return;
        }
        let mut alive: Vec<bool> = (0..self.nodes.len()).map(|n| self.held(n)).collect();
        for n in (0..self.nodes.len()).rev() {
            if let Some(storage) = &self.inputs[n] {
                // The node and this capture hold the storage.
                self.donated[n] = !alive[n] && Arc::strong_count(storage) == 2 && !storage.is_foreign();
            } else if alive[n] && (!self.keep[n] || self.nodes[n].tape_needed()) {
                // It goes on needing its sources.
                self.sources[n].iter().for_each(|&s| alive[s as usize] = true);
            }
        }
    }

    fn write_key(&mut self, cache_context: [u64; 3]) {
        let key = &mut self.key;
        key.extend(cache_context);
        for (n, node) in self.nodes.iter().enumerate() {
            let flags = [self.keep[n], self.donated[n], self.inputs[n].is_some(), node.tape_needed()];
            let flags = flags.iter().enumerate().map(|(k, &yes)| u64::from(yes) << k).sum::<u64>();
            let sources = if self.inputs[n].is_some() { 0 } else { self.sources[n].len() as u64 };
            key.push(flags | (node.dtype as u64) << 8 | (node.shape.rank() as u64) << 16 | sources << 24);
            key.extend(node.shape.iter().map(|&e| e as u64));
            if self.inputs[n].is_none() {
                node.op.encode(key);
                if let Op::Assert(_) = node.op {
                    // The plan names the call, whichever made the same nodes before.
                    let Origin { name, location, .. } = node.origin;
                    key.extend([name.as_ptr() as u64, std::ptr::from_ref(location) as u64]);
                }
                key.extend(self.sources[n].iter().map(|&s| u64::from(s)));
            }
        }
    }

    /// Which of the inputs were never computed, and are only assumed to be there.
    pub fn assumed(&self) -> impl Iterator<Item = usize> {
        let inputs = self.inputs.iter().enumerate();
        inputs.filter(|(_, storage)| storage.as_ref().is_some_and(|s| is_assumed(&**s))).map(|(n, _)| n)
    }

    /// An error if something is computed of what is not there.
    pub fn check_inputs(&self) -> Result<()> {
        if self.gone { self.inputs.iter().flatten().try_for_each(|s| check_values(&**s)) } else { Ok(()) }
    }

    /// The nodes whose memory was given away.
    pub fn donors(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.iter().zip(&self.donated).filter(|(_, donated)| **donated).map(|(node, _)| node)
    }

    /// What stays pending although it was captured.
    pub fn still_pending(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.pending.iter().map(|&n| &self.nodes[n as usize]).filter(|n| !n.is_realized())
    }

    pub fn nothing_to_do(&self) -> bool {
        let is_name = |op: &Op| op.is_alias() || matches!(op, Op::Reshape);
        !self.keep.contains(&true) && self.nodes.iter().all(|n| n.is_realized() || !is_name(&n.op))
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
                taped: node.tape_needed(),
                on_host: false,
            }
        };
        PlanGraph::new((0..self.nodes.len()).map(node).collect())
    }

    /// An input's storage; one that was given away is not held here any more.
    pub fn take_input(&mut self, n: usize) -> Storage {
        self.inputs[n].clone().expect("an input of the plan has storage")
    }

    /// Gives computed values to their nodes, and to the names of those.
    pub fn assign_outputs(&mut self, outputs: impl Iterator<Item = (usize, Storage)>) {
        let mut storages: Vec<Option<Storage>> = std::mem::take(&mut self.inputs);
        for (n, storage) in outputs {
            self.nodes[n].realize(storage.clone());
            storages[n] = Some(storage);
        }
        for n in 0..self.nodes.len() {
            if storages[n].is_none()
                && (self.nodes[n].op.is_alias() || matches!(self.nodes[n].op, Op::Reshape))
            {
                let source = self.sources[n][0] as usize;
                if let Some(storage) = storages[source].clone() {
                    if self.nodes[n].op.is_alias() || is_held_beyond(&self.nodes[n], self.uses[n]) {
                        self.nodes[n].realize(storage.clone());
                    }
                    // Also where nobody holds this one: the next of a chain may be held.
                    storages[n] = Some(storage);
                }
            }
        }
    }
}

fn is_held_beyond(node: &Arc<Node>, uses: u32) -> bool {
    Arc::strong_count(node) > uses as usize + 1
}

/// The changing part of a rule.
pub(super) fn argument(op: &Op) -> Argument {
    match op {
        Op::Const(value) => Argument::Number(*value),
        Op::Random { key, .. } => Argument::Key(*key),
        op => unreachable!("{} has no argument", op.name()),
    }
}
