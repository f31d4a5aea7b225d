//! Functions with a backward pass of their own.

use super::no_grad;
use crate::call::Call;
use crate::error::{Result, bail};
use crate::graph::{Node, NodeSpec, Sources};
use crate::op::{CustomOp, Op};
use crate::tensor::Tensor;
use std::any::Any;
use std::sync::Arc;

/// A differentiable function whose gradient the user writes.
///
/// ```
/// use volta::{Function, Tensor, apply};
///
/// /// Rounds, and passes the gradient through as if it did not.
/// struct StraightThrough;
///
/// impl Function for StraightThrough {
///     fn forward(&self, inputs: &[Tensor]) -> Tensor {
///         inputs[0].round()
///     }
///     fn backward(&self, _inputs: &[Tensor], _output: &Tensor, gradient: &Tensor) -> Vec<Option<Tensor>> {
///         vec![Some(gradient.clone())]
///     }
/// }
///
/// let x = Tensor::vector(&[0.4, 1.6]).requires_grad(true);
/// apply(StraightThrough, &[&x]).sum().backward();
/// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [1.0, 1.0]);
/// ```
pub trait Function: Send + Sync + 'static {
    /// The value. What it computes is not differentiated.
    fn forward(&self, inputs: &[Tensor]) -> Tensor;

    /// The gradient of each input, given the output's; `None` stops it there.
    fn backward(&self, inputs: &[Tensor], output: &Tensor, gradient: &Tensor) -> Vec<Option<Tensor>>;
}

/// What knows its own gradient.
pub(crate) trait CustomGradient: Send + Sync {
    /// Gradients of the inputs (sources 1…), given those of the output.
    fn gradients(&self, inputs: &[Tensor], output: &Tensor, gradient: &Tensor)
    -> Result<Vec<Option<Tensor>>>;
}

/// It as a node holds it.
pub(super) struct Custom(Arc<dyn CustomGradient>);

impl CustomOp for Custom {}

impl Custom {
    /// What stands in a node that autograd made.
    pub fn of(op: &dyn CustomOp) -> &dyn CustomGradient {
        let op: &dyn Any = op;
        let Custom(gradient) = op.downcast_ref().expect("only autograd makes custom ops");
        &**gradient
    }
}

/// An op with the value of its first source and that gradient.
pub(crate) fn custom_op(gradient: Arc<dyn CustomGradient>) -> Op {
    Op::Custom(Arc::new(Custom(gradient)))
}

struct Users<F>(F);

impl<F: Function> CustomGradient for Users<F> {
    fn gradients(
        &self,
        inputs: &[Tensor],
        output: &Tensor,
        gradient: &Tensor,
    ) -> Result<Vec<Option<Tensor>>> {
        let gradients = self.0.backward(inputs, output, gradient);
        if gradients.len() != inputs.len() {
            bail!(
                Autograd,
                "the function's backward gave {} gradients for {} inputs",
                gradients.len(),
                inputs.len()
            );
        }
        for (k, (g, x)) in gradients.iter().zip(inputs).enumerate() {
            if let Some(g) = g
                && (g.shape(), g.dtype()) != (x.shape(), x.dtype())
            {
                bail!(
                    Autograd,
                    "the function's backward gave {} {} for input {k}, which is {} {}",
                    g.dtype(),
                    g.shape(),
                    x.dtype(),
                    x.shape()
                );
            }
        }
        Ok(gradients)
    }
}

/// Calls a [`Function`].
#[track_caller]
pub fn apply(function: impl Function, inputs: &[&Tensor]) -> Tensor {
    try_apply(function, inputs).unwrap_or_else(|e| e.raise())
}

/// [`apply`] that returns its error.
#[track_caller]
pub fn try_apply(function: impl Function, inputs: &[&Tensor]) -> Result<Tensor> {
    let _call = Call::enter("apply");
    let inputs: Vec<Tensor> = inputs.iter().map(|t| (*t).clone()).collect();
    let detached: Vec<Tensor> = inputs.iter().map(Tensor::detach).collect();
    let value = no_grad(|| function.forward(&detached));
    Ok(with_own_gradient(&value, &inputs, Arc::new(Users(function))))
}

/// `value` with a gradient of its own towards `inputs`.
pub(crate) fn with_own_gradient(
    value: &Tensor,
    inputs: &[Tensor],
    gradient: Arc<dyn CustomGradient>,
) -> Tensor {
    let value = value.detach().node();
    let tracked = super::is_enabled() && value.dtype.is_float() && inputs.iter().any(Tensor::is_tracked);
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
