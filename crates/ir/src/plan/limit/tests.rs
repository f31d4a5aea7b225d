//! Plans of long chains, whose values a way back reads: what a limit makes of them computes the same, and takes no more than it may.

use super::super::graph::{PlanGraph, PlanNode};
use super::super::kernel::{Kernel, KernelBody, Purpose, Slot};
use super::super::memory::{DeviceLimits, Rates, SlotMemory};
use super::super::size_class::SizeClasses;
use super::super::{Plan, compile};
use crate::call;
use crate::dtype::DType;
use crate::op::{NativeOp, Op, UnaryOp};
use crate::shape::Shape;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

const RULES: DeviceLimits = DeviceLimits {
    alignment: 64,
    block: usize::MAX,
    regions: 1,
    slots: usize::MAX,
    max_fused_row: usize::MAX,
    min_rows_unsplit: 0,
    columns: false,
    prologues: false,
    horizontal_fusion: false,
    sizes: [4; DType::ALL.len()],
    size_classes: SizeClasses { smallest: 64, largest_step: 1 << 20 },
    rates: Rates { flops_per_byte: 16, kernel_bytes: 1 << 10, host_byte: 0 },
};

const SIDE: usize = 16;

fn node(op: Op, sources: &[usize], keep: bool) -> PlanNode {
    PlanNode {
        input: matches!(op, Op::Data),
        op,
        sources: sources.iter().copied().collect(),
        shape: Shape::of(&[SIDE, SIDE]),
        dtype: DType::F32,
        origin: call::current(),
        donated: false,
        keep,
        taped: false,
        on_host: false,
    }
}

/// So many layers of a product and an activation, and a way back that reads the results of all.
fn chain(layers: usize) -> PlanGraph {
    let product = || Op::Native(NativeOp::Matmul);
    let mut nodes = vec![node(Op::Data, &[], false), node(Op::Data, &[], false)];
    let (weight, mut at, mut saved) = (1, 0, Vec::new());
    for _ in 0..layers {
        nodes.push(node(product(), &[at, weight], false));
        nodes.push(node(Op::Unary(UnaryOp::Tanh), &[nodes.len() - 1], false));
        at = nodes.len() - 1;
        saved.push(at);
    }
    for (k, &value) in saved.iter().enumerate().rev() {
        nodes.push(node(product(), &[at, value], k == 0));
        at = nodes.len() - 1;
    }
    PlanGraph::new(nodes)
}

fn planned(layers: usize, room: Option<usize>) -> Plan {
    compile(chain(layers), true, &RULES, room, |n| n as u64)
}

/// A device beside which the host has memory, from which a byte comes as fast as so many of its own.
fn beside_host(host_byte: usize) -> DeviceLimits {
    DeviceLimits { block: 1 << 30, rates: Rates { host_byte, ..RULES.rates }, ..RULES }
}

/// What stands for the value of every output, made of what each kernel does and of what it reads. No kernel reads what was not written.
fn values(plan: &Plan) -> Vec<u64> {
    let mut known: HashMap<Slot, u64> = plan.layout.inputs.iter().map(|&slot| (slot, slot as u64)).collect();
    for kernel in &plan.kernels {
        let writes = kernel.writes();
        if kernel.is_transfer() {
            known.insert(writes[0], known[&kernel.reads()[0]]);
            continue;
        }
        let mut hasher = DefaultHasher::new();
        // In no order: that of slots is another one where copies are read.
        let reads = kernel.reads().into_iter().filter(|slot| !writes.contains(slot));
        let mut read: Vec<u64> =
            reads.map(|slot| *known.get(&slot).expect("it was written before")).collect();
        read.sort_unstable();
        read.hash(&mut hasher);
        operands(kernel, &known).hash(&mut hasher);
        for (place, slot) in writes.into_iter().enumerate() {
            known.insert(slot, hasher.finish().wrapping_add(place as u64));
        }
    }
    plan.layout.outputs.iter().map(|output| known[&output.slot]).collect()
}

/// That whatever a kernel reads in the arena is still there, whole: nobody has written over it since.
fn assert_intact(plan: &Plan, rules: &DeviceLimits) {
    let mut held: Vec<(usize, usize, Slot)> = Vec::new();
    let place = |slot: Slot| match plan.layout.places[slot] {
        SlotMemory::Arena(at) => Some((at, at + plan.slot_bytes[slot], slot)),
        _ => None,
    };
    for kernel in &plan.kernels {
        let writes = kernel.writes();
        for slot in kernel.reads().into_iter().filter(|slot| !writes.contains(slot)) {
            assert!(place(slot).is_none_or(|place| held.contains(&place)), "{slot} for {}", kernel.label);
        }
        // A product is written before what its epilogue makes of it, perhaps in its place.
        for (start, end, slot) in writes.into_iter().rev().filter_map(place) {
            assert!(end <= plan.layout.arena.len().max(plan.layout.host.len()).saturating_mul(rules.block));
            held.retain(|&(from, to, _)| to <= start || end <= from);
            held.push((start, end, slot));
        }
    }
}

