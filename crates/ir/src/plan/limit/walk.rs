//! One walk through a plan's kernels with a budget for intermediate values. What is used late is let go when the budget is
//! exhausted, the cheapest first, and computed again where it is used; or it moves to the host's memory, if that is cheaper, and comes
//! back. A device does one thing after the other, so what comes back does so just before it is used.
//!
//! The order in which values are let go is that of Kirisame et al., "Dynamic Tensor Rematerialization" (2021), with what a plan knows
//! besides: when a value is used next.

use super::super::graph::PlanGraph;
use super::super::kernel::{Kernel, Purpose, Slot};
use super::super::memory::{DeviceLimits, MemoryLayout, hidden_product};
use super::transfer::transfer;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// Kernels that are looked at to know what it costs to compute a value again; beyond them it is too much.
const MAX_CHAIN: usize = 96;

/// Kernels of all for each of the plan, beyond which a budget is too small.
const MAX_LIMITED_KERNELS: usize = 4;

/// Inputs whose memory no output may have then, as a part of a value that is let go.
const PART_NOT_TAKEN: usize = 16;

/// Kernels that take little memory.
pub(super) struct Walked {
    pub kernels: Vec<Kernel>,
    /// The slots behind those of the graph: what each is a copy of, and whether it lies in the host's memory.
    pub copies: Vec<(Slot, bool)>,
}

impl Walked {
    /// What it costs, in all, that it takes little memory.
    pub fn cost(&self, rules: &DeviceLimits) -> u64 {
        let more = self.kernels.iter().filter(|kernel| kernel.purpose != Purpose::First);
        more.map(|kernel| rules.rates.cost(kernel) as u64).sum()
    }
}

/// How a value comes back that is let go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Return {
    Computed,
    Moved,
}

/// What is known of a value inside of the plan.
#[derive(Clone, Default)]
struct Value {
    /// The kernel that computes it.
    producer: Option<usize>,
    bytes: usize,
    /// The steps that read it from now on, the next one last.
    uses: SmallVec<[u32; 4]>,
    /// Where its newest copy is.
    copy: Slot,
    is_present: bool,
    /// Its copy in the host's memory, once there is one.
    host: Option<Slot>,
    /// Whether it was let go and comes back from there.
    is_moved: bool,
    /// How many need it to stay now.
    pins: u32,
    /// The step that reads it next, if it was let go: what it is made of has that as a use.
    due: Option<u32>,
}

pub(super) struct Walk<'a> {
    graph: &'a mut PlanGraph,
    kernels: &'a [Kernel],
    rules: &'a DeviceLimits,
    budget: usize,
    values: Vec<Value>,
    /// The step from which on an input's memory is an output's.
    taken: HashMap<Slot, usize>,
    /// What each kernel reads of the values inside of the plan.
    reads: Vec<SmallVec<[Slot; 4]>>,
    /// What each kernel reads besides, if its memory is given away in the end.
    donated: Vec<SmallVec<[Slot; 2]>>,
    /// What each kernel writes, but for what has the memory of another result.
    writes: Vec<SmallVec<[Slot; 2]>>,
    /// The number that each kernel has in the new plan.
    numbers: Vec<usize>,
    live: usize,
    step: usize,
    /// Values that were read or computed again in this step.
    touched: Vec<Slot>,
    /// Kernels of all, beyond which the budget is too small.
    most: usize,
    /// Values that can be let go, by what that costs, as it was known when they came here.
    candidates: BinaryHeap<Reverse<(u64, Slot)>>,
    out: Walked,
    wave: usize,
}

/// A value that is to be computed again, and what it keeps in memory until then.
struct Frame {
    kernel: usize,
    pinned: SmallVec<[Slot; 4]>,
}

