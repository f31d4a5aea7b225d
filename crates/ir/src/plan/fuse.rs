//! Groups what is stored into kernels. Values of one domain that depend on each other go into one kernel
//! wherever a program for all of them can be written and no kernel has to wait for itself.

use super::bindings::{self, LONG_ROW};
use super::dependencies::Dependencies;
use super::graph::PlanGraph;
use super::kernel::{LoopLevel, MapKernel, NativeKernel, Operand, Step};
use super::lower_loops::{Builder, Domain, operand};
use super::materialize::Materialized;
use super::memory::DeviceLimits;
use super::programs;
use super::view::Affine;
use crate::op::{NativeOp, Op};
use crate::shape::Shape;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// A kernel holds at most this many stored values…
const MAX_FUSED_RESULTS: usize = 24;
/// …and instructions…
const MAX_FUSED_INSTRUCTIONS: usize = 256;
/// …and reads at most this many slots, or so many if each is a single element, for which reading costs nothing.
const MAX_FUSED_READS: usize = 16;
const MAX_FUSED_SCALARS: usize = 128;

pub struct Group {
    /// The stored values it computes.
    pub members: Vec<usize>,
    /// Those that are read outside.
    pub outputs: Vec<usize>,
    pub body: Body,
}

pub enum Body {
    Map {
        domain: Domain,
        maps: Vec<MapKernel>,
    },
    /// A program over rows, and others that fold the columns of what it reads and writes.
    Rows {
        domain: Domain,
        maps: Vec<MapKernel>,
    },
    Native(Box<NativeKernel>),
    /// Joined into another group.
    Merged,
}

pub struct Fusion<'a> {
    pub(super) graph: &'a PlanGraph,
    stored: Vec<bool>,
    pub groups: Vec<Group>,
    /// The group that computes each stored node.
    pub group_of: Vec<Option<usize>>,
    dependencies: Dependencies,
    /// The values that read each value, if each is computed by itself.
    users: Vec<SmallVec<[u32; 2]>>,
    /// Groups that read each slot; some may have been joined into others since.
    readers: Vec<SmallVec<[u32; 2]>>,
    pub(super) rules: &'a DeviceLimits,
}