/// What a product reads, in its order.
fn operands(kernel: &Kernel, known: &HashMap<Slot, u64>) -> Vec<Option<u64>> {
    match &kernel.body {
        KernelBody::Native(s) => s.operands.iter().map(|o| known.get(&o.slot).copied()).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_plan_that_fits_is_what_it_was() {
    let (free, fitted) = (planned(20, None), planned(20, Some(1 << 30)));
    let fit = fitted.fit.expect("there was a limit");
    assert!(fit.fits() && !fit.is_changed() && fit.slowdown == 1.0);
    assert_eq!(free.kernels.len(), fitted.kernels.len());
    assert_eq!(free.layout.places, fitted.layout.places);
}

#[test]
fn less_memory_takes_more_kernels_and_computes_the_same() {
    let free = planned(64, None);
    let (bytes, wanted) = (free.layout.new_bytes(&RULES), values(&free));
    let mut kernels = free.kernels.len();
    for part in [2, 3, 4] {
        let plan = planned(64, Some(bytes / part));
        let fit = plan.fit.expect("there was a limit");
        assert!(fit.fits() && plan.layout.new_bytes(&RULES) <= bytes / part, "1/{part}: {fit:?}");
        assert_eq!((fit.unlimited_bytes, fit.needed_bytes), (bytes, plan.layout.new_bytes(&RULES)));
        assert_eq!(values(&plan), wanted, "1/{part}");
        assert_intact(&plan, &RULES);
        assert!(plan.kernels.len() > kernels && fit.slowdown > 1.0, "1/{part}: {}", plan.kernels.len());
        assert!(plan.kernels.len() <= 4 * free.kernels.len(), "1/{part}");
        assert_eq!(plan.kernels.len(), free.kernels.len() + fit.recomputed_kernels);
        assert_eq!(plan.slot_bytes.len(), plan.layout.places.len());
        kernels = plan.kernels.len();
    }
}

#[test]
fn half_the_memory_of_a_long_chain_takes_no_more_than_half_as_many_kernels_again() {
    let free = planned(1500, None);
    let plan = planned(1500, Some(free.layout.new_bytes(&RULES) / 2));
    let fit = plan.fit.expect("there was a limit");
    assert!(
        fit.fits() && fit.recomputed_kernels <= free.kernels.len() / 2,
        "{fit:?} of {}",
        free.kernels.len()
    );
    assert_eq!(values(&plan), values(&free));
}

#[test]
fn what_cannot_fit_takes_as_little_as_it_can() {
    let free = planned(64, None);
    // A product and its operands take three matrices.
    let plan = planned(64, Some(2 * SIDE * SIDE * 4));
    let fit = plan.fit.expect("there was a limit");
    assert!(!fit.fits() && fit.needed_bytes < free.layout.new_bytes(&RULES) / 3, "{fit:?}");
    assert_eq!(values(&plan), values(&free));
}

#[test]
fn what_moves_to_the_host_comes_back_and_takes_no_memory_meanwhile() {
    let free = planned(64, None);
    let (bytes, wanted) = (free.layout.new_bytes(&RULES), values(&free));
    for part in [2, 3, 4, 8] {
        let rules = beside_host(1);
        let plan = compile(chain(64), true, &rules, Some(bytes / part), |n| n as u64);
        let fit = plan.fit.expect("there was a limit");
        assert!(fit.fits() && fit.moves > 0 && fit.slowdown > 1.0, "1/{part}: {fit:?}");
        let moves: Vec<&Kernel> = plan.kernels.iter().filter(|kernel| kernel.is_transfer()).collect();
        assert_eq!(
            (fit.moves, fit.moved_bytes),
            (moves.len(), moves.iter().map(|kernel| kernel.bytes_written).sum())
        );
        assert_eq!(values(&plan), wanted, "1/{part}");
        assert_intact(&plan, &rules);
        let period = rules.region_period();
        for kernel in moves {
            let on_host = |slot: Slot| match plan.layout.places[slot] {
                SlotMemory::Arena(at) => at / rules.block % period == rules.host_region(),
                other => panic!("{other:?}"),
            };
            let to_host = kernel.purpose == Purpose::ToHost;
            assert_eq!((on_host(kernel.reads()[0]), on_host(kernel.writes()[0])), (!to_host, to_host));
        }
        assert!(fit.host_bytes > 0 && fit.host_bytes == plan.layout.host_bytes());
        assert!(plan.layout.new_bytes(&rules) <= bytes / part);
    }
}

#[test]
fn nothing_moves_where_it_is_cheaper_to_compute_it_again() {
    let bytes = planned(64, None).layout.new_bytes(&RULES);
    let fit = |host_byte| {
        let plan = compile(chain(64), true, &beside_host(host_byte), Some(bytes / 2), |n| n as u64);
        plan.fit.expect("there was a limit")
    };
    let (near, far) = (fit(1), fit(1 << 20));
    assert!(near.moves > 0 && far.moves == 0 && far.recomputed_kernels > 0, "{near:?} {far:?}");
    assert!(near.fits() && far.fits() && near.slowdown <= far.slowdown);
}
