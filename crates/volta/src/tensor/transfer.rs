//! Moving tensors between devices, gradients included.

use super::Tensor;
use super::record::require;
use crate::autograd;
use crate::autograd::{CustomGradient, custom_op};
use crate::call::Call;
use crate::device::Device;
use crate::error::Result;
use crate::graph::{Node, NodeSpec};
use std::sync::Arc;

impl Tensor {
    /// The same value on another device; a tensor that is there already is returned as it is. Gradients flow back.
    #[track_caller]
    pub fn to_device(&self, device: Device) -> Tensor {
        self.try_to_device(device).unwrap_or_else(|e| e.raise())
    }

    /// [`to_device`](Self::to_device) that returns its error.
    #[track_caller]
    pub fn try_to_device(&self, device: Device) -> Result<Tensor> {
        let _call = Call::enter("to_device");
        if self.device() == device {
            return Ok(self.clone());
        }
        require(device, self.dtype())?;
        let moved = self.copied_to(device)?;
        if !(self.is_tracked() && autograd::is_enabled()) {
            return Ok(Tensor::variable_of(moved.node()));
        }
        let node = moved.node();
        let way_back: Arc<dyn CustomGradient> = Arc::new(Move { from: self.device() });
        let (op, shape, dtype) = (custom_op(way_back), node.shape, node.dtype);
        let sources = [node, self.node()].into_iter().collect();
        Ok(Tensor::from_node(Node::record(NodeSpec { op, sources, shape, dtype, device, tracked: true })))
    }
}

/// The gradient of a move goes back to where the tensor came from.
struct Move {
    from: Device,
}

impl CustomGradient for Move {
    fn gradients(&self, _: &[Tensor], _: &Tensor, gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(gradient.try_to_device(self.from)?)])
    }
}