impl<'a> Fusion<'a> {
    pub fn run(
        graph: &'a PlanGraph,
        stored: Materialized,
        fuse: bool,
        rules: &'a DeviceLimits,
    ) -> Fusion<'a> {
        let (stored, alone) = programs::write_each(graph, stored, fuse);
        let count = graph.nodes.len();
        let (group_of, readers) = (vec![None; count], vec![SmallVec::new(); count]);
        let (groups, dependencies) = (Vec::new(), Dependencies::default());
        let users = users(graph, &stored, &alone);
        let mut f = Fusion { graph, stored, groups, group_of, dependencies, users, readers, rules };
        for (n, program) in alone.into_iter().enumerate() {
            if !f.stored[n] || graph.nodes[n].input {
                continue;
            }
            match program {
                Some(program) => f.add_map(n, program, fuse),
                None => f.add_native(n),
            }
        }
        f.finish();
        if fuse {
            f.note_readers();
            f.attach_epilogues();
            if rules.prologues {
                f.attach_prologues();
            }
            f.merge_isomorphic();
            if rules.columns {
                f.attach_columns();
            }
        }
        f
    }

    fn add_native(&mut self, n: usize) {
        let node = &self.graph.nodes[n];
        let Op::Native(op) = &node.op else { unreachable!("{} does not stand alone", node.op.name()) };
        let op = op.clone();
        let read = |&s: &usize| {
            operand(self.graph, &self.stored, s).expect("operands of special kernels are stored")
        };
        let operands: Vec<Operand> = node.sources.iter().map(read).collect();
        let output = Operand {
            slot: n,
            dtype: node.dtype,
            shape: node.shape,
            strides: node.shape.strides()[..node.shape.rank()].to_vec(),
            offset: 0,
        };
        let slots: Vec<usize> = operands.iter().map(|o| o.slot).collect();
        let body = Body::Native(Box::new(NativeKernel {
            op,
            operands,
            output,
            prologues: Vec::new(),
            epilogue: None,
        }));
        self.push_group(n, body, &slots);
    }

    fn push_group(&mut self, n: usize, body: Body, slots: &[usize]) {
        self.dependencies.push(&self.producers(slots));
        self.group_of[n] = Some(self.groups.len());
        self.groups.push(Group { members: vec![n], outputs: vec![n], body });
    }

    /// The groups that compute these slots, without repetition, the latest first.
    pub(super) fn producers(&self, slots: &[usize]) -> Vec<usize> {
        let mut groups: Vec<usize> = slots.iter().filter_map(|&s| self.group_of[s]).collect();
        groups.sort_unstable_by(|a, b| b.cmp(a));
        groups.dedup();
        groups
    }

    fn add_map(&mut self, n: usize, alone: MapKernel, fuse: bool) {
        let domain = natural_domain(self.graph, n);
        let slots: Vec<usize> = alone.reads().map(|a| a.slot).collect();
        if fuse {
            let fits = |&g: &usize| matches!(self.groups[g].body, Body::Map { .. });
            let producers: Vec<usize> = self.producers(&slots).into_iter().filter(fits).collect();
            if self.join(n, &domain, &producers, &slots) {
                return;
            }
            // Numbers that are computed once need not be in everybody's way.
            let is_alike =
                |&g: &usize| matches!(&self.groups[g].body, Body::Map { domain: d, .. } if *d == domain);
            let alike: Vec<usize> = producers.iter().copied().filter(is_alike).collect();
            if alike.len() < producers.len() && self.join(n, &domain, &alike, &slots) {
                return;
            }
            if producers.iter().any(|&g| self.join(n, &domain, &[g], &slots)) {
                return;
            }
            let siblings = self.siblings(&domain, &slots);
            if siblings.iter().any(|&g| self.join(n, &domain, &[g], &slots)) {
                return;
            }
        }
        self.push_group(n, Body::Map { domain, maps: vec![alone] }, &slots);
    }

    /// Recent reductions over the same loops, or maps of single numbers, that read something large in common.
    fn siblings(&self, domain: &Domain, slots: &[usize]) -> Vec<usize> {
        let size = domain.shape.numel();
        let large: Vec<usize> =
            slots.iter().copied().filter(|&s| self.graph.nodes[s].shape.numel() == size).collect();
        let shares = |g: &usize| match &self.groups[*g].body {
            Body::Map { domain: d, maps } => {
                (domain.reduced != 0 || size == 1)
                    && d == domain
                    && maps[0].reads().any(|a| large.contains(&a.slot))
            }
            _ => false,
        };
        (0..self.groups.len()).rev().take(64).filter(shares).collect()
    }

    /// Puts `n` into one kernel with `others`, if a program can be written and nothing waits for itself.
    fn join(&mut self, n: usize, own: &Domain, others: &[usize], slots: &[usize]) -> bool {
        let Some(&into) = others.iter().min() else { return false };
        let count: usize = others.iter().map(|&g| self.groups[g].members.len()).sum();
        if count + 1 > MAX_FUSED_RESULTS || !self.is_acyclic_merge(others, slots) {
            return false;
        }
        let mut members: Vec<usize> = others.iter().flat_map(|&g| self.groups[g].members.clone()).collect();
        members.push(n);
        members.sort_unstable();
        let build = |domain: Domain| {
            let built = Builder::build(self.graph, &self.stored, &domain, &members, &members);
            built.ok().map(|kernel| (domain, kernel))
        };
        let Some((domain, kernel)) = self.domains(own, others).into_iter().find_map(build) else {
            return false;
        };
        let reads = distinct(kernel.reads().map(|a| a.slot));
        let most_reads = if kernel.iterations() > 1 { MAX_FUSED_READS } else { MAX_FUSED_SCALARS };
        if kernel.code.len() > MAX_FUSED_INSTRUCTIONS
            || reads > most_reads
            || !self.sees_few(&kernel, &members)
        {
            return false;
        }
        /// Rows enough to keep a device busy, however long they are.
        const BUSY_ROWS: usize = 64;
        /// Elements of all rows that are worth sharing.
        const MIN_SPLIT_ELEMENTS: usize = 1 << 20;
        let (width, staged) = (kernel.iterations() / kernel.rows().max(1), kernel.is_staged());
        if width > self.rules.max_fused_row && kernel.rows() < BUSY_ROWS && staged {
            return false;
        }
        let writes_all = kernel.stores.iter().any(|s| kernel.code[s.value].rank == LoopLevel::Full);
        let shared = kernel.iterations() >= MIN_SPLIT_ELEMENTS
            && width >= LONG_ROW
            && kernel.rows() < self.rules.min_rows_unsplit;
        if shared && writes_all && !staged {
            return false;
        }
        self.merge(into, others, slots);
        for &m in &members {
            self.group_of[m] = Some(into);
        }
        let group = &mut self.groups[into];
        group.outputs.clone_from(&members);
        group.members = members;
        group.body = Body::Map { domain, maps: vec![kernel] };
        true
    }

    /// Whether a value must be in memory if a kernel computes these, which are in order.
    fn is_needed_outside(&self, value: usize, members: &[usize]) -> bool {
        let is_outside = |user: &u32| members.binary_search(&(*user as usize)).is_err();
        self.graph.nodes[value].keep || self.users[value].iter().any(is_outside)
    }

    /// Whether the kernel that computes these members takes no more bindings than it may. What lies in several pieces of memory may have
    /// to be cut into parts, which few stores leave room for: there all that it computes counts.
    fn sees_few(&self, kernel: &MapKernel, members: &[usize]) -> bool {
        let is_whole = kernel.slots().all(|slot| self.rules.is_one_piece(self.graph, slot));
        let needed = |slot| !is_whole || self.is_needed_outside(slot, members);
        bindings::of_largest_dispatch(kernel, self.rules, needed) <= self.rules.slots
    }

    /// The loops that could serve for all: whoever reduces decides them, the larger first.
    fn domains(&self, own: &Domain, others: &[usize]) -> Vec<Domain> {
        let mut domains = vec![own.clone()];
        for &g in others {
            if let Body::Map { domain, .. } = &self.groups[g].body
                && !domains.contains(domain)
            {
                domains.push(domain.clone());
            }
        }
        domains.sort_by_key(|d| (d.reduced == 0, usize::MAX - d.shape.numel()));
        let reduces = domains[0].reduced != 0;
        domains.retain(|d| (d.reduced != 0) == reduces);
        domains
    }

    /// Whether no group outside `set` stands between two of them, or between one of them and `slots`.
    pub(super) fn is_acyclic_merge(&self, set: &[usize], slots: &[usize]) -> bool {
        self.dependencies.is_acyclic_merge(set, &self.producers(slots))
    }

    /// Makes one group of `set`: `into` waits for what any of them waited for, and whoever waited for one of
    /// them waits for `into`.
    pub(super) fn merge(&mut self, into: usize, set: &[usize], slots: &[usize]) {
        let producers = self.producers(slots);
        for &g in set.iter().filter(|&&g| g != into) {
            self.groups[g].body = Body::Merged;
            self.groups[g].members.clear();
            self.groups[g].outputs.clear();
        }
        if set.len() > 1 || !producers.is_empty() {
            self.dependencies.join(into, set, &producers);
        }
    }

    /// Notes who reads what.
    fn note_readers(&mut self) {
        for g in 0..self.groups.len() {
            self.note_reader(g, &self.reads(g));
        }
    }

    /// Notes that a group reads these slots.
    pub(super) fn note_reader(&mut self, g: usize, slots: &[usize]) {
        for &slot in slots {
            let readers = &mut self.readers[slot];
            if readers.last() != Some(&(g as u32)) {
                readers.push(g as u32);
            }
        }
    }

    /// Groups that may read a slot: of those that do, none is missing.
    pub(super) fn readers(&self, slot: usize) -> impl Iterator<Item = usize> {
        self.readers[slot].iter().map(|&g| g as usize)
    }

    /// Whether a group other than these reads a slot.
    pub(super) fn is_read_besides(&self, slot: usize, known: &[usize]) -> bool {
        self.readers(slot).any(|g| !known.contains(&g) && self.reads(g).contains(&slot))
    }

    /// What a group reads from memory that others computed.
    pub(super) fn reads(&self, g: usize) -> Vec<usize> {
        match &self.groups[g].body {
            Body::Map { maps, .. } | Body::Rows { maps, .. } => {
                maps.iter().flat_map(|m| m.reads().map(|a| a.slot)).collect()
            }
            Body::Native(s) => {
                s.operand_slots().chain(s.epilogue.iter().flat_map(|m| m.reads().map(|a| a.slot))).collect()
            }
            Body::Merged => Vec::new(),
        }
    }

    /// Rewrites every map kernel to store only what is read elsewhere.
    fn finish(&mut self) {
        let mut wanted: Vec<bool> = self.graph.nodes.iter().map(|n| n.keep).collect();
        for g in 0..self.groups.len() {
            for slot in self.reads(g) {
                if self.group_of[slot] != Some(g) {
                    wanted[slot] = true;
                }
            }
        }
        for g in 0..self.groups.len() {
            let group = &self.groups[g];
            let Body::Map { domain, .. } = &group.body else { continue };
            let outputs: Vec<usize> = group.members.iter().copied().filter(|&m| wanted[m]).collect();
            if outputs.len() == group.members.len() {
                continue;
            }
            let domain = domain.clone();
            let Ok(kernel) = Builder::build(self.graph, &self.stored, &domain, &group.members, &outputs)
            else {
                unreachable!("a part of a program that was written can be written");
            };
            let group = &mut self.groups[g];
            group.outputs = outputs;
            group.body = Body::Map { domain, maps: vec![kernel] };
        }
    }

    /// Lets elementwise kernels run on a product's or convolution's result as soon as it is there.
    fn attach_epilogues(&mut self) {
        for g in 0..self.groups.len() {
            let Body::Native(s) = &self.groups[g].body else { continue };
            if !matches!(s.op, NativeOp::Matmul | NativeOp::QuantizedMatmul { .. } | NativeOp::Conv(..)) {
                continue;
            }
            let slot = s.output.slot;
            let follows = |&e: &usize| match &self.groups[e].body {
                Body::Map { domain, maps } => {
                    domain.reduced == 0
                        && !maps[0].asserts()
                        && maps[0].stores.len() <= 2
                        && maps[0].reads().count() <= MAX_FUSED_READS / 2
                        && self.slots_with(s, &maps[0]) <= self.rules.slots
                        && reads_in_order(&maps[0], slot, self.graph.nodes[slot].shape)
                        && self.is_acyclic_merge(&[g, e], &[])
                }
                _ => false,
            };
            let Some(e) = self.readers(slot).filter(follows).min() else { continue };
            let Body::Map { mut maps, .. } = std::mem::replace(&mut self.groups[e].body, Body::Merged) else {
                unreachable!("only map kernels follow");
            };
            let members = self.groups[e].members.clone();
            let outputs = self.groups[e].outputs.clone();
            let slots: Vec<usize> = maps[0].reads().map(|a| a.slot).collect();
            self.merge(g, &[g, e], &slots);
            self.note_reader(g, &slots);
            for &m in &members {
                self.group_of[m] = Some(g);
            }
            let group = &mut self.groups[g];
            group.members.extend(members);
            group.outputs.extend(outputs);
            if let Body::Native(s) = &mut group.body {
                s.epilogue = maps.pop();
            }
        }
        self.forget_unread_products();
    }

    /// How many slots a product and an epilogue read and write together.
    fn slots_with(&self, product: &NativeKernel, epilogue: &MapKernel) -> usize {
        let read = product.operand_slots().chain(epilogue.reads().map(|a| a.slot));
        let written = epilogue.stores.iter().map(|s| s.access.slot);
        distinct(read.chain(written).chain([product.output.slot]))
    }

    /// A product that only its own epilogue reads is not kept beyond it.
    fn forget_unread_products(&mut self) {
        for g in 0..self.groups.len() {
            let Body::Native(s) = &self.groups[g].body else { continue };
            let slot = s.output.slot;
            if s.epilogue.is_none() || self.graph.nodes[slot].keep {
                continue;
            }
            if !self.is_read_besides(slot, &[g]) {
                self.groups[g].outputs.retain(|&o| o != slot);
            }
        }
    }

    /// One kernel for many tensors: programs that differ only in their slots and sizes, elementwise or folding
    /// everything into one number.
    fn merge_isomorphic(&mut self) {
        // The last group of each pattern.
        let mut last: HashMap<Pattern, usize> = HashMap::new();
        let products = self.products();
        for g in 0..self.groups.len() {
            let Body::Map { maps, .. } = &self.groups[g].body else { continue };
            let Some(pattern) = Pattern::of(&maps[0]) else { continue };
            let folds = maps[0].outer < maps[0].extents.len();
            let joins = |h: usize| {
                // Programs of one kernel run side by side.
                self.dependencies.are_apart(h, g)
                    && self.is_acyclic_merge(&[h, g], &[])
                    && !(folds && self.are_between(&products, h, g))
            };
            let Some(h) = last.get(&pattern).copied().filter(|&h| joins(h)) else {
                last.insert(pattern, g);
                continue;
            };
            let (members, outputs) = (self.groups[g].members.clone(), self.groups[g].outputs.clone());
            let Body::Map { maps: more, .. } = std::mem::replace(&mut self.groups[g].body, Body::Merged)
            else {
                unreachable!("seen above");
            };
            self.merge(h, &[h, g], &[]);
            let reads: Vec<usize> = more.iter().flat_map(|m| m.reads().map(|a| a.slot)).collect();
            self.note_reader(h, &reads);
            for &m in &members {
                self.group_of[m] = Some(h);
            }
            let group = &mut self.groups[h];
            group.members.extend(members);
            group.outputs.extend(outputs);
            if let Body::Map { maps, .. } = &mut group.body {
                maps.extend(more);
            }
        }
    }

    /// The values that products and their like compute, in order.
    fn products(&self) -> Vec<usize> {
        let products = self.groups.iter().filter(|g| matches!(g.body, Body::Native(_)));
        let mut values: Vec<usize> = products.flat_map(|g| &g.members).copied().collect();
        values.sort_unstable();
        values
    }

    /// Whether products were written between the last values of two groups: what one of them folds would have to be kept
    /// until then.
    fn are_between(&self, products: &[usize], a: usize, b: usize) -> bool {
        let last = |g: usize| self.groups[g].members.iter().max().copied().unwrap_or(0);
        let between = last(a).min(last(b))..last(a).max(last(b));
        let next = products.partition_point(|&m| m < between.start);
        products.get(next).is_some_and(|m| between.contains(m))
    }
}

