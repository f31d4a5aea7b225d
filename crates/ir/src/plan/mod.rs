//! From a recorded graph to a few kernels and one memory layout.
//!
//! | step | files |
//! |---|---|
//! | the graph that is asked for | `graph`; `cancel_split_concat` removes splits that are joined again |
//! | which values get memory | `materialize`; `saved_for_backward` marks those that a backward pass will read |
//! | which kernels compute them | `fuse`, by their `dependencies` and `programs`; `lower_loops` writes a kernel's loops through the `view`s of movement ops, `collapse_loops` merges loops |
//! | what is fused across kernels | `fuse_column_reductions` and `prologue` |
//! | order and memory | `schedule`, with `coschedule_gemms` for small products; `memory`, with an `arena` for values that nobody reads later, and results that are written `in_place` |
//! | less memory, where there is a limit | `limit` lets go of values and computes them again, or moves them to the host and back |
//! | the result | `kernel`, which an `executor` runs; `report` describes it, `guard` checks results, `assertion` checks integers |

mod arena;
pub mod assertion;
mod bindings;
mod cancel_split_concat;
mod collapse_loops;
mod coschedule_gemms;
mod dependencies;
pub mod executor;
pub mod fuse;
pub mod fuse_column_reductions;
pub mod graph;
pub mod guard;
mod in_place;
pub mod kernel;
pub mod limit;
pub mod lower_loops;
mod materialize;
pub mod memory;
mod programs;
mod prologue;
pub mod report;
mod saved_for_backward;
mod schedule;
pub mod size_class;
pub mod view;

use crate::dtype::DType;
use crate::op::Op;
use assertion::Sites;
use fuse::{Body, Fusion};
use graph::PlanGraph;
use kernel::{FusedOp, Kernel, KernelBody, LoopLevel, MapKernel, Purpose, Step};
use limit::MemoryFit;
use memory::{DeviceLimits, MemoryLayout, Packing, SlotMemory};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A compiled graph: kernels in order, and where their slots are.
#[derive(Clone)]
pub struct Plan {
    pub kernels: Vec<Kernel>,
    pub layout: MemoryLayout,
    /// Nodes whose constants and keys are arguments, in order.
    pub arguments: Vec<usize>,
    /// Bytes and type of each slot, by node.
    pub slot_bytes: Vec<usize>,
    pub slot_dtypes: Vec<DType>,
    /// What its kernels assert.
    pub sites: Arc<Sites>,
    /// What was done so that it takes no more memory than there is, if somebody said how much that is.
    pub fit: Option<MemoryFit>,
}

impl Plan {
    /// Whether each kernel writes into the memory of an input. Before the first one that does, a run can be stopped and begun anew.
    pub fn overwrites(&self) -> impl Iterator<Item = bool> {
        let in_input = |slot: usize| match self.layout.places[slot] {
            SlotMemory::Input(_) => true,
            SlotMemory::Output(k) => self.layout.outputs[k].over.is_some(),
            SlotMemory::Nowhere | SlotMemory::Arena(_) => false,
        };
        self.kernels.iter().map(move |kernel| kernel.writes().into_iter().any(in_input))
    }
}

/// Compiles `graph`; `age` orders kernels that do not depend on each other. If there is no more than `room` for outputs and
/// intermediate values, the plan takes no more, as far as that can be.
pub fn compile(
    mut graph: PlanGraph,
    fuse: bool,
    rules: &DeviceLimits,
    room: Option<usize>,
    age: impl Fn(usize) -> u64,
) -> Plan {
    if fuse {
        cancel_split_concat::run(&mut graph);
        graph.resolve_all();
    }
    let stored = materialize::choose(&graph, fuse, rules.slots);
    saved_for_backward::keep(&mut graph, &stored.flags);
    let fusion = Fusion::run(&graph, stored, fuse, rules);
    // Op by op, as under guards, of which the first to find a fault should be that of the first op.
    let order = fusion.order(!fuse, age);
    let mut arguments = Arguments::default();
    let mut kernels = Vec::new();
    for (wave, g) in order.into_iter().enumerate().flat_map(|(w, wave)| wave.into_iter().map(move |g| (w, g)))
    {
        let group = &fusion.groups[g];
        let mut work = match &group.body {
            Body::Map { maps, .. } => KernelBody::Map(maps.clone()),
            Body::Rows { maps, .. } => KernelBody::Rows(maps.clone()),
            Body::Native(s) => KernelBody::Native(s.clone()),
            Body::Merged => continue,
        };
        work.maps_mut().for_each(|m| arguments.number(m));
        kernels.push(Kernel { wave, ..describe(&graph, work, &group.members, &group.outputs) });
    }
    let sites = Sites::number(kernels.iter_mut().flat_map(|k: &mut Kernel| k.body.maps_mut()), &graph);
    let mut layout = memory::plan_memory(&graph, &kernels, rules, Packing::Apart);
    let fit = room.map(|room| limit::fit(&mut graph, &mut kernels, &mut layout, rules, room));
    let slot_bytes = (0..graph.nodes.len()).map(|n| rules.bytes(&graph, n)).collect();
    let slot_dtypes = graph.nodes.iter().map(|n| n.dtype).collect();
    Plan { kernels, layout, arguments: arguments.all, slot_bytes, slot_dtypes, sites: Arc::new(sites), fit }
}

