//! Values that know their own gradient. To the graph it is an opaque handle.

use super::Tensor;
use crate::error::Result;
use crate::graph::{Node, NodeSpec, Sources, is_grad_enabled};
use crate::op::{CustomOp, Op};
use std::any::Any;
use std::sync::Arc;

/// What knows its own gradient.
pub(crate) trait CustomGradient: Send + Sync {
    /// Gradients of the inputs (sources 1…), given those of the output.
    fn gradients(&self, inputs: &[Tensor], output: &Tensor, gradient: &Tensor)
    -> Result<Vec<Option<Tensor>>>;
}

/// It as a node holds it.
pub(crate) struct Custom(Arc<dyn CustomGradient>);

impl CustomOp for Custom {}

impl Custom {
    /// What stands in the node of a custom op.
    pub fn of(op: &dyn CustomOp) -> &dyn CustomGradient {
        let op: &dyn Any = op;
        let Custom(gradient) = op.downcast_ref().expect("only `custom_op` makes custom ops");
        &**gradient
    }
}

/// An op with the value of its first source and that gradient.
pub(crate) fn custom_op(gradient: Arc<dyn CustomGradient>) -> Op {
    Op::Custom(Arc::new(Custom(gradient)))
}

/// `value` with a gradient of its own towards `inputs`.
pub(crate) fn with_own_gradient(
    value: &Tensor,
    inputs: &[Tensor],
    gradient: Arc<dyn CustomGradient>,
) -> Tensor {
    let value = value.detach().node();
    let tracked = is_grad_enabled() && value.dtype.is_float() && inputs.iter().any(Tensor::is_tracked);
    if !tracked {
        return Tensor::from_node(value);
    }
    let (shape, dtype, device) = (value.shape, value.dtype, value.device);
    let sources: Sources = std::iter::once(value).chain(inputs.iter().map(Tensor::node)).collect();
    Tensor::from_node(Node::record(NodeSpec {
        op: custom_op(gradient),
        sources,
        shape,
        dtype,
        device,
        tracked,
    }))
}
