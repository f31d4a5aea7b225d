//! What every layer and network is.

use super::call::record_output;
use super::state::LoadReport;
use super::visit::{Item, Visitor};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::state::StateDict;
use crate::tensor::Tensor;
use std::collections::HashSet;
use std::sync::Arc;

/// A network, or a part of one: tensors that are trained, and a way to compute with them.
///
/// A struct of layers becomes a module by deriving it; the derived `forward` is the struct's own:
///
/// ```
/// use volta::{Linear, Module, Tensor};
///
/// #[derive(Module)]
/// struct Net {
///     hidden: Linear,
///     output: Linear,
/// }
///
/// impl Net {
///     fn forward(&self, x: &Tensor) -> Tensor {
///         self.output.forward(&self.hidden.forward(x).relu())
///     }
/// }
///
/// let net = Net { hidden: Linear::new(4, 8, true), output: Linear::new(8, 2, true) };
/// let names: Vec<_> = net.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["hidden.weight", "hidden.bias", "output.weight", "output.bias"]);
/// assert_eq!(net.forward(&Tensor::zeros([3, 4])).shape()[..], [3, 2]);
/// ```
///
/// A module whose `forward` takes something else than one tensor is marked `#[module(no_forward)]`.
pub trait Module: Send + Sync {
    /// The output for an input. Misuse panics at the caller's line.
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor;

    /// [`forward`](Self::forward) that returns its error. Volta's layers do; a module that only has a `forward` of
    /// its own panics here too.
    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.forward(x))
    }

    /// Shows every tensor and module inside; without an implementation there are none.
    fn visit(&self, visitor: &mut Visitor<'_>) {
        let _ = visitor;
    }

    /// The name of the type, for summaries and profiles.
    fn kind(&self) -> &'static str {
        let name = std::any::type_name::<Self>();
        let name = name.split('<').next().unwrap_or(name);
        name.rsplit("::").next().unwrap_or(name)
    }

    /// The sizes that matter, for summaries: `784 → 128, bias`.
    fn describe(&self) -> String {
        String::new()
    }

    /// Where it stands in memory and how long it is, which tells it from others while it runs.
    #[doc(hidden)]
    fn place(&self) -> (usize, usize) {
        (std::ptr::from_ref(self).cast::<()>() as usize, size_of_val(self))
    }

    /// All parameters with their names (`blocks.0.norm.weight`); one that has two names comes once, under the first.
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        let mut found = HashSet::new();
        tensors(self, |item| match item {
            Item::Parameter(t) => found.insert(t.address()).then_some(t),
            _ => None,
        })
    }

    /// All parameters, as an optimizer takes them.
    fn parameters(&self) -> Vec<Tensor> {
        self.named_parameters().into_iter().map(|(_, t)| t).collect()
    }

    /// All tensors that are kept but not trained, with their names.
    fn named_buffers(&self) -> Vec<(String, Tensor)> {
        tensors(self, |item| match item {
            Item::Buffer(t) => Some(t),
            _ => None,
        })
    }

    /// All tensors that are kept but not trained.
    fn buffers(&self) -> Vec<Tensor> {
        self.named_buffers().into_iter().map(|(_, t)| t).collect()
    }

    /// Switches layers that behave differently while they train (dropout, batch norm) to training.
    fn train(&self) {
        set_mode(self, true);
    }

    /// Switches them to evaluation.
    fn eval(&self) {
        set_mode(self, false);
    }

    /// Moves every parameter and buffer, in place: optimizers that hold them go on with the moved ones.
    #[track_caller]
    fn to_device(&self, device: Device) {
        self.try_to_device(device).unwrap_or_else(|e| e.raise());
    }

    /// [`to_device`](Self::to_device) that returns its error; what was moved before it stays moved.
    #[track_caller]
    fn try_to_device(&self, device: Device) -> Result<()> {
        every_tensor(self).iter().try_for_each(|t| t.try_move(device, t.dtype()))
    }

    /// Converts every floating parameter and buffer, in place.
    #[track_caller]
    fn to_dtype(&self, dtype: DType) {
        self.try_to_dtype(dtype).unwrap_or_else(|e| e.raise());
    }

    /// [`to_dtype`](Self::to_dtype) that returns its error.
    #[track_caller]
    fn try_to_dtype(&self, dtype: DType) -> Result<()> {
        let tensors = every_tensor(self);
        tensors.iter().filter(|t| t.dtype().is_float()).try_for_each(|t| t.try_move(t.device(), dtype))
    }

    /// Makes every parameter collect gradients, or freezes them all.
    fn set_requires_grad(&self, yes: bool) {
        self.parameters().iter().for_each(|p| p.set_requires_grad(yes));
    }

    /// Forgets all gradients.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Tensor::zero_grad);
    }

    /// Every parameter and buffer under its name. The tensors are the module's own, not copies.
    fn state_dict(&self) -> StateDict {
        tensors(self, |item| match item {
            Item::Parameter(t) | Item::Buffer(t) => Some(t),
            _ => None,
        })
        .into_iter()
        .collect()
    }

    /// Takes over the values of `state`, moved to where the module's tensors are and converted to their type. If
    /// `strict`, names that are missing on either side are an error. Shapes that differ always are. After an error
    /// nothing has changed.
    #[track_caller]
    fn load_state_dict(&self, state: &StateDict, strict: bool) -> Result<LoadReport> {
        super::state::load(&self.state_dict(), state, strict)
    }
}

