//! Functions with a backward pass of their own.

use crate::call::Call;
use crate::error::{Result, bail};
use crate::graph::no_grad;
use crate::tensor::Tensor;
use crate::tensor::custom_gradient::{CustomGradient, with_own_gradient};
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
