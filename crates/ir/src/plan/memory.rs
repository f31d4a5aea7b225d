//! Gives every stored value its place: outputs get buffers of their own (or the memory of an input that nobody
//! needs any more), everything else shares one arena. That has several regions: a product's result lies in another region than
//! what the product reads, so that a kernel may take for granted that nobody writes to that memory meanwhile.

use super::arena::{self, Allocation};
use super::graph::PlanGraph;
use super::in_place::{Uses, donor, in_place};
use super::kernel::{Kernel, KernelBody, Slot};
use super::size_class::SizeClasses;
use crate::dtype::DType;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

/// Where a slot's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotMemory {
    /// Not in memory.
    Nowhere,
    /// The plan's input of that number: it is that, or has its memory when nobody needs that any more.
    Input(usize),
    /// The plan's output of that number.
    Output(usize),
    /// An address in the arena.
    Arena(usize),
}

#[derive(Clone)]
pub struct MemoryLayout {
    pub places: Vec<SlotMemory>,
    /// Bytes of the arena's blocks.
    pub arena: Vec<usize>,
    /// Bytes of those of its blocks that lie in the host's memory, by the same numbers.
    pub host: Vec<usize>,
    /// Nodes whose values the plan takes, in order.
    pub inputs: Vec<Slot>,
    pub outputs: Vec<Output>,
    /// The most bytes in use at once: inputs, outputs and the arena's live part.
    pub peak_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Output {
    pub slot: Slot,
    pub bytes: usize,
    /// The input whose memory it takes over.
    pub over: Option<usize>,
}

/// What a device asks of a plan's kernels and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Every piece of the arena starts at a multiple of this.
    pub alignment: usize,
    /// The arena comes in blocks of so many bytes: a piece lies inside of one, or starts with one.
    pub block: usize,
    /// Regions that the blocks are shared out to.
    pub regions: usize,
    /// How many slots a kernel can see.
    pub slots: usize,
    /// How long a row may be that one kernel folds and then walks along again, if there are not many rows: whoever
    /// folds a row must stay together.
    pub max_fused_row: usize,
    /// Under so many rows, whoever folds them shares each of them among many, and cannot write every element besides.
    pub min_rows_unsplit: usize,
    /// Whether a kernel that walks over rows may also reduce columns.
    pub columns: bool,
    /// Whether products compute an operand as they read it, if that is quickly done.
    pub prologues: bool,
    /// Whether kernels that leave room for others run side by side.
    pub horizontal_fusion: bool,
    /// Bytes of an element of each type.
    pub sizes: [usize; DType::ALL.len()],
    /// How the pool of its memory rounds sizes.
    pub size_classes: SizeClasses,
    /// How long things take, one beside the other.
    pub rates: Rates,
}

/// How long things take on a device, roughly, in bytes that it reads or writes meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Arithmetic operations for a byte.
    pub flops_per_byte: usize,
    /// Bytes for the start of a kernel.
    pub kernel_bytes: usize,
    /// Bytes for one that moves to the host's memory or back; 0 where values do not move.
    pub host_byte: usize,
}

impl Rates {
    /// What a kernel takes.
    pub fn cost(self, kernel: &Kernel) -> f64 {
        if kernel.is_transfer() {
            return self.transfer(kernel.bytes_written as usize);
        }
        let moved = kernel.bytes_read + kernel.bytes_written;
        moved as f64 + kernel.flops as f64 / self.flops_per_byte as f64 + self.kernel_bytes as f64
    }
}

impl Rates {
    /// What it takes to move so many bytes to the host's memory, or back.
    pub fn transfer(self, bytes: usize) -> f64 {
        bytes as f64 * self.host_byte as f64 + self.kernel_bytes as f64
    }
}

impl DeviceLimits {
    /// Whether values may move to the host's memory.
    pub fn has_host(&self) -> bool {
        self.rates.host_byte > 0
    }

    pub fn bytes(&self, graph: &PlanGraph, slot: Slot) -> usize {
        graph.nodes[slot].shape.numel() * self.sizes[graph.nodes[slot].dtype as usize]
    }

