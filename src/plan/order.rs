//! The order of kernels: everyone finds what it reads, memory that is of no use any more is free early, and where a device
//! has room for several small kernels at once, those that nobody waits for run side by side. So do the preparations of two
//! long products.

use super::fuse::{Body, Fusion};
use super::kernel::{MapKernel, Operand, Special, SpecialKernel, Step};
use super::narrow::NarrowProducts;
use crate::dtype::DType;
use std::collections::BTreeSet;

/// Bytes that a kernel reads and writes at most if a device has room for others beside it, and iterations of its loops.
const SMALL: usize = 8 << 20;
pub(super) const SHORT: usize = 1 << 29;
/// Kernels that run side by side at most. Bytes that those may keep in memory which wait until there are more of them, also
/// as a part of all that the plan writes; and bytes that one may add to memory which does not wait. What was written chunk by
/// chunk should run so.
const MOST_BESIDE: usize = 24;
const MOST_HELD: usize = 32 << 20;
const PART_HELD: usize = 20;
const MOST_ADDED: i64 = 16 << 10;
/// Bytes of operands whose halves two long products keep in memory at once.
const MOST_HALVES: usize = 24 << 20;

/// Kernels that one waits for if it gathers what they found: until the last of them is done, the others have time, if each
/// keeps no more bytes in memory than this, also as a part of all that the plan writes.
const MANY: usize = 6;
const LITTLE_HELD: usize = 1 << 20;
const LITTLE_PART: usize = 1024;

/// A kernel in the making that may run.
#[derive(Clone, Copy)]
struct Ready {
    age: u64,
    group: usize,
    /// Nobody needs it but the last kernels, or those that wait for many others: there is time until others are there that can
    /// run beside it.
    has_time: bool,
}

