//! Column reductions fused into row kernels. A kernel that walks over rows reads and writes what others reduce over all of
//! these rows, such as the gradients of a norm's weight and of a bias: folded by the same kernel, it is not read once more.

use super::fuse::{Body, Fusion, distinct, row_major};
use super::kernel::{Instruction, LoopLevel, MapKernel, Slot, Step};
use super::lower_loops::Domain;
use super::view::Affine;

/// Rows that are worth it.
const BUSY_ROWS: usize = 2048;
/// The longest row, of which a workgroup keeps the folds of every column.
const LONGEST_ROW: usize = 2048;

impl Fusion<'_> {
    /// Lets kernels that walk over rows fold columns, too.
    pub(super) fn attach_columns(&mut self) {
        for k in 0..self.groups.len() {
            let follows =
                |&g: &usize| g != k && self.can_fold_columns(g, k) && self.is_acyclic_merge(&[g, k], &[]);
            let Some(g) = self.walkers(k).into_iter().find(follows) else { continue };
            let taken = std::mem::replace(&mut self.groups[k].body, Body::Merged);
            let Body::Map { maps: columns, .. } = taken else {
                unreachable!("only map kernels fold columns")
            };
            let (members, outputs) = (self.groups[k].members.clone(), self.groups[k].outputs.clone());
            self.merge(g, &[g, k], &[]);
            let reads: Vec<usize> = columns.iter().flat_map(|m| m.reads().map(|a| a.slot)).collect();
            self.note_reader(g, &reads);
            members.iter().for_each(|&m| self.group_of[m] = Some(g));
            let group = &mut self.groups[g];
            group.members.extend(members);
            group.outputs.extend(outputs);
            match &mut group.body {
                Body::Map { domain, maps } => {
                    let maps = std::mem::take(maps).into_iter().chain(columns).collect();
                    group.body = Body::Rows { domain: domain.clone(), maps };
                }
                Body::Rows { maps, .. } => maps.extend(columns),
                _ => unreachable!("it walks over rows"),
            }
        }
    }

    /// Groups that read or write something as large as what `k` walks over, and reads.
    fn walkers(&self, k: usize) -> Vec<usize> {
        let Body::Map { domain, maps } = &self.groups[k].body else { return Vec::new() };
        let [column] = &maps[..] else { return Vec::new() };
        if domain.shape.rank() == 0 || !folds_columns(domain, column) {
            return Vec::new();
        }
        let size = domain.shape.numel();
        let large = |slot: &Slot| self.graph.nodes[*slot].shape.numel() == size;
        let shared = column.reads().map(|a| a.slot).filter(large);
        let mut walkers: Vec<usize> =
            shared.flat_map(|slot| self.readers(slot).chain(self.group_of[slot])).collect();
        walkers.sort_unstable();
        walkers.dedup();
        walkers
    }

    /// Whether group `g` walks over rows of which `k` folds the columns, and reads or writes everything large that `k` reads.
    fn can_fold_columns(&self, g: usize, k: usize) -> bool {
        let (
            Body::Map { domain: across, maps: columns },
            Body::Map { domain, maps } | Body::Rows { domain, maps },
        ) = (&self.groups[k].body, &self.groups[g].body)
        else {
            return false;
        };
        let ([column], Some(rows)) = (&columns[..], maps.first()) else { return false };
        let Some(&width) = domain.shape.last() else { return false };
        let size = domain.shape.numel();
        let alike = across.shape.last() == Some(&width) && across.shape.numel() == size;
        let worth = (4..=LONGEST_ROW).contains(&width) && width % 4 == 0 && size / width >= BUSY_ROWS;
        if !alike || !worth || !folds_rows(domain, rows) || !folds_columns(across, column) {
            return false;
        }
        // Neither waits for the other's folds.
        let writes = |map: &MapKernel, slot: Slot| map.stores.iter().any(|s| s.access.slot == slot);
        let waits = rows.reads().any(|a| writes(column, a.slot))
            || column.reads().any(|a| maps[1..].iter().any(|other| writes(other, a.slot)));
        let large = |slot: &Slot| self.graph.nodes[*slot].shape.numel() == size;
        let known = |slot: Slot| rows.slots().any(|s| s == slot);
        let mut shared = column.reads().map(|a| a.slot).filter(large).peekable();
        let slots = maps.iter().chain(columns).flat_map(MapKernel::slots);
        let folds = column.code.iter().filter(|i| i.step.is_fold()).count();
        let asserts = usize::from(maps.iter().chain(columns).any(MapKernel::asserts));
        !waits
            && shared.peek().is_some()
            && shared.all(known)
            && distinct(slots) + folds + asserts <= self.rules.slots
            && is_written_in_order(rows, column)
    }
}

/// Whether a kernel folds along the last axis, and that is all it does beyond a row.
fn folds_rows(domain: &Domain, kernel: &MapKernel) -> bool {
    domain.reduced == 1 << (domain.shape.rank() - 1)
        && !kernel.code.iter().any(|i| matches!(i.step, Step::GlobalReduce(..)))
}

/// Whether a kernel folds along all axes but the last, once, and writes only what comes of it.
fn folds_columns(domain: &Domain, kernel: &MapKernel) -> bool {
    let last = domain.shape.rank() - 1;
    let others = (0..last).all(|k| domain.reduced >> k & 1 == 1 || domain.shape[k] == 1);
    let fits = |step: &Step| !matches!(step, Step::ArgReduce { .. } | Step::GlobalReduce(..));
    let full = |value: usize| kernel.code[value].rank == LoopLevel::Full;
    others
        && domain.reduced >> last & 1 == 0
        && kernel.outer < kernel.extents.len()
        && kernel.code.iter().all(|i| fits(&i.step))
        && !kernel.is_staged()
        && !kernel.stores.iter().any(|s| full(s.value))
}

/// Whether what the rows' kernel writes and the columns' reads is at the same place in both.
fn is_written_in_order(rows: &MapKernel, columns: &MapKernel) -> bool {
    let (here, there) = (row_major(&rows.extents), turned(columns));
    rows.stores.iter().all(|store| {
        let in_order = |i: &Instruction| match &i.step {
            Step::Load { access, checks, .. } if access.slot == store.access.slot => {
                store.access.position == here && access.position == there && checks.is_empty()
            }
            Step::Gather { access, .. } => access.slot != store.access.slot,
            _ => true,
        };
        columns.code.iter().all(in_order)
    })
}

/// The flat index of loops over columns and then rows, in the order of rows.
pub fn turned(kernel: &MapKernel) -> Affine {
    let (columns, rows) = kernel.extents.split_at(kernel.outer);
    let order = row_major(&[rows, columns].concat());
    let (rows, columns) = order.coefficients.split_at(rows.len());
    Affine { coefficients: columns.iter().chain(rows).copied().collect(), offset: 0 }
}