    /// Whether a slot lies in one piece of memory.
    pub fn is_one_piece(&self, graph: &PlanGraph, slot: Slot) -> bool {
        self.bytes(graph, slot) <= self.block
    }

    /// The bytes that the pool gives to whoever asks for so many.
    pub fn allocated(&self, bytes: usize) -> usize {
        let rest = bytes % self.block;
        let last = if rest > 0 || bytes == 0 { self.size_classes.round(rest).min(self.block) } else { 0 };
        bytes - rest + last
    }

    /// From a block to the next one of its region: the blocks of regions alternate, those of plans first, then one for what
    /// kernels set aside, and one in the host's memory where values move there.
    pub fn region_period(&self) -> usize {
        self.regions + 1 + usize::from(self.has_host())
    }

    /// The region of what lies in the host's memory.
    pub fn host_region(&self) -> usize {
        self.regions + 1
    }

    /// Where byte `at` of a region is in the arena.
    pub fn address(&self, region: usize, at: usize) -> usize {
        (at / self.block * self.region_period() + region) * self.block + at % self.block
    }

    /// Notes the blocks of a region of which `bytes` are needed.
    pub fn count_blocks(&self, region: usize, bytes: usize, blocks: &mut Vec<usize>) {
        for round in 0..bytes.div_ceil(self.block) {
            let number = round * self.region_period() + region;
            blocks.resize(blocks.len().max(number + 1), 0);
            blocks[number] = (bytes - round * self.block).min(self.block);
        }
    }
}

impl MemoryLayout {
    pub fn arena_bytes(&self) -> usize {
        self.arena.iter().sum()
    }

    /// Bytes of the host's memory.
    pub fn host_bytes(&self) -> usize {
        self.host.iter().sum()
    }

    /// Bytes that the pool gives for outputs.
    pub fn output_bytes(&self, rules: &DeviceLimits) -> usize {
        let new = self.outputs.iter().filter(|output| output.over.is_none());
        new.map(|output| rules.allocated(output.bytes)).sum()
    }

    /// Bytes that a run takes besides its inputs.
    pub fn new_bytes(&self, rules: &DeviceLimits) -> usize {
        let arena = self.arena.iter().filter(|bytes| **bytes > 0);
        self.output_bytes(rules) + arena.map(|&bytes| rules.allocated(bytes)).sum::<usize>()
    }
}

/// How closely values inside of a plan share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// The result of a product lies in another region than what the product reads, and no result on what its kernel reads.
    Apart,
    /// All share one region, and what a kernel makes element by element of a value that nobody reads any more takes the place of that.
    Close,
}

