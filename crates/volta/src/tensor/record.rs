//! Making nodes: the checks that hold for every op, and the pair of methods each op has.

use super::Tensor;
use crate::call::Call;
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::engine::{Reason, submit};
use crate::error::{Result, bail};
use crate::graph::is_grad_enabled;
use crate::graph::{IntegerRange, Node, NodeSpec, Sources, register};
use crate::op::Op;
use crate::shape::Shape;
use std::sync::Arc;

/// Runs the body of the public op `name`, and gives its user the result.
#[track_caller]
pub(crate) fn run_op<T: FinishOp>(name: &'static str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let call = Call::enter(name);
    volta_ir::environment::check()?;
    let result = body();
    if call.is_outermost() { result.finish() } else { result }
}

/// What an op gives its user: its tensors are values of their own, pending from now on.
pub(crate) trait FinishOp: Sized {
    fn finish(self) -> Self;
}

impl FinishOp for Tensor {
    fn finish(self) -> Self {
        let mut node = self.node();
        // An op with nothing to do must hand out neither the variable it was called on nor a leaf, nor a tape where there is
        // to be none.
        if node.leaf.is_some() || (node.tracked && !is_grad_enabled()) {
            node = continued(node);
        }
        if !matches!(node.op, Op::Const(_)) && !node.is_realized() {
            register(&node);
        }
        Tensor::from_node(node)
    }
}

impl<T: FinishOp> FinishOp for Result<T> {
    fn finish(self) -> Self {
        self.map(T::finish)
    }
}

impl<T: FinishOp> FinishOp for Vec<T> {
    fn finish(self) -> Self {
        self.into_iter().map(T::finish).collect()
    }
}

impl<A: FinishOp, B: FinishOp> FinishOp for (A, B) {
    fn finish(self) -> Self {
        (self.0.finish(), self.1.finish())
    }
}

impl<A: FinishOp, B: FinishOp, C: FinishOp> FinishOp for (A, B, C) {
    fn finish(self) -> Self {
        (self.0.finish(), self.1.finish(), self.2.finish())
    }
}

impl FinishOp for () {
    fn finish(self) -> Self {}
}

impl FinishOp for bool {
    fn finish(self) -> Self {
        self
    }
}

/// Records `op` over `sources`, which must share a device.
pub(crate) fn record(op: Op, sources: &[&Tensor], shape: Shape, dtype: DType) -> Result<Tensor> {
    let nodes: Sources = sources.iter().map(|t| t.node()).collect();
    let device = nodes[0].device;
    if let Some(other) = nodes.iter().find(|n| n.device != device) {
        bail!(Device, "operands are on {device} and on {}: move one with to_device", other.device);
    }
    require(device, dtype)?;
    if let Some(range) = IntegerRange::of_wide(&op, &nodes, shape, dtype)
        && !range.fits(dtype)
    {
        bail!(
            DType,
            "{device} has no i64: the numbers that stand for it there may reach from {} to {}, which 32 bits do not \
             hold. Compute this on the CPU, or with floats",
            range.least,
            range.most
        );
    }
    let tracked = dtype.is_float() && is_grad_enabled() && nodes.iter().any(|n| n.tracked);
    if tracked && !crate::op::derivative::exists(&op) {
        bail!(
            Autograd,
            "{} has no gradient, and an operand requires one: detach it, or compute this under no_grad",
            op.name()
        );
    }
    if tracked && op.is_product() {
        submit(Reason::Product { operand: &nodes[0], results: shape.numel() })?;
    }
    submit(Reason::Op(&nodes))?;
    Ok(Tensor::from_node(Node::record(NodeSpec { op, sources: nodes, shape, dtype, device, tracked })))
}

/// An error if `device` does not compute in `dtype`.
pub(crate) fn require(device: Device, dtype: DType) -> Result<()> {
    let rare = matches!(dtype, DType::F64 | DType::I64);
    if device != Device::Cpu
        && rare
        && let Some(why) = crate::engine::executor(device)?.unsupported_reason(dtype)
    {
        bail!(DType, "{why}");
    }
    Ok(())
}

