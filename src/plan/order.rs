//! The order of kernels: everyone finds what it reads, and memory that is of no use any more is free early.

use super::fuse::{Body, Fusion};

impl Fusion<'_> {
    /// Groups as the user wrote the ops, as far as they do not wait for each other. Unless they should stay `as_written`,
    /// those that leave no more in memory than they find there go first, and of them the one that frees the most: the
    /// gradient of a weight, which may be one kernel with the update that asks for it, runs when the last value that it
    /// is made of is there.
    pub fn order(&self, as_written: bool, age: impl Fn(usize) -> u64) -> Vec<usize> {
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
            let urgency = |k: &usize| {
                let (age, g) = ready[*k];
                let change = if as_written { 0 } else { self.change(g, &reads[g], &readers) };
                (change > 0, change.min(0), age, g)
            };
            let next = (0..ready.len()).min_by_key(urgency).expect("one is ready");
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