/// Nodes whose constants and keys are arguments, and the numbers they have.
#[derive(Default)]
struct Arguments {
    all: Vec<usize>,
    numbers: HashMap<usize, usize>,
}

impl Arguments {
    /// Puts numbers in the place of nodes.
    fn number(&mut self, map: &mut MapKernel) {
        for i in &mut map.code {
            if let Step::Argument(n) | Step::Random { argument: n, .. } = &mut i.step {
                let node = *n;
                *n = *self.numbers.entry(node).or_insert_with(|| {
                    self.all.push(node);
                    self.all.len() - 1
                });
            }
        }
    }
}

/// Adds what reports and guards say of a kernel.
fn describe(graph: &PlanGraph, body: KernelBody, members: &[usize], outputs: &[usize]) -> Kernel {
    let written: HashSet<usize> = outputs.iter().copied().collect();
    let part = |n: usize| {
        let node = &graph.nodes[n];
        let stored = written.contains(&n);
        FusedOp {
            slot: n,
            op: node.op.name(),
            shape: node.shape,
            dtype: node.dtype,
            origin: node.origin,
            stored,
        }
    };
    let computed = computed_inside(graph, members);
    let parts: Vec<FusedOp> = computed.into_iter().map(part).collect();
    let (purpose, label) = (Purpose::First, String::new());
    let mut kernel =
        Kernel { body, wave: 0, purpose, label, parts, flops: 0, bytes_read: 0, bytes_written: 0 };
    let bytes = |slots: Vec<usize>| -> u64 {
        slots.iter().map(|&s| (graph.nodes[s].shape.numel() * graph.nodes[s].dtype.size()) as u64).sum()
    };
    let own: HashSet<usize> = members.iter().copied().collect();
    kernel.bytes_read = bytes(kernel.reads().into_iter().filter(|s| !own.contains(s)).collect());
    kernel.bytes_written = bytes(outputs.to_vec());
    kernel.flops = kernel.maps().map(map_flops).sum();
    if let KernelBody::Native(s) = &kernel.body {
        kernel.flops += s.flops();
    }
    kernel.label = self::label(&kernel);
    kernel
}

/// The stored nodes of a kernel and what is computed only on the way to them.
fn computed_inside(graph: &PlanGraph, members: &[usize]) -> Vec<usize> {
    let mut seen: Vec<usize> = members.to_vec();
    let mut queue: Vec<usize> = members.to_vec();
    while let Some(n) = queue.pop() {
        if graph.nodes[n].op.needs_own_kernel() {
            continue;
        }
        for &s in &graph.nodes[n].sources {
            let base = graph.base(s);
            let inside = graph.computes(base) && !graph.nodes[base].op.needs_own_kernel();
            let folds = matches!(graph.nodes[base].op, Op::Reduce { .. } | Op::ArgReduce { .. });
            if inside && !folds && !graph.nodes[base].keep && seen.len() < 64 && !seen.contains(&base) {
                seen.push(base);
                queue.push(base);
            }
        }
    }
    seen.sort_unstable();
    seen
}

fn map_flops(map: &MapKernel) -> u64 {
    let (all, rows) = (map.iterations() as u64, map.rows() as u64);
    let count = |i: &kernel::Instruction| match (&i.step, i.rank) {
        (Step::Reduce(..) | Step::ArgReduce { .. }, _) => all,
        (Step::GlobalReduce(..), _) => rows,
        (Step::Unary(..) | Step::Binary(..) | Step::Where(..) | Step::Random { .. }, LoopLevel::Full) => all,
        (Step::Unary(..) | Step::Binary(..) | Step::Where(..) | Step::Random { .. }, LoopLevel::Row) => rows,
        _ => 0,
    };
    map.code.iter().map(count).sum()
}

/// The user's own words for it: the ops that were called, in order, without repetition.
fn label(kernel: &Kernel) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut known = None;
    for part in &kernel.parts {
        // Many tensors of one kernel come from one call.
        if known == Some(part.origin) || names.len() > 6 {
            continue;
        }
        known = Some(part.origin);
        let name = part.origin.label();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() > 6 {
        names.truncate(6);
        names.push("…".into());
    }
    names.join(" + ")
}