/// A value that needs no source.
pub(crate) fn source(op: Op, shape: Shape, dtype: DType, device: Device) -> Tensor {
    let recipe = NodeSpec { op, sources: Sources::new(), shape, dtype, device, tracked: false };
    Tensor::from_node(Node::record(recipe))
}

/// `node`'s value under another name that gradients pass through.
fn continued(node: Arc<Node>) -> Arc<Node> {
    let tracked = is_grad_enabled() && node.tracked;
    let (shape, dtype, device) = (node.shape, node.dtype, node.device);
    let sources = [node].into_iter().collect();
    Node::record(NodeSpec { op: Op::Reshape, sources, shape, dtype, device, tracked })
}

/// `node`'s value under another name that autograd does not see through.
pub(crate) fn renamed(node: &Arc<Node>) -> Tensor {
    if let Some(storage) = node.storage() {
        let new = Node::realized(node.shape, node.dtype, node.device, storage);
        if let Some(&range) = node.wide_range.get() {
            let _ = new.wide_range.set(range);
        }
        return Tensor::from_node(new);
    }
    Tensor::from_node(Node::record(NodeSpec {
        op: Op::Alias,
        sources: [node.clone()].into_iter().collect(),
        shape: node.shape,
        dtype: node.dtype,
        device: node.device,
        tracked: false,
    }))
}

impl Tensor {
    /// The same value as the beginning of a computation that is differentiated by itself, while another backward pass
    /// runs: gradients with respect to it leave out what it has in common with other beginnings. What is recorded still
    /// depends on the tensor itself if that pass is recorded, too.
    pub(crate) fn fresh_leaf(&self) -> Result<Tensor> {
        if is_grad_enabled() && self.is_tracked() {
            return Ok(Tensor::from_node(continued(self.node())));
        }
        self.try_requires_grad(true)
    }

    /// The same numbers, where they are i32 only because the device has no i64: ops on them that could leave 32 bits are errors
    /// from now on, as far as can be told from how far these reach. For faces whose integers have 64 bits, as Python's have.
    #[track_caller]
    pub fn try_as_wide_integers(&self, least: i64, most: i64) -> Result<Tensor> {
        let _call = Call::enter("as_wide_integers");
        if self.dtype() != DType::I32 {
            bail!(DType, "{} does not stand for i64: only i32 does", self.dtype());
        }
        let range = IntegerRange::new(least.into(), most.into());
        if !range.fits(DType::I32) {
            bail!(Argument, "numbers from {least} to {most} are no i32");
        }
        let node = continued(self.node());
        // What is known from how they were made may be less.
        let _ = node.wide_range.set(range);
        register(&node);
        Ok(Tensor::from_node(node))
    }

    /// Whether its numbers are i32 only because the device has no i64.
    pub fn holds_wide_integers(&self) -> bool {
        self.with_node(|n| n.wide_range.get().is_some())
    }

    /// The type of sums of integers: i64, or, on a device without it, what holds the most of them in 32 bits.
    pub(crate) fn sum_type(&self) -> DType {
        match self.dtype() {
            _ if require(self.device(), DType::I64).is_ok() => DType::I64,
            DType::U32 => DType::U32,
            _ => DType::I32,
        }
    }

    /// `value` everywhere, in this tensor's shape and type.
    pub(crate) fn constant_like(&self, value: impl Into<Scalar>) -> Tensor {
        self.with_node(|n| source(Op::Const(value.into()), n.shape, n.dtype, n.device))
    }

    pub(crate) fn constant(&self, value: impl Into<Scalar>, shape: Shape, dtype: DType) -> Tensor {
        source(Op::Const(value.into()), shape, dtype, self.device())
    }

    /// The index along an axis of `shape`, on this tensor's device.
    pub(crate) fn index_rule(&self, axis: usize, shape: Shape, dtype: DType) -> Tensor {
        source(Op::Iota { axis: axis as u8 }, shape, dtype, self.device())
    }
}
