//! How many bindings the dispatches of a kernel may take, which WebGPU promises few of.

use super::fuse::distinct;
use super::kernel::{LoopLevel, MapKernel, Slot, Step};
use super::memory::DeviceLimits;

/// Rows from this length on may be shared by workgroups, where there are few of them.
pub(super) const LONG_ROW: usize = 512;

/// The bindings of the dispatch that takes the most, if only the `needed` stores remain in the end: what it reads and stores, what
/// dispatches leave to each other, and what failed assertions are reported to.
pub(super) fn of_largest_dispatch(
    kernel: &MapKernel,
    rules: &DeviceLimits,
    needed: impl Fn(Slot) -> bool,
) -> usize {
    let is_constant = |v: usize| matches!(kernel.code[v].rank, LoopLevel::Uniform | LoopLevel::Global);
    let count = |picks: &dyn Fn(&Step) -> bool| kernel.code.iter().filter(|i| picks(&i.step)).count();
    let stores = || kernel.stores.iter().filter(|s| needed(s.access.slot));
    let finals = stores().filter(|s| kernel.code[s.value].rank == LoopLevel::Global).count();
    let of_rows = stores().count() - finals;
    let totals = count(&|step| matches!(step, Step::GlobalReduce(..)));
    // Workgroups that share a row leave what they reduced of it; where the largest is, both its value and its place.
    let width = kernel.iterations() / kernel.rows().max(1);
    let is_shared = width >= LONG_ROW && kernel.rows() < rules.min_rows_unsplit;
    let values = count(&|step| matches!(step, Step::Reduce(..)));
    let places = count(&|step| matches!(step, Step::ArgReduce { .. }));
    let parts = if is_shared { values + 2 * places } else { 0 };
    // One workgroup reduces all rows and stores what becomes of them. Several leave their totals to a last dispatch, which reads what
    // does not depend on the row.
    let reads = distinct(kernel.reads().map(|a| a.slot));
    let constants = kernel.code.iter().enumerate().filter(|(v, _)| is_constant(*v));
    let read_last = distinct(constants.filter_map(|(_, i)| i.step.read()).map(|a| a.slot));
    let first = reads + parts + of_rows + totals.max(finals);
    let last = if totals > 0 { read_last + totals + finals } else { 0 };
    first.max(last) + usize::from(kernel.asserts())
}
