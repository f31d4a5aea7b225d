//! Which results may take the memory of what their kernel reads: an input that nobody else asks for, or, where memory is short, a value in
//! the arena that nobody reads any more.

use super::graph::PlanGraph;
use super::kernel::{Kernel, MapKernel, Slot, Store};
use super::memory::SlotMemory;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Which of several programs write a slot, and how many read one.
pub(super) struct Uses<'m> {
    writers: HashMap<Slot, &'m MapKernel>,
    readers: HashMap<Slot, usize>,
}

impl<'m> Uses<'m> {
    pub fn of(maps: &'m [MapKernel]) -> Uses<'m> {
        let mut uses = Uses { writers: HashMap::new(), readers: HashMap::new() };
        for map in maps {
            for store in &map.stores {
                uses.writers.entry(store.access.slot).or_insert(map);
            }
            let mut slots: SmallVec<[Slot; 16]> = map.reads().map(|a| a.slot).collect();
            slots.sort_unstable();
            slots.dedup();
            slots.into_iter().for_each(|slot| *uses.readers.entry(slot).or_default() += 1);
        }
        uses
    }

    /// The program that writes a slot and its store there, if it computes each element by itself.
    fn written_elementwise(&self, slot: Slot) -> Option<(&'m MapKernel, &'m Store)> {
        let map = *self.writers.get(&slot)?;
        let store = map.stores.iter().find(|s| s.access.slot == slot)?;
        // Invocations without an element of their own compute the last one once more, perhaps when it is overwritten: nobody looks at
        // that, unless something is asserted of it.
        (map.outer == map.extents.len() && !map.asserts()).then_some((map, store))
    }

    /// Whether what `map` writes to `slot` may overwrite what it reads of `candidate`, as far as this kernel is concerned.
    fn may_replace(&self, graph: &PlanGraph, map: &MapKernel, slot: Slot, candidate: Slot) -> bool {
        let [new, old] = [slot, candidate].map(|slot| &graph.nodes[slot]);
        // What is only copied is read when it is stored, perhaps behind this one.
        let is_copied = || {
            map.stores.iter().any(|s| s.access.slot != slot && map.copied_slot(s.value) == Some(candidate))
        };
        let written = || map.stores.iter().find(|s| s.access.slot == slot).map(|s| &s.access.position);
        // This one reads it.
        self.readers.get(&candidate).is_none_or(|&programs| programs <= 1)
            && new.dtype == old.dtype
            && new.shape.numel() == old.shape.numel()
            && !is_copied()
            && map.reads().filter(|a| a.slot == candidate).all(|a| Some(&a.position) == written())
    }
}

/// An input that `slot` may overwrite: given away, read for the last time, here alone, and only where it is written. If asked
/// for, one that it is made of.
#[expect(clippy::too_many_arguments, reason = "what is known so far of the layout")]
pub(super) fn donor(
    graph: &PlanGraph,
    uses: &Uses,
    turn: usize,
    slot: Slot,
    made_of_it: bool,
    places: &[SlotMemory],
    last_read: &[(usize, usize)],
    taken: &[bool],
) -> Option<usize> {
    let (map, store) = uses.written_elementwise(slot)?;
    let sources = map.slots_behind(store.value);
    let fits = |candidate: &Slot| {
        graph.nodes[*candidate].donated
            && (!made_of_it || sources.contains(candidate))
            && uses.may_replace(graph, map, slot, *candidate)
            && last_read[*candidate] == (turn, 1)
    };
    map.reads().map(|a| a.slot).filter(fits).find_map(|s| match places[s] {
        SlotMemory::Input(k) if !taken[k] => Some(k),
        _ => None,
    })
}

/// For results of a kernel inside of the plan, the value in the arena whose place each takes, and the piece in which that lies: one that
/// is read for the last time, here alone, and only where the result is written.
pub(super) fn in_place(
    graph: &PlanGraph,
    maps: &[MapKernel],
    kernel: &Kernel,
    last_read: &[(usize, usize)],
    piece_of: &HashMap<Slot, usize>,
) -> HashMap<Slot, (Slot, usize)> {
    let uses = Uses::of(maps);
    let mut under_of: HashMap<Slot, (Slot, usize)> = HashMap::new();
    for slot in kernel.writes() {
        let Some((map, _)) = uses.written_elementwise(slot) else { continue };
        let is_inside =
            !graph.nodes[slot].keep && !graph.nodes[slot].on_host && !piece_of.contains_key(&slot);
        if !is_inside || under_of.contains_key(&slot) {
            continue;
        }
        let is_free = |candidate: &Slot| {
            last_read[*candidate] == (kernel.wave, 1)
                && !under_of.values().any(|(under, _)| under == candidate)
                && uses.may_replace(graph, map, slot, *candidate)
        };
        let found = map.reads().map(|a| a.slot).filter(is_free).find_map(|s| Some((s, *piece_of.get(&s)?)));
        found.map(|found| under_of.insert(slot, found));
    }
    under_of
}