pub fn plan_memory(
    graph: &PlanGraph,
    kernels: &[Kernel],
    rules: &DeviceLimits,
    packing: Packing,
) -> MemoryLayout {
    let bytes = |slot: Slot| rules.bytes(graph, slot);
    let is_one_piece = |kernel: &Kernel| {
        kernel.reads().into_iter().chain(kernel.writes()).all(|slot| rules.is_one_piece(graph, slot))
    };
    let count = graph.nodes.len();
    let mut places = vec![SlotMemory::Nowhere; count];
    // The wave in which a slot is read for the last time, and how many read it then.
    let mut last_read = vec![(0, 0); count];
    let mut inputs = Vec::new();
    for kernel in kernels {
        for slot in kernel.reads() {
            let (last, readers) = &mut last_read[slot];
            *readers = if *last == kernel.wave { *readers + 1 } else { 1 };
            *last = kernel.wave;
            if graph.nodes[slot].input && places[slot] == SlotMemory::Nowhere {
                places[slot] = SlotMemory::Input(inputs.len());
                inputs.push(slot);
            }
        }
    }
    let mut outputs = Vec::new();
    let mut taken = vec![false; inputs.len()];
    let (mut pieces, mut host_pieces): (Vec<Allocation>, Vec<Allocation>) = (Vec::new(), Vec::new());
    // The piece that each slot in the arena lies in, where one may take the place of another.
    let mut piece_of: HashMap<Slot, usize> = HashMap::new();
    // The regions of those that are in the arena.
    let mut regions: Vec<Option<usize>> = vec![None; count];
    // Slots that have the memory of another one.
    let mut shared: Vec<(Slot, Slot)> = Vec::new();
    let mut dying = Dying::default();
    // Inputs that were given away and are read for the last time: their memory is as good as the arena's then.
    let given = |slot: &Slot| graph.nodes[*slot].donated;
    inputs.iter().filter(|&slot| given(slot)).for_each(|&slot| dying.add(last_read[slot].0, slot));
    let mut idle = Idle::default();
    for kernel in kernels {
        let now = kernel.wave;
        for slot in dying.before(now) {
            if let SlotMemory::Input(input) = places[slot]
                && !taken[input]
            {
                idle.push(input, bytes(inputs[input]));
            }
        }
        let inner = hidden_product(kernel, graph, &bytes);
        let new =
            |places: &[SlotMemory], slot: Slot| places[slot] == SlotMemory::Nowhere && Some(slot) != inner;
        // First whoever is made of an input: an update then takes the memory of the value it replaces, step after step,
        // though the kernel may have other results before it, such as a gradient.
        let mut over_of: HashMap<Slot, usize> = HashMap::new();
        let kept: Vec<Slot> =
            kernel.writes().into_iter().filter(|&s| graph.nodes[s].keep && new(&places, s)).collect();
        if let KernelBody::Map(maps) = &kernel.body
            && !kept.is_empty()
        {
            let uses = Uses::of(maps);
            for made_of_it in [true, false] {
                for &slot in &kept {
                    if over_of.contains_key(&slot) {
                        continue;
                    }
                    let wave = kernel.wave;
                    if let Some(input) =
                        donor(graph, &uses, wave, slot, made_of_it, &places, &last_read, &taken)
                    {
                        taken[input] = true;
                        over_of.insert(slot, input);
                    }
                }
            }
        }
        let under_of = match &kernel.body {
            // What comes in pieces may be read in several passes, after some of the results were written.
            KernelBody::Map(maps) if packing == Packing::Close && is_one_piece(kernel) => {
                in_place(graph, maps, kernel, &last_read, &piece_of)
            }
            _ => HashMap::new(),
        };
        for slot in kernel.writes() {
            if !new(&places, slot) {
                continue;
            }
            let last = last_read[slot].0.max(now);
            if graph.nodes[slot].on_host {
                places[slot] = SlotMemory::Arena(0);
                host_pieces.push(Allocation { slot, bytes: bytes(slot), from: now, to: last, region: 0 });
            } else if graph.nodes[slot].keep {
                places[slot] = SlotMemory::Output(outputs.len());
                let over = over_of.get(&slot).copied();
                outputs.push(Output { slot, bytes: bytes(slot), over });
            } else {
                // The memory of an input serves what is not much smaller, too.
                if let Some(&(under, piece)) = under_of.get(&slot) {
                    places[slot] = SlotMemory::Arena(0);
                    regions[slot] = regions[under];
                    pieces[piece].to = last;
                    piece_of.insert(slot, piece);
                    shared.push((slot, under));
                } else if let Some(input) = idle.take(bytes(slot)..=2 * bytes(slot)) {
                    places[slot] = SlotMemory::Input(input);
                    dying.add(last, slot);
                } else {
                    // Where in the arena is known when all pieces are.
                    places[slot] = SlotMemory::Arena(0);
                    let region = match packing {
                        Packing::Apart => region_of(kernel, rules, &regions),
                        Packing::Close => 0,
                    };
                    regions[slot] = Some(region);
                    piece_of.insert(slot, pieces.len());
                    pieces.push(Allocation { slot, bytes: bytes(slot), from: now, to: last, region });
                }
            }
        }
        if let Some(product) = inner {
            // The epilogue overwrites the product element by element.
            let result = kernel.maps().next().expect("an epilogue").stores[0].access.slot;
            shared.push((product, result));
        }
    }
    let mut tell = |slot: Slot, at: usize| places[slot] = SlotMemory::Arena(at);
    let arena = arena::place(pieces, rules, &mut tell);
    let host = arena::place_in(rules.host_region(), host_pieces, rules, &mut tell);
    for (slot, with) in shared {
        places[slot] = places[with];
    }
    let taken: usize = inputs.iter().map(|&s| bytes(s)).sum();
    let more: usize = outputs.iter().filter(|o| o.over.is_none()).map(|o| o.bytes).sum();
    let peak_bytes = taken + more + arena.iter().sum::<usize>();
    MemoryLayout { places, arena, host, inputs, outputs, peak_bytes }
}

