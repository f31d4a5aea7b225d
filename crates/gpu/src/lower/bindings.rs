//! The memory that a dispatch sees: what the names of its bindings are, where that is, and how the shader declares it.

use super::Builder;
use super::wgsl_concat::tagged;
use crate::chunking::loops::{ChunkLayout, VisibleChunks};
use crate::codegen::MapDispatch;
use crate::codegen::shader::{Accessor, Declared};
use crate::codegen::storage_type::StorageType;
use crate::dispatch::{Binding, ComputeType, Memory};
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::{Kernel, KernelBody, Slot};
use volta_ir::plan::memory::SlotMemory;

/// Where a binding's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindingSource {
    Input(usize, usize),
    Output(usize, usize),
    /// A block of the arena, and the bytes in it.
    Arena {
        block: usize,
        start: usize,
        bytes: usize,
    },
    /// Where the guards note what they find.
    Guard,
    /// Where kernels note which assertion failed.
    FailedAssertion,
}

/// A binding, and the memory that it names.
#[derive(Clone)]
pub(super) struct BindingUse {
    pub name: String,
    pub dtype: DType,
    pub lane: ComputeType,
    pub width: u32,
    pub reads: bool,
    pub writes: bool,
    /// The numbers of the pieces that are seen, and where they are.
    pub pieces: Vec<usize>,
    pub sources: Vec<BindingSource>,
}

impl BindingUse {
    /// Whether both name some of the same bytes.
    pub fn overlaps(&self, other: &BindingUse) -> bool {
        self.sources.iter().any(|a| other.sources.iter().any(|b| overlap(a, b)))
    }

    /// Whether one of them writes what the other one reads or writes.
    pub fn has_hazard_with(&self, other: &BindingUse) -> bool {
        (self.writes || other.writes) && self.overlaps(other)
    }
}

/// A dispatch of a kernel, and the memory that it sees.
pub(super) struct PendingDispatch {
    pub k: usize,
    pub part: MapDispatch,
    pub seen: Vec<BindingUse>,
}

