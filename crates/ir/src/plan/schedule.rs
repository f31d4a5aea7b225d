//! The order of kernels: everyone finds what it reads, memory that is of no use any more is free early, and where a device
//! has room for several small kernels at once, those that nobody waits for run side by side. So do the preparations of two
//! long products.

use super::coschedule_gemms::UnderfilledGemms;
use super::fuse::{Body, Fusion};
use super::kernel::{MapKernel, NativeKernel, Operand, Step};
use crate::dtype::DType;
use crate::op::NativeOp;
use std::collections::BTreeSet;

/// Bytes that a kernel reads and writes at most if a device has room for others beside it, and iterations of its loops.
const SMALL_KERNEL_BYTES: usize = 8 << 20;
pub(super) const SMALL_KERNEL_ITERATIONS: usize = 1 << 29;
/// Kernels that run side by side at most.
const MAX_CONCURRENT_KERNELS: usize = 24;
/// Bytes that kernels may keep in memory while they are deferred, at most…
const MAX_HELD_BYTES: usize = 32 << 20;
/// …also as a part of all that the plan writes…
const HELD_BYTES_DIVISOR: usize = 20;
/// …and bytes that one may add to memory and still run at once: what was written chunk by chunk should run so.
const MAX_DEFERRED_BYTES: i64 = 16 << 10;
/// Bytes of operands whose halves two long products keep in memory at once.
const MAX_SHARED_F16_BYTES: usize = 24 << 20;

/// A kernel that reads so many others waits for them: until the last of them is done, the others are deferred…
const MIN_WIDE_FAN_IN: usize = 6;
/// …if each keeps at most so many bytes in memory…
const MAX_WIDE_FAN_IN_BYTES: usize = 1 << 20;
/// …also as a part of all that the plan writes.
const WIDE_FAN_IN_BYTES_DIVISOR: usize = 1024;

/// What a group that may run is chosen by: whether more is in memory after it than before, how much it frees, how old it is.
type Urgency = (bool, i64, u64, usize);

/// A group that may run.
#[derive(Clone, Copy)]
struct ReadyKernel {
    age: u64,
    group: usize,
    /// Nobody needs it but the last kernels, or those that wait for many others: there is time until others are there that can
    /// run beside it.
    is_deferrable: bool,
    /// Bytes that are in memory after it, and were not before.
    change: i64,
}

impl ReadyKernel {
    fn urgency(&self) -> Urgency {
        (self.change > 0, self.change.min(0), self.age, self.group)
    }
}

/// The groups that may run, in the orders in which they are looked for, as others run.
struct Schedule<'f, 'g> {
    fusion: &'f Fusion<'g>,
    as_written: bool,
    /// How many others each group waits for, and who waits for it.
    waiting: Vec<usize>,
    followers: Vec<Vec<usize>>,
    /// What each group reads, without repetition.
    reads: Vec<Vec<usize>>,
    /// How many have yet to read a slot, and the exclusive or of their numbers: the number of the last one.
    readers: Vec<(usize, usize)>,
    small: Vec<bool>,
    narrow: UnderfilledGemms,
    ready: Vec<Option<ReadyKernel>>,
    /// By urgency: those that have no time, and those that have; narrow products are neither here nor there.
    urgent: [BTreeSet<Urgency>; 2],
    /// By age, of the same: those that may run beside others.
    coschedulable: [BTreeSet<(u64, usize)>; 2],
    narrow_ready: BTreeSet<(u64, usize)>,
    /// How many of those that have time read a slot, and the bytes that they keep in memory so.
    held: (Vec<u32>, usize),
}

impl Schedule<'_, '_> {
    /// Whether a plan keeps a slot in memory for those who have yet to read it.
    fn is_inside(&self, slot: usize, donated: bool) -> bool {
        let node = &self.fusion.graph.nodes[slot];
        !node.keep && (!node.input || donated && node.donated)
    }

    fn bytes(&self, slot: usize) -> usize {
        self.fusion.rules.bytes(self.fusion.graph, slot)
    }