/// The stored values that read each value, if each is computed by itself.
fn users(graph: &PlanGraph, stored: &[bool], alone: &[Option<MapKernel>]) -> Vec<SmallVec<[u32; 2]>> {
    let mut users = vec![SmallVec::new(); graph.nodes.len()];
    for (n, program) in alone.iter().enumerate().filter(|(n, _)| stored[*n] && !graph.nodes[*n].input) {
        let mut read_by_n = |slot: usize| users[slot].push(n as u32);
        match program {
            Some(program) => program.reads().for_each(|a| read_by_n(a.slot)),
            None => {
                let read = graph.nodes[n].sources.iter().filter_map(|&s| operand(graph, stored, s).ok());
                read.for_each(|operand| read_by_n(operand.slot));
            }
        }
    }
    users
}

/// The loops that a value is computed in by itself.
pub(super) fn natural_domain(graph: &PlanGraph, n: usize) -> Domain {
    let node = &graph.nodes[n];
    match node.op {
        Op::Reduce { axes, .. } | Op::ArgReduce { axes, .. } => {
            Domain { shape: graph.nodes[graph.source(n, 0)].shape, reduced: axes }
        }
        _ => Domain::map(node.shape),
    }
}

pub(super) fn distinct(slots: impl Iterator<Item = usize>) -> usize {
    let mut slots: Vec<usize> = slots.collect();
    slots.sort_unstable();
    slots.dedup();
    slots.len()
}