impl<'a> Walk<'a> {
    pub fn new(
        graph: &'a mut PlanGraph,
        kernels: &'a [Kernel],
        layout: &MemoryLayout,
        rules: &'a DeviceLimits,
        budget: usize,
    ) -> Walk<'a> {
        let count = graph.nodes.len();
        let mut values = vec![Value::default(); count];
        let (mut reads, mut donated, mut writes) = (Vec::new(), Vec::new(), Vec::new());
        let mut taken = HashMap::new();
        let over: HashMap<Slot, Slot> =
            layout.outputs.iter().filter_map(|o| o.over.map(|k| (o.slot, layout.inputs[k]))).collect();
        let bytes = |slot: Slot| rules.bytes(graph, slot);
        for (k, kernel) in kernels.iter().enumerate() {
            let inner = hidden_product(kernel, graph, &bytes);
            let mut written: SmallVec<[Slot; 2]> =
                kernel.writes().into_iter().filter(|&slot| Some(slot) != inner).collect();
            written.sort_unstable();
            written.dedup();
            for &slot in &written {
                values[slot].producer.get_or_insert(k);
                values[slot].bytes = bytes(slot).max(1).next_multiple_of(rules.alignment);
                values[slot].copy = slot;
                over.get(&slot).map(|&input| taken.insert(input, kernel.wave));
            }
            let own = kernel.writes();
            let read: Vec<Slot> = kernel.reads().into_iter().filter(|slot| !own.contains(slot)).collect();
            let is_inside = |slot: &Slot| !graph.nodes[*slot].input && !graph.nodes[*slot].keep;
            reads.push(read.iter().copied().filter(is_inside).collect::<SmallVec<[Slot; 4]>>());
            let given = |slot: &Slot| graph.nodes[*slot].input && graph.nodes[*slot].donated;
            donated.push(read.iter().copied().filter(given).collect());
            writes.push(written);
        }
        for (kernel, read) in kernels.iter().zip(&reads).rev() {
            for &slot in read {
                values[slot].uses.push(kernel.wave as u32);
            }
        }
        let out = Walked { kernels: Vec::with_capacity(kernels.len()), copies: Vec::new() };
        let candidates = BinaryHeap::new();
        Walk {
            graph,
            kernels,
            rules,
            budget,
            values,
            taken,
            reads,
            donated,
            writes,
            numbers: Vec::with_capacity(kernels.len()),
            live: 0,
            step: 0,
            touched: Vec::new(),
            most: MAX_LIMITED_KERNELS * kernels.len(),
            candidates,
            out,
            wave: 0,
        }
    }

    /// The kernels that take no more memory, as far as that can be; none if they would be too many.
    pub fn run(mut self) -> Option<Walked> {
        let kernels = self.kernels;
        let mut next = 0;
        while next < kernels.len() {
            self.step = kernels[next].wave;
            let end = next + kernels[next..].iter().take_while(|k| k.wave == self.step).count();
            let mut pinned: Vec<Slot> = self.reads[next..end].iter().flatten().copied().collect();
            pinned.sort_unstable();
            pinned.dedup();
            pinned.iter().for_each(|&slot| self.values[slot].pins += 1);
            for &slot in &pinned {
                self.bring_back(slot);
            }
            let results: Vec<Slot> = self.writes[next..end].iter().flatten().copied().collect();
            let inside = results.iter().copied().filter(|&slot| !self.graph.nodes[slot].keep);
            let inside: Vec<Slot> = inside.collect();
            self.make_room(inside.iter().map(|&slot| self.values[slot].bytes).sum());
            for kernel in &kernels[next..end] {
                let mut kernel = kernel.clone();
                let values = &self.values;
                kernel.rename(|slot| if values[slot].is_present { values[slot].copy } else { slot });
                kernel.wave = self.wave;
                self.numbers.push(self.out.kernels.len());
                self.out.kernels.push(kernel);
            }
            self.wave += 1;
            for &slot in &inside {
                self.live += self.values[slot].bytes;
                self.values[slot].is_present = true;
            }
            pinned.iter().for_each(|&slot| self.values[slot].pins -= 1);
            for slot in std::mem::take(&mut self.touched).into_iter().chain(pinned).chain(inside) {
                self.settle(slot, self.step + 1);
            }
            if self.out.kernels.len() > self.most {
                return None;
            }
            next = end;
        }
        Some(self.out)
    }

    /// Before a step: a value that nobody reads any more is gone, another one may be let go.
    fn settle(&mut self, slot: Slot, step: usize) {
        let value = &mut self.values[slot];
        while value.uses.last().is_some_and(|&read| (read as usize) < step) {
            value.uses.pop();
        }
        if !value.is_present || value.pins > 0 {
            return;
        }
        if value.uses.is_empty() {
            value.is_present = false;
            self.live -= value.bytes;
        } else {
            self.offer(slot);
        }
    }

    /// Notes what it would cost to let go of a value.
    fn offer(&mut self, slot: Slot) {
        if let Some((cost, _)) = self.cost(slot) {
            self.candidates.push(Reverse((cost, slot)));
        }
    }

    /// What it costs to let go of a value until it is used next, for each byte and each step without it, and how it comes back; none if
    /// it cannot.
    fn cost(&self, slot: Slot) -> Option<(u64, Return)> {
        let computed = self.cost_computed(slot).map(|cost| (cost, Return::Computed));
        let moved = self.cost_moved(slot).map(|cost| (cost, Return::Moved));
        computed.into_iter().chain(moved).min_by_key(|(cost, _)| *cost)
    }

    /// The same, if it moves to the host's memory and back, or only back if it has been there.
    fn cost_moved(&self, slot: Slot) -> Option<u64> {
        let value = &self.values[slot];
        let next = *value.uses.last()? as usize;
        let times = if value.host.is_some() { 1.0 } else { 2.0 };
        let byte_steps = value.bytes as f64 * next.saturating_sub(self.step) as f64;
        self.rules
            .has_host()
            .then(|| per_byte_step(times * self.rules.rates.transfer(value.bytes), byte_steps))
    }

    /// The same, if it is computed again. One kernel brings back all of its results.
    fn cost_computed(&self, slot: Slot) -> Option<u64> {
        let value = &self.values[slot];
        let (next, producer) = (*value.uses.last()? as usize, value.producer?);
        let (mut seen, mut queue, mut cost) = (HashSet::new(), vec![producer], 0.0);
        let mut not_taken = 0;
        while let Some(kernel) = queue.pop() {
            if !seen.insert(kernel) {
                continue;
            }
            // What was to be written over an input that is read again gets memory of its own: running averages do, weights do not.
            let is_over = |slot: &&Slot| self.taken.get(*slot).is_some_and(|&step| step < next);
            let inputs = self.donated[kernel].iter().filter(is_over);
            not_taken += inputs.map(|&slot| self.rules.bytes(self.graph, slot)).sum::<usize>();
            if seen.len() > MAX_CHAIN || not_taken > value.bytes / PART_NOT_TAKEN {
                return None;
            }
            cost += self.rules.rates.cost(&self.kernels[kernel]);
            for value in self.reads[kernel].iter().map(|&slot| &self.values[slot]).filter(|v| !v.is_present) {
                match value.is_moved {
                    true => cost += self.rules.rates.transfer(value.bytes),
                    false => queue.extend(value.producer),
                }
            }
        }
        let is_needed = |value: &&Value| value.uses.first().is_some_and(|&last| last as usize > self.step);
        let results = || self.writes[producer].iter().map(|&slot| &self.values[slot]).filter(is_needed);
        if results().any(|result| !result.is_present && !result.is_moved) {
            cost = value.bytes as f64;
        }
        let steps =
            |value: &Value| value.uses.last().map_or(0, |&read| (read as usize).saturating_sub(self.step));
        let byte_steps: f64 =
            results().filter(|v| v.is_present).map(|v| v.bytes as f64 * steps(v) as f64).sum();
        Some(per_byte_step(cost, byte_steps))
    }

    /// Lets go of values until there is room for so many bytes, as far as that can be.
    fn make_room(&mut self, bytes: usize) {
        let mut pinned = Vec::new();
        while self.live + bytes > self.budget
            && let Some(Reverse((known, slot))) = self.candidates.pop()
        {
            let Value { is_present, pins, ref uses, .. } = self.values[slot];
            let next = uses.last().map_or(0, |&read| read as usize);
            match (is_present, pins) {
                (false, _) => continue,
                (true, 0) if next > self.step => {}
                // Whoever was to read it found something else.
                (true, 0) if next < self.step => {
                    self.settle(slot, self.step);
                    continue;
                }
                _ => {
                    pinned.push(Reverse((known, slot)));
                    continue;
                }
            }
            let Some((cost, way)) = self.cost(slot) else { continue };
            // Time goes on, and what it is made of may have gone.
            if cost > known && self.candidates.peek().is_some_and(|Reverse((next, _))| cost > *next) {
                self.candidates.push(Reverse((cost, slot)));
                continue;
            }
            self.let_go(slot, way);
        }
        self.candidates.extend(pinned);
    }

    fn let_go(&mut self, slot: Slot, way: Return) {
        if way == Return::Moved && self.values[slot].host.is_none() {
            let host = self.add_copy(slot, true);
            self.push_transfer(self.values[slot].copy, host);
            self.values[slot].host = Some(host);
        }
        let value = &mut self.values[slot];
        value.is_present = false;
        self.live -= value.bytes;
        value.is_moved = way == Return::Moved;
        if value.is_moved {
            return;
        }
        let (next, kernel) =
            (*value.uses.last().expect("it is used"), value.producer.expect("it is computed"));
        // What it is made of is needed then.
        self.values[slot].due = Some(next);
        for k in 0..self.reads[kernel].len() {
            let uses = &mut self.values[self.reads[kernel][k]].uses;
            let at = uses.partition_point(|&read| read > next);
            uses.insert(at, next);
        }
    }

    fn add_copy(&mut self, slot: Slot, on_host: bool) -> Slot {
        self.out.copies.push((slot, on_host));
        self.graph.add_copy(slot, on_host)
    }

    fn push_transfer(&mut self, from: Slot, to: Slot) {
        self.out.kernels.push(transfer(self.graph, from, to, self.wave));
        self.wave += 1;
    }

    /// Moves a value back from the host's memory.
    fn move_back(&mut self, slot: Slot) {
        self.make_room(self.values[slot].bytes);
        let (host, copy) = (self.values[slot].host.expect("it was moved"), self.add_copy(slot, false));
        self.push_transfer(host, copy);
        let value = &mut self.values[slot];
        (value.is_present, value.is_moved, value.copy) = (true, false, copy);
        self.live += value.bytes;
        self.touched.push(slot);
    }

    /// Moves a value back, or computes it again, and before it what that is made of, unless they are there.
    fn bring_back(&mut self, slot: Slot) {
        if self.values[slot].is_present {
            return;
        }
        if self.values[slot].is_moved {
            return self.move_back(slot);
        }
        let mut stack = vec![self.frame(slot)];
        while let Some(frame) = stack.last()
            && self.out.kernels.len() <= self.most
        {
            let missing =
                self.reads[frame.kernel].iter().copied().find(|&slot| !self.values[slot].is_present);
            match missing {
                Some(slot) if self.values[slot].is_moved => self.move_back(slot),
                Some(slot) => {
                    let frame = self.frame(slot);
                    stack.push(frame);
                }
                None => {
                    let frame = stack.pop().expect("seen above");
                    self.run_again(&frame);
                }
            }
        }
    }

    /// What it is made of stays until it is computed, or as soon as it is there.
    fn frame(&mut self, slot: Slot) -> Frame {
        let kernel = self.values[slot].producer.expect("a kernel computes it");
        let pinned = self.reads[kernel].clone();
        pinned.iter().for_each(|&slot| self.values[slot].pins += 1);
        Frame { kernel, pinned }
    }

    fn run_again(&mut self, frame: &Frame) {
        let results = self.writes[frame.kernel].clone();
        self.make_room(results.iter().map(|&slot| self.values[slot].bytes).sum());
        // Also what nobody needs of its results has memory while it runs.
        let all = self.kernels[frame.kernel].writes();
        let mut names: HashMap<Slot, Slot> = HashMap::new();
        for &slot in &all {
            names.entry(slot).or_insert_with(|| self.add_copy(slot, false));
        }
        let mut kernel = self.kernels[frame.kernel].clone();
        let values = &self.values;
        kernel.rename(|slot| match names.get(&slot) {
            Some(&copy) => copy,
            None if values[slot].is_present => values[slot].copy,
            None => slot,
        });
        kernel.wave = self.wave;
        kernel.purpose = Purpose::Again(self.numbers[frame.kernel]);
        self.wave += 1;
        self.out.kernels.push(kernel);
        for &slot in &results {
            let is_inside = !self.graph.nodes[slot].keep;
            let value = &mut self.values[slot];
            let is_wanted = value.pins > 0 || !value.uses.is_empty();
            if is_inside && !value.is_present && is_wanted {
                (value.is_present, value.is_moved) = (true, false);
                value.copy = names[&slot];
                self.live += value.bytes;
            }
        }
        let served: SmallVec<[u32; 4]> =
            results.iter().filter_map(|&slot| self.values[slot].due.take()).collect();
        for &slot in &frame.pinned {
            let value = &mut self.values[slot];
            value.pins -= 1;
            // It has served those that were let go.
            for due in &served {
                if let Some(at) = value.uses.iter().rposition(|read| read == due) {
                    value.uses.remove(at);
                }
            }
            if value.pins == 0 && value.uses.is_empty() && value.is_present {
                value.is_present = false;
                self.live -= value.bytes;
            }
            self.touched.push(slot);
        }
        // A long chain may need the room of what it was made of before the step ends.
        for &slot in frame.pinned.iter().chain(&results) {
            let Value { is_present, pins, ref uses, .. } = self.values[slot];
            if is_present && pins == 0 && uses.last().is_some_and(|&read| read as usize > self.step) {
                self.offer(slot);
            }
        }
        self.touched.extend(results);
    }
}

/// What something costs for each byte that is free and each step for which it is, as a number to compare.
fn per_byte_step(cost: f64, byte_steps: f64) -> u64 {
    (cost / byte_steps.max(1.0) * (1u64 << 32) as f64) as u64
}
