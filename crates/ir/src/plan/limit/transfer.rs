//! Kernels that move values to the host's memory and back: plain copies, of which one side lies there.

use super::super::graph::PlanGraph;
use super::super::kernel::{
    FusedOp, Kernel, KernelBody, LoopLevel, MapKernel, Operand, Purpose, Slot, Store,
};
use crate::shape::Shape;

/// A kernel that copies all of one slot to another one of its type.
pub(super) fn transfer(graph: &PlanGraph, from: Slot, to: Slot, wave: usize) -> Kernel {
    let node = &graph.nodes[to];
    let (count, dtype) = (node.shape.numel(), node.dtype);
    let line =
        |slot| Operand { slot, dtype, shape: Shape::of(&[count]), strides: vec![1], offset: 0 }.as_map();
    let mut map: MapKernel = line(from);
    debug_assert_eq!(map.code[0].rank, LoopLevel::Full);
    let access = line(to).reads().next().expect("it reads its slot").clone();
    map.stores.push(Store { value: 0, access });
    let (purpose, label) = match node.on_host {
        true => (Purpose::ToHost, "to the host"),
        false => (Purpose::FromHost, "back from the host"),
    };
    let bytes = (count * dtype.size()) as u64;
    let part = FusedOp { slot: to, op: "move", shape: node.shape, dtype, origin: node.origin, stored: true };
    Kernel {
        body: KernelBody::Map(vec![map]),
        wave,
        purpose,
        label: format!("{} {label}", node.origin.label()),
        parts: vec![part],
        flops: 0,
        bytes_read: bytes,
        bytes_written: bytes,
    }
}
