//! Gives every stored value its place: outputs get buffers of their own (or the memory of an input that nobody
//! needs any more), everything else shares one arena, reused as soon as its last reader has run.

use super::graph::PlanGraph;
use super::kernel::{Kernel, Slot, Work};
use crate::dtype::DType;

/// Where a slot's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Not in memory.
    Nowhere,
    /// The plan's input of that number: it is that, or has its memory when nobody needs that any more.
    Input(usize),
    /// The plan's output of that number.
    Output(usize),
    /// Bytes into the arena.
    Arena(usize),
}

#[derive(Clone)]
pub(crate) struct Layout {
    pub places: Vec<Place>,
    pub arena_bytes: usize,
    /// Nodes whose values the plan takes, in order.
    pub inputs: Vec<Slot>,
    pub outputs: Vec<Output>,
    /// The most bytes in use at once: inputs, outputs and the arena's live part.
    pub peak_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub slot: Slot,
    pub bytes: usize,
    /// The input whose memory it takes over.
    pub over: Option<usize>,
}

/// What a device asks of a plan's kernels and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryRules {
    /// Every piece of the arena starts at a multiple of this.
    pub alignment: usize,
    /// The arena comes in blocks of so many bytes: a piece lies inside of one, or starts with one.
    pub block: usize,
    /// How many slots a kernel can see.
    pub slots: usize,
    /// How long a row may be that one kernel folds and then walks along again, if there are not many rows: whoever
    /// folds a row must stay together.
    pub longest_row: usize,
    /// Under so many rows, whoever folds them shares each of them among many, and cannot write every element besides.
    pub few_rows: usize,
    /// Bytes of an element of each type.
    pub sizes: [usize; DType::ALL.len()],
}

impl MemoryRules {
    pub fn bytes(&self, graph: &PlanGraph, slot: Slot) -> usize {
        graph.nodes[slot].shape.numel() * self.sizes[graph.nodes[slot].dtype as usize]
    }
}

pub(crate) fn lay_out(graph: &PlanGraph, kernels: &[Kernel], rules: &MemoryRules) -> Layout {
    let bytes = |slot: Slot| rules.bytes(graph, slot);
    let count = graph.nodes.len();
    let mut places = vec![Place::Nowhere; count];
    let mut last_read = vec![0; count];
    let mut inputs = Vec::new();
    for (k, kernel) in kernels.iter().enumerate() {
        for slot in kernel.reads() {
            last_read[slot] = k;
            if graph.nodes[slot].input && places[slot] == Place::Nowhere {
                places[slot] = Place::Input(inputs.len());
                inputs.push(slot);
            }
        }
    }
    let mut outputs = Vec::new();
    let mut taken = vec![false; inputs.len()];
    let mut arena = Arena::new(rules);
    let mut dying: Vec<(usize, Slot)> = Vec::new();
    // Inputs that were given away and are read for the last time: their memory is as good as the arena's then.
    let given = |slot: &Slot| graph.nodes[*slot].donated;
    dying.extend(inputs.iter().copied().filter(given).map(|slot| (last_read[slot], slot)));
    let mut idle: Vec<usize> = Vec::new();
    for (k, kernel) in kernels.iter().enumerate() {
        dying.retain(|&(last, slot)| {
            match places[slot] {
                Place::Arena(at) if last < k => arena.free(at),
                Place::Input(input) if last < k && !taken[input] => idle.push(input),
                _ => {}
            }
            last >= k
        });
        let inner = hidden_product(kernel, graph, &bytes);
        let new = |places: &[Place], slot: Slot| places[slot] == Place::Nowhere && Some(slot) != inner;
        // First whoever is made of an input: an update then takes the memory of the value it replaces, step after step,
        // though the kernel may have other results before it, such as a gradient.
        let mut over_of: Vec<(Slot, usize)> = Vec::new();
        for made_of_it in [true, false] {
            for slot in kernel.writes().into_iter().filter(|&s| graph.nodes[s].keep && new(&places, s)) {
                if over_of.iter().any(|o| o.0 == slot) {
                    continue;
                }
                if let Some(input) = donor(graph, kernel, slot, made_of_it, &places, &last_read, k, &taken) {
                    taken[input] = true;
                    over_of.push((slot, input));
                }
            }
        }
        for slot in kernel.writes() {
            if !new(&places, slot) {
                continue;
            }
            if graph.nodes[slot].keep {
                places[slot] = Place::Output(outputs.len());
                let over = over_of.iter().find(|o| o.0 == slot).map(|o| o.1);
                outputs.push(Output { slot, bytes: bytes(slot), over });
            } else {
                let room = idle.iter().position(|&input| bytes(inputs[input]) == bytes(slot));
                places[slot] = match room {
                    Some(room) => Place::Input(idle.swap_remove(room)),
                    None => Place::Arena(arena.take(bytes(slot))),
                };
                dying.push((last_read[slot].max(k), slot));
            }
        }
        if let Some(product) = inner {
            // The epilogue overwrites the product element by element.
            let result = kernel.maps().next().expect("an epilogue").stores[0].access.slot;
            places[product] = places[result];
        }
    }
    let taken: usize = inputs.iter().map(|&s| bytes(s)).sum();
    let more: usize = outputs.iter().filter(|o| o.over.is_none()).map(|o| o.bytes).sum();
    let peak_bytes = taken + more + arena.peak;
    Layout { places, arena_bytes: arena.peak, inputs, outputs, peak_bytes }
}

