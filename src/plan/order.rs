//! The order of kernels: everyone finds what it reads, and memory that is of no use any more is free early.

use super::fuse::{Body, Fusion};

impl Fusion<'_> {
    /// Groups as the user wrote the ops, as far as they do not wait for each other. One that leaves no more in memory
    /// than it found there goes first: the gradient of a weight, which may be written with the update that needs it,
    /// runs while what it is made of is there anyway.
    pub fn order(&self, age: impl Fn(usize) -> u64) -> Vec<usize> {
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
        let born = |g: usize| self.groups[g].members.iter().map(|&m| age(m)).min().unwrap_or(0);
        let mut ready: Vec<(u64, usize)> =
            alive.iter().filter(|&&g| waiting[g] == 0).map(|&g| (born(g), g)).collect();
        let mut order = Vec::with_capacity(alive.len());
        while !ready.is_empty() {
            let next = (0..ready.len())
                .min_by_key(|&k| (self.adds_memory(ready[k].1, &reads, &readers), ready[k]))
                .expect("one is ready");
            let (_, g) = ready.swap_remove(next);
            order.push(g);
            reads[g].iter().for_each(|&slot| readers[slot] -= 1);
            for &f in &followers[g] {
                waiting[f] -= 1;
                if waiting[f] == 0 {
                    ready.push((born(f), f));
                }
            }
        }
        assert_eq!(order.len(), alive.len(), "kernels wait for each other");
        order
    }

    /// Whether more is in memory after `g` than before.
    fn adds_memory(&self, g: usize, reads: &[Vec<usize>], readers: &[usize]) -> bool {
        let bytes = |slot: usize| self.rules.bytes(self.graph, slot);
        let node = |slot: usize| &self.graph.nodes[slot];
        let goes = |slot: usize| {
            readers[slot] == 1 && if node(slot).input { node(slot).donated } else { !node(slot).keep }
        };
        let freed: usize = reads[g].iter().filter(|&&slot| goes(slot)).map(|&slot| bytes(slot)).sum();
        self.groups[g].outputs.iter().map(|&slot| bytes(slot)).sum::<usize>() > freed
    }
}
