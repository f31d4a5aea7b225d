//! Operands of products that are computed as they are read: what would be a kernel of its own, which writes an operand for
//! one product to read, becomes part of that product.

use super::fuse::{Body, Fusion, distinct, row_major};
use super::kernel::{Instruction, MapKernel, NativeKernel, Operand, Prologue, Step};
use crate::dtype::DType;
use crate::op::{BinaryOp, NativeOp, UnaryOp};

/// Instructions of a program, besides reading: a product computes an element again for every tile that reads it.
const MAX_PROLOGUE_INSTRUCTIONS: usize = 4;
/// Slots that one reads.
const MAX_PROLOGUE_SLOTS: usize = 2;
/// Lanes of the other operand up to which an operand is read once, by a product that waits for memory…
const MAX_GEMV_ROWS: usize = 4;
/// …or up to which halves are: one tile has all of these lanes…
const MAX_F16_ROWS: usize = 128;
/// …and elements, not halves, up to which one kernel less is worth more than the arithmetic that reads wait for.
const MAX_RECOMPUTED_ELEMENTS: usize = 1 << 20;

impl Fusion<'_> {
    /// Lets products compute their operands.
    pub(super) fn attach_prologues(&mut self) {
        for g in 0..self.groups.len() {
            let Body::Native(s) = &self.groups[g].body else { continue };
            if s.op != NativeOp::Matmul {
                continue;
            }
            for number in 0..s.operands.len() {
                self.attach_prologue(g, number);
            }
        }
    }

    fn attach_prologue(&mut self, g: usize, number: usize) {
        let Body::Native(s) = &self.groups[g].body else { return };
        let slot = s.operands[number].slot;
        let Some(map) = self.prologue_of(g, s, number) else { return };
        let e = self.group_of[slot].expect("a kernel makes it");
        let slots: Vec<usize> = map.reads().map(|a| a.slot).collect();
        let members = self.groups[e].members.clone();
        self.merge(g, &[g, e], &slots);
        self.note_reader(g, &slots);
        for &m in &members {
            self.group_of[m] = Some(g);
        }
        let group = &mut self.groups[g];
        group.members.extend(members);
        let Body::Native(s) = &mut group.body else { return };
        let same = (0..s.operands.len()).filter(|&k| s.operands[k].slot == slot);
        s.prologues.extend(same.map(|operand| Prologue { operand, map: map.clone() }));
    }

    /// The program that computes an operand, if it is worth it.
    fn prologue_of(&self, g: usize, s: &NativeKernel, number: usize) -> Option<MapKernel> {
        let operand = &s.operands[number];
        let e = self.group_of[operand.slot].filter(|&e| e != g)?;
        let Body::Map { domain, maps } = &self.groups[e].body else { return None };
        let [map] = &maps[..] else { return None };
        let [store] = &map.stores[..] else { return None };
        let elementwise = domain.reduced == 0 && map.iterations() > 0 && operand.dtype.is_float();
        let same = (0..s.operands.len()).filter(|&k| s.operands[k].slot == operand.slot);
        let pays = same.clone().all(|k| is_worth_it(s, k, map));
        if !elementwise || self.graph.nodes[operand.slot].keep || !pays {
            return None;
        }
        // What the product does besides reads it from memory.
        let besides = s.epilogue.iter().chain(s.prologues.iter().map(|p| &p.map));
        if besides.flat_map(MapKernel::reads).any(|a| a.slot == operand.slot) {
            return None;
        }
        if self.is_read_besides(operand.slot, &[g, e]) || !self.is_acyclic_merge(&[g, e], &[]) {
            return None;
        }
        let mut seen: Vec<usize> = s.operand_slots().filter(|slot| *slot != operand.slot).collect();
        seen.extend(map.reads().map(|a| a.slot));
        seen.extend(s.epilogue.iter().flat_map(|m| m.slots()));
        // Templates have memory of their own besides.
        let fits = |slot: usize| self.rules.is_one_piece(self.graph, slot);
        let few = distinct(seen.iter().copied().chain([s.output.slot])) + 2 <= self.rules.slots;
        if !few || !seen.iter().copied().chain([operand.slot, s.output.slot]).all(fits) {
            return None;
        }
        let mut one = map.simplified();
        // A single element has no loop.
        if one.extents.is_empty() {
            return None;
        }
        debug_assert_eq!((one.extents.len(), store.value + 1), (1, map.code.len()));
        one.stores.clear();
        Some(one)
    }
}

/// Whether a program takes little time, walks straight through what it reads, and saves more than it costs.
fn is_worth_it(s: &NativeKernel, number: usize, map: &MapKernel) -> bool {
    let in_order = row_major(&map.extents);
    let quick = |i: &Instruction| match &i.step {
        Step::Load { access, checks, .. } => {
            let single = access.position.coefficients.iter().all(|&c| c == 0);
            checks.is_empty() && (single || access.position == in_order)
        }
        Step::Unary(op, _) => matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Relu | UnaryOp::Sign),
        Step::Binary(op, ..) => !matches!(op, BinaryOp::Pow | BinaryOp::Mod | BinaryOp::FloorDiv),
        Step::Where(..) | Step::Cast(_) | Step::Broadcast(_) | Step::Argument(_) | Step::Literal(_) => true,
        _ => false,
    };
    let computes = |i: &&Instruction| {
        matches!(i.step, Step::Unary(..) | Step::Binary(..) | Step::Where(..) | Step::Cast(_))
    };
    let short = map.code.iter().filter(computes).count() <= MAX_PROLOGUE_INSTRUCTIONS;
    // There are no vectors of 64-bit integers.
    let in_lanes = map.code.iter().all(|i| i.dtype != DType::I64);
    let few_slots = distinct(map.reads().map(|a| a.slot)) <= MAX_PROLOGUE_SLOTS;
    let operand = &s.operands[number];
    let halves = operand.dtype == DType::F16;
    let few_lanes = if halves { MAX_F16_ROWS } else { MAX_GEMV_ROWS };
    let rank = operand.shape.rank();
    let repeated = (0..rank - 2).any(|k| operand.strides[k] == 0 && operand.shape[k] > 1);
    let once = !repeated && lanes(&s.operands[1 - number], 1 - number) <= few_lanes;
    let is_small = !halves
        && map.iterations() <= MAX_RECOMPUTED_ELEMENTS
        && operand.shape.numel() <= MAX_RECOMPUTED_ELEMENTS;
    map.code.iter().all(quick) && in_lanes && short && few_slots && (once || is_small)
}

/// Rows of the first operand of a product, columns of the second.
fn lanes(operand: &Operand, number: usize) -> usize {
    let rank = operand.shape.rank();
    operand.shape[if number == 0 { rank - 2 } else { rank - 1 }]
}