impl Builder<'_> {
    /// The memory behind the names of a kernel's bindings.
    pub(super) fn bound_memory(
        &self,
        kernel: &Kernel,
        bindings: &[Binding],
        scratch: &[(usize, usize)],
        windows: &VisibleChunks,
    ) -> Vec<BindingUse> {
        let bound = |b: &Binding| {
            let mut sources = self.sources(kernel, b.memory, scratch);
            let named = slot_of(kernel, b.memory);
            let window = windows.iter().find(|(slot, _)| named == Some(*slot));
            let mut pieces: Vec<usize> = (0..sources.len()).collect();
            if let Some((_, window)) = window {
                pieces.retain(|piece| window.contains(piece));
                sources = pieces.iter().map(|&piece| sources[piece]).collect();
            }
            let Binding { name, dtype, lane, width, reads, writes, .. } = *b;
            BindingUse { name: name.into(), dtype, lane, width, reads, writes, pieces, sources }
        };
        bindings.iter().map(bound).collect()
    }

    /// What a shader declares: names of one piece of memory share its bindings.
    pub(super) fn declare(&self, seen: &[BindingUse]) -> (Vec<Declared>, Vec<Accessor>, Vec<BindingSource>) {
        let mut declared: Vec<(Declared, Vec<BindingSource>)> = Vec::new();
        let mut accessors = Vec::new();
        for BindingUse { name, dtype, lane, width, reads, writes, pieces, sources } in seen {
            let stored = StorageType::of(*dtype, self.target.caps.f16);
            let k = declared.iter().position(|(_, s)| s == sources).unwrap_or_else(|| {
                let pieces = pieces.clone();
                declared.push((Declared { stored, width: 1, writable: false, pieces }, sources.clone()));
                declared.len() - 1
            });
            let d = &mut declared[k].0;
            debug_assert_eq!(d.stored, stored, "one piece of memory in two forms");
            d.width = d.width.max(*width);
            d.writable |= writes;
            let (name, dtype, lane) = (name.clone(), *dtype, *lane);
            accessors.push(Accessor { name, declared: k, dtype, lane, reads: *reads, writes: *writes });
        }
        // What is written in ones must not be seen in fours: of a vector, all is written at once on some devices.
        for BindingUse { width, sources, .. } in seen.iter().filter(|s| s.writes) {
            let (d, _) = declared.iter_mut().find(|(_, s)| s == sources).expect("declared above");
            if *width < d.width {
                d.width = 1;
            }
        }
        // A buffer that is written somewhere in a dispatch is writable wherever the dispatch sees it.
        let written: Vec<usize> = declared
            .iter()
            .filter(|(d, _)| d.writable)
            .flat_map(|(_, s)| s.iter().filter_map(block))
            .collect();
        let shared =
            |sources: &[BindingSource]| sources.iter().filter_map(block).any(|b| written.contains(&b));
        declared.iter_mut().filter(|(_, s)| shared(s)).for_each(|(d, _)| d.writable = true);
        let sources = declared.iter().flat_map(|(_, s)| s.clone()).collect();
        (declared.into_iter().map(|(d, _)| d).collect(), accessors, sources)
    }

    fn sources(&self, kernel: &Kernel, memory: Memory, scratch: &[(usize, usize)]) -> Vec<BindingSource> {
        match (memory, slot_of(kernel, memory)) {
            (_, Some(slot)) => self.slot_sources(slot),
            (Memory::Scratch(n), _) => self.scratch(scratch[n].0, scratch[n].1),
            _ => unreachable!("all other memory is the plan's"),
        }
    }

    pub(super) fn slot_sources(&self, slot: Slot) -> Vec<BindingSource> {
        if let Some(slice) = self.slice(slot) {
            return self.scratch(slice.at, slice.bytes);
        }
        let bytes = self.plan.slot_bytes[slot];
        let pieces = self.count(slot);
        match self.plan.layout.places[slot] {
            SlotMemory::Nowhere => unreachable!("slot {slot} has no memory"),
            SlotMemory::Input(k) => (0..pieces).map(|p| BindingSource::Input(k, p)).collect(),
            SlotMemory::Output(k) => match self.plan.layout.outputs[k].over {
                // It is the same memory under two names.
                Some(input) => (0..pieces).map(|p| BindingSource::Input(input, p)).collect(),
                None => (0..pieces).map(|p| BindingSource::Output(k, p)).collect(),
            },
            SlotMemory::Arena(at) => self.arena(at, bytes),
        }
    }

    fn scratch(&self, at: usize, bytes: usize) -> Vec<BindingSource> {
        let rules = self.target.rules;
        self.arena(rules.address(rules.regions, at), bytes)
    }

    fn arena(&self, at: usize, bytes: usize) -> Vec<BindingSource> {
        let rules = self.target.rules;
        let (mut block, mut start) = (at / rules.block, at % rules.block);
        let mut rest = bytes.max(1).next_multiple_of(rules.alignment);
        let mut pieces = Vec::new();
        while rest > 0 {
            let bytes = rest.min(rules.block - start);
            pieces.push(BindingSource::Arena { block, start, bytes });
            rest -= bytes;
            (block, start) = (block + rules.region_period(), 0);
        }
        pieces
    }
}

/// The memory that a dispatch for these sees, under the names that it has for their parts.
pub(super) fn seen_by<'s>(shares: impl IntoIterator<Item = &'s PendingDispatch>) -> Vec<BindingUse> {
    let tag = |(part, share): (usize, &'s PendingDispatch)| {
        share.seen.iter().map(move |s| BindingUse { name: tagged(part, &s.name), ..s.clone() })
    };
    shares.into_iter().enumerate().flat_map(tag).collect()
}

/// Whether two pieces of memory have bytes in common.
pub(super) fn overlap(a: &BindingSource, b: &BindingSource) -> bool {
    match (a, b) {
        (
            BindingSource::Arena { block, start, bytes },
            BindingSource::Arena { block: other, start: first, bytes: more },
        ) => block == other && start < &(first + more) && first < &(start + bytes),
        _ => a == b,
    }
}

/// The block of the arena that it is in.
pub(super) fn block(source: &BindingSource) -> Option<usize> {
    if let BindingSource::Arena { block, .. } = source { Some(*block) } else { None }
}

/// The slot of the plan that a kernel's memory is, if it is one.
fn slot_of(kernel: &Kernel, memory: Memory) -> Option<Slot> {
    match (memory, &kernel.body) {
        (Memory::Slot(slot), _) => Some(slot),
        (Memory::Operand(n), KernelBody::Native(s)) => Some(s.operands[n].slot),
        (Memory::Output, KernelBody::Native(s)) => Some(s.output.slot),
        (Memory::Scratch(_), _) => None,
        _ => unreachable!("operands belong to kernels of their own kind"),
    }
}