/// How many numbers a module trains.
pub fn num_parameters(module: &(impl Module + ?Sized)) -> usize {
    module.parameters().iter().map(Tensor::numel).sum()
}

/// Walks through `module` itself, whether its type is known or not.
pub(super) fn walk<M: Module + ?Sized>(module: &M, see: &mut dyn FnMut(&str, Item<'_>)) {
    module.visit(&mut Visitor::new(see));
}

/// The tensors that `choose` takes, with their names.
fn tensors<M: Module + ?Sized>(
    module: &M,
    mut choose: impl for<'a> FnMut(Item<'a>) -> Option<&'a Tensor>,
) -> Vec<(String, Tensor)> {
    let mut all = Vec::new();
    walk(module, &mut |name, item| all.extend(choose(item).map(|t| (name.to_string(), t.clone()))));
    all
}

/// Every tensor of a module once, whatever names it has.
fn every_tensor<M: Module + ?Sized>(module: &M) -> Vec<Tensor> {
    let mut found = HashSet::new();
    let all = module.state_dict();
    all.iter().filter(|(_, t)| found.insert(t.address())).map(|(_, t)| t.clone()).collect()
}

fn set_mode<M: Module + ?Sized>(module: &M, training: bool) {
    walk(module, &mut |_, item| {
        if let Item::Mode(mode) = item {
            mode.set_training(training);
        }
    });
}

/// A module behind a pointer is the module itself.
macro_rules! pointer {
    ($($pointer:ident),*) => {$(
        impl<M: Module + ?Sized> Module for $pointer<M> {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                let output = (**self).forward(x);
                record_output(self, &output);
                output
            }

            #[track_caller]
            fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
                let output = (**self).try_forward(x)?;
                record_output(self, &output);
                Ok(output)
            }

            fn visit(&self, visitor: &mut Visitor<'_>) {
                (**self).visit(visitor);
            }

            /// The pointer's own place stands for a module without fields, which has none.
            fn place(&self) -> (usize, usize) {
                match (**self).place() {
                    (_, 0) => (std::ptr::from_ref(self) as usize, size_of_val(self)),
                    place => place,
                }
            }

            fn kind(&self) -> &'static str {
                (**self).kind()
            }

            fn describe(&self) -> String {
                (**self).describe()
            }
        }
    )*};
}
pointer!(Box, Arc);