/// Whether `kernel` walks over everything in the order of `slot` and reads it just there.
fn reads_in_order(kernel: &MapKernel, slot: usize, shape: Shape) -> bool {
    if kernel.iterations() != shape.numel() || shape.numel() == 0 {
        return false;
    }
    let in_order = row_major(&kernel.extents);
    let mut any = false;
    for i in &kernel.code {
        match &i.step {
            Step::Load { access, checks, .. } if access.slot == slot => {
                if access.position != in_order || !checks.is_empty() {
                    return false;
                }
                any = true;
            }
            Step::Gather { access, .. } if access.slot == slot => return false,
            _ => {}
        }
    }
    any && kernel.stores.iter().all(|s| s.access.position == in_order)
}

/// The flat index of nested loops; loops of one iteration do not count.
pub fn row_major(extents: &[usize]) -> Affine {
    let mut form = Affine::constant(extents.len(), 0);
    let mut stride = 1;
    for (c, &e) in form.coefficients.iter_mut().zip(extents).rev() {
        *c = if e > 1 { stride } else { 0 };
        stride *= e as isize;
    }
    form
}

/// A program without its slots, arguments and sizes. One that has a number that is none is like no other.
#[derive(PartialEq)]
struct Pattern(Vec<(Step, crate::dtype::DType)>, Vec<usize>);