    /// What groups that wait keep in memory.
    fn held_by(&self, groups: &[usize], donated: bool) -> usize {
        let slots = groups.iter().flat_map(|&g| self.reads[g].iter().copied());
        let slots: BTreeSet<usize> = slots.filter(|&slot| self.is_inside(slot, donated)).collect();
        slots.into_iter().map(|slot| self.bytes(slot)).sum()
    }

    /// Bytes that are in memory after `g` and were not before.
    fn change(&self, g: usize) -> i64 {
        let goes = |slot: &&usize| {
            let node = &self.fusion.graph.nodes[**slot];
            self.readers[**slot].0 == 1 && if node.input { node.donated } else { !node.keep }
        };
        let freed: i64 = self.reads[g].iter().filter(goes).map(|&slot| self.bytes(slot) as i64).sum();
        let outputs = self.fusion.groups[g].outputs.iter();
        outputs.map(|&slot| self.bytes(slot) as i64).sum::<i64>() - freed
    }

    /// A group may run.
    fn add(&mut self, mut r: ReadyKernel) {
        r.change = if self.as_written { 0 } else { self.change(r.group) };
        self.ready[r.group] = Some(r);
        if self.narrow.contains(r.group) {
            self.narrow_ready.insert((r.age, r.group));
        } else {
            self.urgent[usize::from(r.is_deferrable)].insert(r.urgency());
        }
        if self.small[r.group] && (r.is_deferrable || r.change <= MAX_DEFERRED_BYTES) {
            self.coschedulable[usize::from(r.is_deferrable)].insert((r.age, r.group));
        }
        if r.is_deferrable {
            self.hold(r.group, true);
        }
    }

    fn remove(&mut self, group: usize) -> Option<ReadyKernel> {
        let r = self.ready[group].take()?;
        if !self.narrow_ready.remove(&(r.age, group)) {
            self.urgent[usize::from(r.is_deferrable)].remove(&r.urgency());
        }
        self.coschedulable[usize::from(r.is_deferrable)].remove(&(r.age, group));
        if r.is_deferrable {
            self.hold(group, false);
        }
        Some(r)
    }

    /// A group that has time keeps what it reads in memory, or does so no more.
    fn hold(&mut self, group: usize, yes: bool) {
        for k in 0..self.reads[group].len() {
            let slot = self.reads[group][k];
            if !self.is_inside(slot, false) {
                continue;
            }
            let bytes = self.bytes(slot);
            let (counts, all) = &mut self.held;
            match yes {
                true if counts[slot] == 0 => *all += bytes,
                false if counts[slot] == 1 => *all -= bytes,
                _ => {}
            }
            counts[slot] = if yes { counts[slot] + 1 } else { counts[slot] - 1 };
        }
    }

    /// A group runs: gives those that may run now.
    fn run(&mut self, g: usize) -> Vec<usize> {
        for k in 0..self.reads[g].len() {
            let (count, others) = &mut self.readers[self.reads[g][k]];
            (*count, *others) = (*count - 1, *others ^ g);
            // The last one to read a slot frees it.
            if let (1, last) = (*count, *others)
                && let Some(r) = self.remove(last)
            {
                self.add(r);
            }
        }
        let mut free = Vec::new();
        for k in 0..self.followers[g].len() {
            let f = self.followers[g][k];
            self.waiting[f] -= 1;
            if self.waiting[f] == 0 {
                free.push(f);
            }
        }
        free
    }

    /// The oldest group that is the last to read a large operand, but for a product that runs next.
    fn last_with(&self, next: usize) -> Option<usize> {
        let Body::Native(s) = &self.fusion.groups[next].body else { return None };
        let other = |o: &Operand| {
            let (count, others) = self.readers[o.slot];
            (count == 2).then_some(others ^ next)
        };
        let ready = s.operands.iter().filter_map(other).filter_map(|g| self.ready.get(g).copied().flatten());
        let with = ready.filter(|r| self.fusion.are_last_to_read([next, r.group], &self.readers));
        with.min_by_key(|r| (r.age, r.group)).map(|r| r.group)
    }
}