/// Slots in the memory of inputs that nobody else asks for, by the wave in which they are read for the last time.
#[derive(Default)]
struct Dying {
    /// In each wave, with their numbers in the order in which they were added.
    turns: BTreeMap<usize, Vec<(usize, Slot)>>,
    count: usize,
}

impl Dying {
    fn add(&mut self, last: usize, slot: Slot) {
        self.turns.entry(last).or_default().push((self.count, slot));
        self.count += 1;
    }

    /// Takes those that nobody reads from a wave on, in the order in which they were added.
    fn before(&mut self, turn: usize) -> impl Iterator<Item = Slot> + use<> {
        let rest = self.turns.split_off(&turn);
        let mut gone: Vec<(usize, Slot)> =
            std::mem::replace(&mut self.turns, rest).into_values().flatten().collect();
        gone.sort_unstable();
        gone.into_iter().map(|(_, slot)| slot)
    }
}

/// Inputs whose memory is free.
#[derive(Default)]
struct Idle {
    /// With their bytes.
    all: Vec<(usize, usize)>,
    /// Bytes, and places in the list.
    by_bytes: BTreeSet<(usize, usize)>,
}

impl Idle {
    fn push(&mut self, input: usize, bytes: usize) {
        self.by_bytes.insert((bytes, self.all.len()));
        self.all.push((bytes, input));
    }

    /// Takes the smallest one of such a size.
    fn take(&mut self, bytes: RangeInclusive<usize>) -> Option<usize> {
        let (least, most) = bytes.into_inner();
        let &(bytes, place) = self.by_bytes.range((least, 0)..=(most, usize::MAX)).next()?;
        self.by_bytes.remove(&(bytes, place));
        let last = self.all.len() - 1;
        if place < last {
            let moved = self.all[last].0;
            self.by_bytes.remove(&(moved, last));
            self.by_bytes.insert((moved, place));
        }
        Some(self.all.swap_remove(place).1)
    }
}

/// Where a kernel's results belong: those of a product and its like on the first region that it does not read from.
fn region_of(kernel: &Kernel, rules: &DeviceLimits, regions: &[Option<usize>]) -> usize {
    if !matches!(kernel.body, KernelBody::Native(_)) {
        return 0;
    }
    let read: Vec<usize> = kernel.reads().into_iter().filter_map(|slot| regions[slot]).collect();
    (0..rules.regions).find(|region| !read.contains(region)).unwrap_or(0)
}

/// A product whose memory can be that of its epilogue's first result: nobody else reads it, and the elements
/// are as large; and no other result is a copy of it.
pub(super) fn hidden_product(
    kernel: &Kernel,
    graph: &PlanGraph,
    bytes: &dyn Fn(Slot) -> usize,
) -> Option<Slot> {
    let KernelBody::Native(s) = &kernel.body else { return None };
    let epilogue = s.epilogue.as_ref()?;
    let product = s.output.slot;
    let result = epilogue.stores.first()?.access.slot;
    let alike = graph.nodes[product].dtype == graph.nodes[result].dtype && bytes(product) == bytes(result);
    let copied = epilogue.stores[1..].iter().any(|s| epilogue.copied_slot(s.value) == Some(product));
    (alike && !copied && !kernel.parts.iter().any(|p| p.stored && p.slot == product)).then_some(product)
}
