//! Kernels that see more pieces of memory than a dispatch may: in parts, in stages or with copies, each of which sees few
//! enough.

use super::{BindingSource, Builder, LoweringTarget, ScratchSlot, write_programs};
use crate::chunking::kernel_split::SubKernel;
use crate::chunking::loops::{self, ChunkLayout, VisibleChunks};
use crate::chunking::multipass;
use crate::chunking::staging::{self, KernelSequence};
use crate::codegen::{self, MapLowered};
use volta_ir::error::{Error, ErrorKind, Result};
use volta_ir::plan::kernel::{Kernel, KernelBody, MapKernel, NativeKernel, Slot};

/// Bindings for what the dispatches of a fold leave to each other, at most.
const SCRATCH: usize = 2;

impl Builder<'_> {
    /// Whether these programs, which may share a dispatch, see tensors of several pieces, and too many of them.
    pub(super) fn exceeds_binding_limit(&self, maps: &[MapKernel]) -> bool {
        let mut slots: Vec<Slot> = maps.iter().flat_map(MapKernel::slots).collect();
        slots.sort_unstable();
        slots.dedup();
        let counts = slots.iter().map(|&slot| self.count(slot));
        counts.clone().any(|count| count > 1) && counts.sum::<usize>() > self.slots_for(maps)
    }

    /// The pieces of memory that a dispatch of these programs may see, besides what failed assertions are noted in.
    fn slots_for(&self, maps: &[MapKernel]) -> usize {
        self.target.rules.slots - usize::from(maps.iter().any(MapKernel::asserts))
    }

    /// A program that sees too many pieces of memory: in parts or, where that is not enough, in stages.
    pub(super) fn add_beyond_binding_limit(
        &mut self,
        k: usize,
        kernel: &Kernel,
        map: &MapKernel,
    ) -> Result<()> {
        let LoweringTarget { caps, rules, .. } = self.target;
        match self.parts(map) {
            Ok(parts) => parts.into_iter().try_for_each(|part| {
                let windows = loops::windows(&part, self);
                let lowered = codegen::lower(&[part], caps, rules.slots);
                self.add_lowered(k, kernel, lowered, &windows)
            }),
            Err(error) => {
                let most = self.slots_for(std::slice::from_ref(map)) - SCRATCH;
                let sequence = multipass::lower_multipass(map, self.slots(), most, self);
                let sequence = sequence.filter(|sequence| self.keeps_what_it_reads(sequence));
                self.add_detours(k, kernel, sequence.map(|sequence| vec![sequence]), error)
            }
        }
    }

    /// Parts of a program that see few enough pieces.
    fn parts(&self, map: &MapKernel) -> Result<Vec<MapKernel>> {
        let LoweringTarget { caps, rules, .. } = self.target;
        let seen = |map: &MapKernel| loops::number(&loops::windows(map, self));
        let scratch =
            |map: &MapKernel| codegen::lower(std::slice::from_ref(map), caps, rules.slots).scratch.len();
        let most = self.slots_for(std::slice::from_ref(map));
        let fit = |parts: &[MapKernel]| parts.iter().all(|part| seen(part) + scratch(part) <= most);
        for spare in 0..=SCRATCH {
            if let Some(parts) = loops::fitting(map, most - spare, self).filter(|parts| fit(parts)) {
                return Ok(parts);
            }
        }
        Err(self.too_many(seen(map), "a kernel"))
    }

    /// Whether a kernel sees tensors of several pieces.
    pub(super) fn is_large(&self, kernel: &Kernel) -> bool {
        kernel.reads().into_iter().chain(kernel.writes()).any(|slot| self.count(slot) > 1)
    }

    /// A kernel from a template that sees too many pieces of memory: in parts or, where that is not enough, with copies.
    pub(super) fn add_large(&mut self, k: usize, kernel: &Kernel, s: &NativeKernel) -> Result<()> {
        self.flush_deferred()?;
        match self.special_parts(s, kernel) {
            Ok(parts) => parts
                .into_iter()
                .try_for_each(|(lowered, windows)| self.add_lowered(k, kernel, lowered, &windows)),
            Err(error) => {
                let sequences = staging::sequences(s, self.slots(), self.target.rules);
                self.add_detours(k, kernel, sequences, error)
            }
        }
    }

    /// Parts of a kernel from a template that see few enough pieces, and which.
    fn special_parts(&self, s: &NativeKernel, kernel: &Kernel) -> Result<Vec<(MapLowered, VisibleChunks)>> {
        let LoweringTarget { caps, rules, .. } = self.target;
        let lower = |part: &SubKernel| (write_programs(s, kernel, part.lower(caps)), part.windows(self));
        let cost = |part: &SubKernel| {
            let (lowered, windows) = lower(part);
            self.seen(kernel, &lowered, &windows)
        };
        let whole = SubKernel::whole(s);
        let parts = whole.fitting(rules.slots, &cost);
        let parts = parts.map_err(|part| self.too_many(cost(&part), "even a small part"))?;
        Ok(parts.iter().map(lower).collect())
    }

    /// Other kernels in place of one, with memory of their own; the `error` that made them needed, if there are none that fit.
    fn add_detours(
        &mut self,
        k: usize,
        kernel: &Kernel,
        sequences: Option<Vec<KernelSequence>>,
        error: Error,
    ) -> Result<()> {
        /// Detours of what is itself on a detour: its memory may be large, too.
        const DEEPEST: usize = 3;
        let Some(sequences) = sequences.filter(|_| self.depth < DEEPEST) else { return Err(error) };
        let known = self.scratch_slots.len();
        self.depth += 1;
        for KernelSequence { works, slots } in sequences {
            let bytes = slots.iter().map(|&(dtype, numel)| (numel * self.size(dtype)) as u64);
            let places = self.place_scratch(&bytes.collect::<Vec<u64>>(), 0).places;
            let slices = places.iter().zip(&slots);
            self.scratch_slots.extend(slices.map(|(&(at, bytes), &(dtype, _))| ScratchSlot {
                at,
                bytes,
                dtype,
            }));
            for body in works {
                if self.add(k, &Kernel { body, ..kernel.clone() }).is_err() {
                    return Err(error);
                }
            }
            self.scratch_slots.truncate(known);
        }
        self.depth -= 1;
        Ok(())
    }

    /// Whether nothing is read after something else was written in its place.
    fn keeps_what_it_reads(&self, sequence: &KernelSequence) -> bool {
        let own = |slot: &Slot| *slot < self.slots();
        let mut written: Vec<BindingSource> = Vec::new();
        sequence.works.iter().all(|work| {
            let KernelBody::Map(maps) = work else { return false };
            let read = maps.iter().flat_map(|m| m.reads().map(|a| a.slot)).filter(own);
            let fresh =
                read.flat_map(|slot| self.slot_sources(slot)).all(|source| !written.contains(&source));
            let stored = maps.iter().flat_map(|m| m.stores.iter().map(|s| s.access.slot)).filter(own);
            written.extend(stored.flat_map(|slot| self.slot_sources(slot)));
            fresh
        })
    }

    /// A kernel sees too many pieces.
    pub(super) fn too_many(&self, number: usize, what: &str) -> Error {
        let LoweringTarget { who, rules, .. } = self.target;
        let message = format!(
            "{what} needs {number} pieces of memory at once, and {who} lets it see {}: make the tensors smaller than \
             {} bytes",
            rules.slots, rules.block
        );
        Error::new(ErrorKind::Memory, message)
    }
}