impl Fusion<'_> {
    /// Groups as the user wrote the ops, as far as they do not wait for each other, and those together that run side by
    /// side. Unless they should stay `as_written`, those that leave no more in memory than they find there go first, and
    /// of them the one that frees the most: the gradient of a weight, which may be one kernel with the update that asks
    /// for it, runs when the last value that it is made of is there.
    pub fn order(&self, as_written: bool, age: impl Fn(usize) -> u64) -> Vec<Vec<usize>> {
        let count = self.groups.len();
        let alive: Vec<usize> =
            (0..count).filter(|&g| !matches!(self.groups[g].body, Body::Merged)).collect();
        let mut waiting = vec![0usize; count];
        let mut followers = vec![Vec::new(); count];
        let mut reads = vec![Vec::new(); count];
        let mut readers = vec![(0usize, 0usize); self.graph.nodes.len()];
        for &g in &alive {
            reads[g] = self.reads(g);
            reads[g].sort_unstable();
            reads[g].dedup();
            reads[g].iter().for_each(|&slot| readers[slot] = (readers[slot].0 + 1, readers[slot].1 ^ g));
            for p in self.producers(&reads[g]).into_iter().filter(|&p| p != g) {
                waiting[g] += 1;
                followers[p].push(g);
            }
        }
        let written = alive.iter().flat_map(|&g| &self.groups[g].outputs);
        let written: usize = written.map(|&slot| self.rules.bytes(self.graph, slot)).sum();
        let most_held = MAX_HELD_BYTES.min(written / HELD_BYTES_DIVISOR);
        let shares = self.rules.horizontal_fusion && !as_written;
        let small: Vec<bool> = (0..count).map(|g| shares && self.is_small(g, &reads[g])).collect();
        let little = MAX_WIDE_FAN_IN_BYTES.min(written / WIDE_FAN_IN_BYTES_DIVISOR);
        let has_wide_fan_in: Vec<bool> = waiting.iter().map(|&kernels| kernels >= MIN_WIDE_FAN_IN).collect();
        let mut schedule = Schedule {
            fusion: self,
            as_written,
            waiting,
            followers,
            reads,
            readers,
            small,
            narrow: if shares { UnderfilledGemms::of(self) } else { UnderfilledGemms::none() },
            ready: vec![None; count],
            urgent: Default::default(),
            coschedulable: Default::default(),
            narrow_ready: BTreeSet::new(),
            held: (vec![0; self.graph.nodes.len()], 0),
        };
        let is_deferrable = |s: &Schedule, g: usize| {
            let last = |&f: &usize| s.followers[f].is_empty();
            let of_many = |&f: &usize| s.followers[f].is_empty() || has_wide_fan_in[f];
            s.followers[g].iter().all(last)
                || s.followers[g].iter().all(of_many) && s.held_by(&[g], false) <= little
        };
        let ready = |s: &Schedule, g: usize| ReadyKernel {
            age: self.groups[g].members.iter().map(|&m| age(m)).min().unwrap_or(0),
            group: g,
            is_deferrable: s.small[g] && is_deferrable(s, g),
            change: 0,
        };
        for &g in alive.iter().filter(|&&g| schedule.waiting[g] == 0).collect::<Vec<_>>() {
            schedule.add(ready(&schedule, g));
        }
        let (mut order, mut done) = (Vec::with_capacity(alive.len()), 0);
        while let Some(turn) = self.next_turn(&schedule, shares, most_held, written) {
            turn.iter().for_each(|&g| {
                schedule.remove(g);
            });
            for &g in &turn {
                for free in schedule.run(g) {
                    schedule.add(ready(&schedule, free));
                }
            }
            done += turn.len();
            order.push(turn);
        }
        assert_eq!(done, alive.len(), "kernels wait for each other");
        order
    }

    /// The groups that run next, side by side.
    fn next_turn(&self, s: &Schedule, shares: bool, most_held: usize, written: usize) -> Option<Vec<usize>> {
        // Narrow products whose followers wait for others as well have time until there are more of them.
        let waits_for_batch = |g: &usize| s.followers[*g].iter().all(|&f| s.waiting[f] > 1);
        let alone: Vec<usize> = s.narrow_ready.iter().map(|(_, g)| *g).filter(waits_for_batch).collect();
        let together = s.narrow.together(&alone);
        let those_with = |g: usize| together.iter().find(|t| t.groups.contains(&g));
        let with_time = s.urgent[1].len();
        let enough = with_time >= MAX_CONCURRENT_KERNELS || s.held.1 > most_held;
        let may_hold = !alone.is_empty() && s.narrow.may_hold(&alone, s.held_by(&alone, true), written);
        let [urgent, with_time] = [0, 1].map(|time| {
            let first = s.urgent[time].first();
            first.map(|&urgency| ((time == 1) != enough, urgency))
        });
        let narrow = s.narrow_ready.iter().filter_map(|&(_, g)| s.ready[g]).map(|r| {
            let waits = those_with(r.group).is_some_and(|together| !together.is_full());
            (if waits { may_hold } else { enough }, r.urgency())
        });
        let (_, (.., next)) = urgent.into_iter().chain(with_time).chain(narrow).min()?;
        if let Some(together) = those_with(next) {
            return Some(together.in_order());
        }
        let mut turn = vec![next];
        if s.small[next] {
            let is_deferrable = s.ready[next].is_some_and(|r| r.is_deferrable);
            let others = s.coschedulable[usize::from(is_deferrable)].iter().map(|(_, g)| *g);
            turn.extend(others.filter(|&g| g != next).take(MAX_CONCURRENT_KERNELS - 1));
        }
        if shares && turn.len() == 1 {
            turn.extend(s.last_with(next));
        }
        Some(turn)
    }

    /// Whether a device has room for others beside this group, which reads these slots: it is soon done, and takes little of
    /// the memory of workgroups.
    fn is_small(&self, g: usize, reads: &[usize]) -> bool {
        let iterations = match &self.groups[g].body {
            // Random numbers are many instructions, and asked for once.
            Body::Map { maps, .. } if !maps.iter().any(draws) => maps.iter().map(MapKernel::iterations).sum(),
            Body::Native(s) if s.op == NativeOp::Matmul => multiplications(s),
            _ => return false,
        };
        // Rows that are looked up are not the whole table.
        let seen = |slot: &usize| self.rules.bytes(self.graph, *slot).min(iterations.saturating_mul(8));
        iterations <= SMALL_KERNEL_ITERATIONS
            && reads.iter().chain(&self.groups[g].outputs).map(seen).sum::<usize>() <= SMALL_KERNEL_BYTES
    }

    /// Whether these are long products in f32 that are the last to read a large operand, as both gradients of a model's head are:
    /// what has to be done before either begins is done for both at once. Their results take less memory than the operand, and
    /// so do the halves of the other ones.
    fn are_last_to_read(&self, both: [usize; 2], readers: &[(usize, usize)]) -> bool {
        let long = |g: usize| match &self.groups[g].body {
            Body::Native(s) if s.op == NativeOp::Matmul && multiplications(s) > SMALL_KERNEL_ITERATIONS => {
                Some(s)
            }
            _ => None,
        };
        let [Some(one), Some(other)] = both.map(long) else { return false };
        let operands = || one.operands.iter().chain(&other.operands);
        let in_common =
            |o: &&Operand| readers[o.slot].0 == 2 && other.operands.iter().any(|p| p.slot == o.slot);
        let Some(common) = one.operands.iter().find(in_common).map(|o| o.slot) else { return false };
        let bytes = |slot: usize| self.rules.bytes(self.graph, slot);
        let results: usize =
            both.iter().flat_map(|&g| &self.groups[g].outputs).map(|&slot| bytes(slot)).sum();
        let others: usize = operands().filter(|o| o.slot != common).map(|o| bytes(o.slot)).sum();
        operands().all(|o| o.dtype == DType::F32)
            && results <= bytes(common)
            && others <= MAX_SHARED_F16_BYTES
    }
}

/// The multiplications of a product.
fn multiplications(product: &NativeKernel) -> usize {
    let terms = product.operands[0].shape.last().copied().unwrap_or(1);
    product.output.shape.numel().saturating_mul(terms)
}

fn draws(map: &MapKernel) -> bool {
    map.code.iter().any(|i| matches!(i.step, Step::Random { .. }))
}