impl Fusion<'_> {
    /// Groups as the user wrote the ops, as far as they do not wait for each other, and those together that run side by
    /// side. Unless they should stay `as_written`, those that leave no more in memory than they find there go first, and
    /// of them the one that frees the most: the gradient of a weight, which may be one kernel with the update that asks
    /// for it, runs when the last value that it is made of is there.
    pub fn order(&self, as_written: bool, age: impl Fn(usize) -> u64) -> Vec<Vec<usize>> {
        let alive: Vec<usize> =
            (0..self.groups.len()).filter(|&g| !matches!(self.groups[g].body, Body::Gone)).collect();
        let mut waiting = vec![0usize; self.groups.len()];
        let mut followers = vec![Vec::new(); self.groups.len()];
        // What each group reads, without repetition, and how many have yet to read a slot.
        let mut reads = vec![Vec::new(); self.groups.len()];
        let mut readers = vec![0usize; self.graph.nodes.len()];
        for &g in &alive {
            reads[g] = self.reads(g);
            reads[g].sort_unstable();
            reads[g].dedup();
            reads[g].iter().for_each(|&slot| readers[slot] += 1);
            for p in self.producers(&reads[g]).into_iter().filter(|&p| p != g) {
                waiting[g] += 1;
                followers[p].push(g);
            }
        }
        // What kernels that wait keep in memory.
        let held_by = |groups: &[usize], donated: bool| {
            let inside = |slot: &usize| {
                let node = &self.graph.nodes[*slot];
                !node.keep && (!node.input || donated && node.donated)
            };
            let slots: BTreeSet<usize> =
                groups.iter().flat_map(|&g| reads[g].iter().copied().filter(inside)).collect();
            slots.into_iter().map(|slot| self.rules.bytes(self.graph, slot)).sum::<usize>()
        };
        let written = alive.iter().flat_map(|&g| &self.groups[g].outputs);
        let written: usize = written.map(|&slot| self.rules.bytes(self.graph, slot)).sum();
        let most_held = MOST_HELD.min(written / PART_HELD);
        let shares = self.rules.beside && !as_written;
        let small: Vec<bool> =
            (0..self.groups.len()).map(|g| shares && self.is_small(g, &reads[g])).collect();
        let little = LITTLE_HELD.min(written / LITTLE_PART);
        let gathers: Vec<bool> = waiting.iter().map(|&kernels| kernels >= MANY).collect();
        let has_time = |g: usize| {
            let last = |&f: &usize| followers[f].is_empty();
            let of_many = |&f: &usize| followers[f].is_empty() || gathers[f];
            followers[g].iter().all(last)
                || followers[g].iter().all(of_many) && held_by(&[g], false) <= little
        };
        let ready = |g: usize| Ready {
            age: self.groups[g].members.iter().map(|&m| age(m)).min().unwrap_or(0),
            group: g,
            has_time: small[g] && has_time(g),
        };
        let narrow = if shares { NarrowProducts::of(self) } else { NarrowProducts::none() };
        let mut all_ready: Vec<Ready> =
            alive.iter().filter(|&&g| waiting[g] == 0).map(|&g| ready(g)).collect();
        let mut order = Vec::with_capacity(alive.len());
        while !all_ready.is_empty() {
            // Narrow products whose followers wait for others as well have time until there are more of them.
            let can_wait =
                |r: &Ready| narrow.contains(r.group) && followers[r.group].iter().all(|&f| waiting[f] > 1);
            let mut alone: Vec<Ready> = all_ready.iter().copied().filter(can_wait).collect();
            alone.sort_unstable_by_key(|r| (r.age, r.group));
            let alone: Vec<usize> = alone.iter().map(|r| r.group).collect();
            let together = narrow.together(&alone);
            let those_with = |r: &Ready| together.iter().find(|t| t.groups.contains(&r.group));
            let with_time: Vec<usize> = all_ready.iter().filter(|r| r.has_time).map(|r| r.group).collect();
            let enough = with_time.len() >= MOST_BESIDE || held_by(&with_time, false) > most_held;
            let may_hold = narrow.may_hold(&alone, held_by(&alone, true), written);
            let change = |r: &Ready| self.change(r.group, &reads[r.group], &readers);
            let urgency = |r: &Ready| {
                let change = if as_written { 0 } else { change(r) };
                let waits = those_with(r).is_some_and(|together| !together.is_full());
                let later = if waits { may_hold } else { r.has_time != enough };
                (later, change > 0, change.min(0), r.age, r.group)
            };
            let next = *all_ready.iter().min_by_key(|r| urgency(r)).expect("one is ready");
            let joins = |r: &Ready| {
                let alike = r.has_time == next.has_time && small[r.group] && small[next.group];
                alike && (r.has_time || change(r) <= MOST_ADDED)
            };
            let turn = match those_with(&next) {
                Some(together) => together.in_order(),
                None => {
                    let others = || all_ready.iter().filter(|r| r.group != next.group);
                    let mut turn = vec![next];
                    turn.extend(others().filter(|r| joins(r)));
                    turn[1..].sort_unstable_by_key(|r| (r.age, r.group));
                    turn.truncate(MOST_BESIDE);
                    if shares && turn.len() == 1 {
                        let with = |r: &&Ready| self.are_last_to_read([next.group, r.group], &readers);
                        turn.extend(others().filter(with).min_by_key(|r| (r.age, r.group)));
                    }
                    turn.iter().map(|r| r.group).collect()
                }
            };
            all_ready.retain(|r| !turn.contains(&r.group));
            for &g in &turn {
                reads[g].iter().for_each(|&slot| readers[slot] -= 1);
                for &f in &followers[g] {
                    waiting[f] -= 1;
                    if waiting[f] == 0 {
                        all_ready.push(ready(f));
                    }
                }
            }
            order.push(turn);
        }
        assert_eq!(order.iter().map(Vec::len).sum::<usize>(), alive.len(), "kernels wait for each other");
        order
    }

    /// Whether a device has room for others beside this group, which reads these slots: it is soon done, and takes little of
    /// the memory of workgroups.
    fn is_small(&self, g: usize, reads: &[usize]) -> bool {
        let iterations = match &self.groups[g].body {
            // Random numbers are many instructions, and asked for once.
            Body::Map { maps, .. } if !maps.iter().any(draws) => maps.iter().map(MapKernel::iterations).sum(),
            Body::Special(s) if s.special == Special::Matmul => multiplications(s),
            _ => return false,
        };
        // Rows that are looked up are not the whole table.
        let seen = |slot: &usize| self.rules.bytes(self.graph, *slot).min(iterations.saturating_mul(8));
        iterations <= SHORT && reads.iter().chain(&self.groups[g].outputs).map(seen).sum::<usize>() <= SMALL
    }

    /// Whether these are long products in f32 that are the last to read a large operand, as both gradients of a model's head are:
    /// what has to be done before either begins is done for both at once. Their results take less memory than the operand, and
    /// so do the halves of the other ones.
    fn are_last_to_read(&self, both: [usize; 2], readers: &[usize]) -> bool {
        let long = |g: usize| match &self.groups[g].body {
            Body::Special(s) if s.special == Special::Matmul && multiplications(s) > SHORT => Some(s),
            _ => None,
        };
        let [Some(one), Some(other)] = both.map(long) else { return false };
        let operands = || one.operands.iter().chain(&other.operands);
        let in_common =
            |o: &&Operand| readers[o.slot] == 2 && other.operands.iter().any(|p| p.slot == o.slot);
        let Some(common) = one.operands.iter().find(in_common).map(|o| o.slot) else { return false };
        let bytes = |slot: usize| self.rules.bytes(self.graph, slot);
        let results: usize =
            both.iter().flat_map(|&g| &self.groups[g].outputs).map(|&slot| bytes(slot)).sum();
        let others: usize = operands().filter(|o| o.slot != common).map(|o| bytes(o.slot)).sum();
        operands().all(|o| o.dtype == DType::F32) && results <= bytes(common) && others <= MOST_HALVES
    }

    /// Bytes that are in memory after `g`, which reads these slots, and were not before.
    fn change(&self, g: usize, reads: &[usize], readers: &[usize]) -> i64 {
        let bytes = |slot: &usize| self.rules.bytes(self.graph, *slot) as i64;
        let goes = |slot: &&usize| {
            let node = &self.graph.nodes[**slot];
            readers[**slot] == 1 && if node.input { node.donated } else { !node.keep }
        };
        let freed: i64 = reads.iter().filter(goes).map(bytes).sum();
        self.groups[g].outputs.iter().map(bytes).sum::<i64>() - freed
    }
}

/// The multiplications of a product.
fn multiplications(product: &SpecialKernel) -> usize {
    let terms = product.operands[0].shape.last().copied().unwrap_or(1);
    product.output.shape.numel().saturating_mul(terms)
}

fn draws(map: &MapKernel) -> bool {
    map.code.iter().any(|i| matches!(i.step, Step::Random { .. }))
}
