//! Moving tensors between devices, gradients included.

use super::Tensor;
use super::custom_gradient::{CustomGradient, custom_op};
use super::record::require;
use crate::call::Call;
use crate::device::Device;
use crate::error::Result;
use crate::graph::is_grad_enabled;
use crate::graph::{Node, NodeSpec};
use crate::wait::wait_for;
use std::future::Future;
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
        wait_for(std::pin::pin!(self.to_device_async(device)))
    }

    /// [`to_device`](Self::to_device) as a future, as [`to_vec_async`](Self::to_vec_async) is: in a browser the only way to take
    /// values from a GPU.
    #[track_caller]
    pub fn to_device_async(&self, device: Device) -> impl Future<Output = Result<Tensor>> + use<> {
        let _call = Call::enter("to_device");
        let tensor = self.clone();
        let is_tracked = self.is_tracked() && is_grad_enabled();
        let moved =
            (self.device() != device).then(|| require(device, self.dtype()).map(|()| self.copied_to(device)));
        async move {
            let Some(moved) = moved else { return Ok(tensor) };
            let node = moved?.await?.node();
            if !is_tracked {
                return Ok(Tensor::variable_of(node));
            }
            let way_back: Arc<dyn CustomGradient> = Arc::new(Move { from: tensor.device() });
            let (op, shape, dtype) = (custom_op(way_back), node.shape, node.dtype);
            let sources = [node, tensor.node()].into_iter().collect();
            let moved = NodeSpec { op, sources, shape, dtype, device, tracked: true };
            Ok(Tensor::from_node(Node::record(moved)))
        }
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