/// A product whose memory can be that of its epilogue's first result: nobody else reads it, and the elements
/// are as large.
fn hidden_product(kernel: &Kernel, graph: &PlanGraph, bytes: &dyn Fn(Slot) -> usize) -> Option<Slot> {
    let Work::Special(s) = &kernel.work else { return None };
    let epilogue = s.epilogue.as_ref()?;
    let product = s.output.slot;
    let result = epilogue.stores.first()?.access.slot;
    let alike = bytes(product) == bytes(result) && !graph.nodes[product].dtype.is_half();
    (alike && !kernel.parts.iter().any(|p| p.stored && p.slot == product)).then_some(product)
}

/// An input that `slot` may overwrite: given away, read here for the last time, and only where it is written. If asked
/// for, one that it is made of.
#[allow(clippy::too_many_arguments, reason = "they are the state of the loop around it")]
fn donor(
    graph: &PlanGraph,
    kernel: &Kernel,
    slot: Slot,
    made_of_it: bool,
    places: &[Place],
    last_read: &[usize],
    now: usize,
    taken: &[bool],
) -> Option<usize> {
    let Work::Map(maps) = &kernel.work else { return None };
    let map = maps.iter().find(|m| m.stores.iter().any(|s| s.access.slot == slot))?;
    let store = map.stores.iter().find(|s| s.access.slot == slot)?;
    let written = &store.access.position;
    let sources = map.slots_behind(store.value);
    if map.outer != map.extents.len() {
        return None;
    }
    let fits = |candidate: &Slot| {
        let node = &graph.nodes[*candidate];
        let elsewhere =
            maps.iter().filter(|m| !std::ptr::eq(*m, map)).any(|m| m.reads().any(|a| a.slot == *candidate));
        node.donated
            && (!made_of_it || sources.contains(candidate))
            && node.dtype == graph.nodes[slot].dtype
            && node.shape.numel() == graph.nodes[slot].shape.numel()
            && last_read[*candidate] == now
            && !elsewhere
            && map.reads().filter(|a| a.slot == *candidate).all(|a| a.position == *written)
    };
    map.reads().map(|a| a.slot).filter(fits).find_map(|s| match places[s] {
        Place::Input(k) if !taken[k] => Some(k),
        _ => None,
    })
}

/// Pieces of one stretch of memory, first fit.
struct Arena {
    /// (start, end) of what is in use, in order.
    used: Vec<(usize, usize)>,
    peak: usize,
    alignment: usize,
    block: usize,
}

impl Arena {
    fn new(rules: &MemoryRules) -> Arena {
        Arena { used: Vec::new(), peak: 0, alignment: rules.alignment, block: rules.block }
    }

    /// The first place from `at` on where a piece may start.
    fn start(&self, at: usize, bytes: usize) -> usize {
        let left = self.block - at % self.block;
        if bytes <= left || left == self.block { at } else { at + left }
    }

    fn take(&mut self, bytes: usize) -> usize {
        let bytes = bytes.max(1).next_multiple_of(self.alignment);
        let mut at = 0;
        let mut place = self.used.len();
        for (k, &(start, end)) in self.used.iter().enumerate() {
            at = self.start(at, bytes);
            if at + bytes <= start {
                place = k;
                break;
            }
            at = end;
        }
        at = self.start(at, bytes);
        self.used.insert(place, (at, at + bytes));
        self.peak = self.peak.max(at + bytes);
        at
    }

    fn free(&mut self, at: usize) {
        self.used.retain(|&(start, _)| start != at);
    }
}

#[cfg(test)]
mod tests {
    use super::Arena;

    fn arena(block: usize) -> Arena {
        Arena { used: Vec::new(), peak: 0, alignment: 64, block }
    }

    #[test]
    fn freed_pieces_are_taken_again() {
        let mut arena = arena(usize::MAX);
        let a = arena.take(100);
        let b = arena.take(10);
        assert_eq!((a, b), (0, 128));
        arena.free(a);
        assert_eq!(arena.take(64), 0);
        assert_eq!(arena.take(64), 64);
        assert_eq!(arena.take(1), 192);
        assert_eq!(arena.peak, 256);
    }

    #[test]
    fn no_piece_lies_across_blocks_unless_it_is_larger_than_one() {
        let mut arena = arena(1024);
        assert_eq!(arena.take(640), 0);
        assert_eq!(arena.take(640), 1024, "384 bytes are left of the first block");
        assert_eq!(arena.take(384), 640);
        assert_eq!(arena.take(3000), 2048);
        assert_eq!(arena.take(1024), 5120, "64 bytes are left of the fifth block");
    }
}