impl Eq for Pattern {}

impl Hash for Pattern {
    /// Of the steps, what tells most of them apart.
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (step, dtype) in &self.0 {
            std::mem::discriminant(step).hash(state);
            dtype.hash(state);
            step.operands().hash(state);
            match step {
                Step::Unary(op, _) => op.hash(state),
                Step::Binary(op, ..) => op.hash(state),
                // Both zeros are equal.
                Step::Literal(number) => (number.to_f64() + 0.0).to_bits().hash(state),
                _ => {}
            }
        }
        self.1.hash(state);
    }
}

impl Pattern {
    /// Only of programs that walk straight through every slot, and if they fold, once, and everything into one.
    fn of(kernel: &MapKernel) -> Option<Pattern> {
        let folds: Vec<&Step> = kernel.code.iter().map(|i| &i.step).filter(|s| s.is_fold()).collect();
        let elementwise = kernel.outer == kernel.extents.len();
        // What is written on the way, as it may be of a single element, is not what comes of a fold.
        let on_the_way = kernel.stores.iter().any(|s| kernel.code[s.value].rank == LoopLevel::Full);
        let single = matches!(folds[..], [Step::Reduce(..)]) && kernel.rows() == 1;
        let one = single && !kernel.is_staged() && !on_the_way;
        if !elementwise && !one {
            return None;
        }
        let in_order = row_major(&kernel.extents);
        let mut code = Vec::new();
        for i in &kernel.code {
            let mut step = i.step.clone();
            match &mut step {
                Step::Load { access, checks, .. } => {
                    let straight = access.position == in_order;
                    let single =
                        access.position.offset == 0 && access.position.coefficients.iter().all(|&c| c == 0);
                    if !checks.is_empty() || !(straight || single) {
                        return None;
                    }
                    access.slot = 0;
                    access.position = Affine::constant(1, isize::from(straight));
                }
                Step::Argument(n) => *n = 0,
                Step::Gather { .. }
                | Step::Assert { .. }
                | Step::Iota(_)
                | Step::Random { .. }
                | Step::Valid(_)
                | Step::GlobalReduce(..) => {
                    return None;
                }
                _ => {}
            }
            code.push((step, i.dtype));
        }
        let stores = kernel.stores.iter().map(|s| s.value).collect();
        let stored = if elementwise { in_order } else { Affine::constant(kernel.extents.len(), 0) };
        kernel.stores.iter().all(|s| s.access.position == stored).then_some(Pattern(code, stores))
    }
}
