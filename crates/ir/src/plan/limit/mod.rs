//! A plan that takes no more memory than there is.
//!
//! A plan is made as if memory had no end. If it takes more than there is, `walk` goes through its kernels once more and lets go of
//! values that are used late: where they are used, the kernels that computed them run again, or they have been moved to the host's memory
//! and come back.
//! The kernels that run again are copies of those of the plan, and nothing else is planned anew, so every number is the same to the bit.

mod rename;
#[cfg(test)]
mod tests;
mod transfer;
mod walk;

use super::graph::PlanGraph;
use super::kernel::{Kernel, Purpose};
use super::memory::{DeviceLimits, MemoryLayout, Packing, plan_memory};
use walk::{Walk, Walked};

/// How often another budget for intermediate values is tried.
const MAX_TRIES: usize = 16;

/// By what part of it a budget that was too much is made smaller, at least: what is a little too much may be so because of gaps.
const LEAST_PART: usize = 32;

/// Kernels that were found for a budget.
struct Tried {
    /// Bytes that outputs and intermediate values take.
    bytes: usize,
    /// What it takes to compute values again, and to move them.
    cost: u64,
    walked: Walked,
    layout: MemoryLayout,
}

/// What was done to a plan so that it takes no more memory than there is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryFit {
    /// Bytes that there are for outputs and intermediate values.
    pub room: usize,
    /// Bytes that they take.
    pub needed_bytes: usize,
    /// Bytes that they would take without a limit…
    pub unlimited_bytes: usize,
    /// …and with the inputs.
    pub unlimited_peak_bytes: usize,
    /// Kernels that compute something again.
    pub recomputed_kernels: usize,
    /// Their arithmetic operations.
    pub recomputed_flops: u64,
    /// The bytes that they read and write.
    pub recomputed_bytes: u64,
    /// Moves of values to the host's memory and back.
    pub moves: usize,
    /// The bytes that they move.
    pub moved_bytes: u64,
    /// Bytes of the host's memory that the values take there.
    pub host_bytes: usize,
    /// How long the plan takes, as a multiple of its time without a limit, by a rough estimate.
    pub slowdown: f64,
}

impl MemoryFit {
    /// Whether the plan takes no more than there is.
    pub fn fits(&self) -> bool {
        self.needed_bytes <= self.room
    }

    /// Whether the plan is another one than it would be without a limit.
    pub fn is_changed(&self) -> bool {
        self.recomputed_kernels > 0 || self.moves > 0
    }
}

/// Changes kernels and their memory so that they take no more than `room` for outputs and intermediate values; if that cannot be,
/// the least of all that was tried.
pub(super) fn fit(
    graph: &mut PlanGraph,
    kernels: &mut Vec<Kernel>,
    layout: &mut MemoryLayout,
    rules: &DeviceLimits,
    room: usize,
) -> MemoryFit {
    let unlimited = MemoryFit {
        room,
        needed_bytes: layout.new_bytes(rules),
        unlimited_bytes: layout.new_bytes(rules),
        unlimited_peak_bytes: layout.peak_bytes,
        slowdown: 1.0,
        ..MemoryFit::default()
    };
    if unlimited.fits() {
        return unlimited;
    }
    *layout = arranged(graph, kernels, rules, room);
    let unchanged = MemoryFit { needed_bytes: layout.new_bytes(rules), ..unlimited };
    if unchanged.fits() {
        return unchanged;
    }
    let best = search(graph, kernels, layout, rules, room);
    let Some(Tried { walked, layout: found, .. }) = best.filter(|best| best.bytes < unchanged.needed_bytes)
    else {
        return unchanged;
    };
    for &(slot, on_host) in &walked.copies {
        graph.add_copy(slot, on_host);
    }
    let again = || walked.kernels.iter().filter(|kernel| matches!(kernel.purpose, Purpose::Again(_)));
    let moves = || walked.kernels.iter().filter(|kernel| kernel.is_transfer());
    let time = |kernel: &Kernel| rules.rates.cost(kernel);
    let before: f64 = kernels.iter().map(time).sum();
    let fit = MemoryFit {
        needed_bytes: found.new_bytes(rules),
        recomputed_kernels: again().count(),
        recomputed_flops: again().map(|k| k.flops).sum(),
        recomputed_bytes: again().map(|k| k.bytes_read + k.bytes_written).sum(),
        moves: moves().count(),
        moved_bytes: moves().map(|k| k.bytes_written).sum(),
        host_bytes: found.host_bytes(),
        slowdown: 1.0 + again().chain(moves()).map(time).sum::<f64>() / before.max(1.0),
        ..unchanged
    };
    (*kernels, *layout) = (walked.kernels, found);
    fit
}

/// Where everything is: apart if there is room for that, else where it takes less.
fn arranged(graph: &PlanGraph, kernels: &[Kernel], rules: &DeviceLimits, room: usize) -> MemoryLayout {
    let close = plan_memory(graph, kernels, rules, Packing::Close);
    if close.new_bytes(rules) > room {
        return close;
    }
    let apart = plan_memory(graph, kernels, rules, Packing::Apart);
    if apart.new_bytes(rules) <= room { apart } else { close }
}

/// Looks for the largest budget for intermediate values with which there is room for the plan: the larger, the less is computed
/// again. Inputs lend their memory to values that a budget counts, and gaps between values take memory that it does not.
fn search(
    graph: &mut PlanGraph,
    kernels: &[Kernel],
    layout: &MemoryLayout,
    rules: &DeviceLimits,
    room: usize,
) -> Option<Tried> {
    let nodes = graph.nodes.len();
    let mut best: Option<Tried> = None;
    // Budgets that were enough or less than anything can do with, and those that were too much.
    let (mut low, mut high) = (0usize, usize::MAX);
    let mut budget = room.saturating_sub(layout.output_bytes(rules));
    for _ in 0..MAX_TRIES {
        let walked = Walk::new(graph, kernels, layout, rules, budget).run();
        let tried = walked.map(|walked| {
            let layout = arranged(graph, &walked.kernels, rules, room);
            Tried { bytes: layout.new_bytes(rules), cost: walked.cost(rules), walked, layout }
        });
        graph.truncate(nodes);
        let bytes = tried.as_ref().map(|tried| tried.bytes);
        let rank = |tried: &Tried| (tried.bytes.saturating_sub(room), tried.cost);
        best = best.into_iter().chain(tried).min_by_key(rank);
        let next = match bytes {
            Some(bytes) if bytes > room => {
                high = budget;
                let less = (bytes - room).max(budget / LEAST_PART);
                budget.saturating_sub(less).max(low.midpoint(budget))
            }
            Some(bytes) => {
                low = budget;
                (budget + (room - bytes)).min(budget.midpoint(high))
            }
            None => {
                low = budget;
                low.midpoint(high.min(2 * budget))
            }
        };
        if next.abs_diff(budget) <= budget / 128 {
            break;
        }
        budget = next;
    }
    best
}
