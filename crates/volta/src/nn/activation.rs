//! Activations as layers: each calls the tensor's method of the same name.

use super::Module;
use super::call::{forward, layer};
use crate::error::Result;
use crate::tensor::Tensor;

/// Layers whose forward pass is one method of the tensor. The part in braces is what the layer holds, a number and its
/// usual value.
macro_rules! activations {
    ($($(#[$meta:meta])* $name:ident $({ $argument:ty = $default:literal })? => $method:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name $((
            /// The number that the formula names.
            pub $argument
        ))?;

        $(
            impl Default for $name {
                fn default() -> Self {
                    $name($default)
                }
            }
        )?

        impl Module for $name {
            forward!();

            #[track_caller]
            fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
                activations!(@call self, x, $method $(, $argument)?)
            }
        }
    )*};
    (@call $self:ident, $x:ident, $method:ident) => {
        layer($self, || $x.$method())
    };
    (@call $self:ident, $x:ident, $method:ident, $argument:ty) => {
        layer($self, || $x.$method($self.0))
    };
}

activations! {
    /// max(x, 0).
    ReLU => try_relu;
    /// x·Φ(x), with the exact Φ.
    GELU => try_gelu;
    /// [`GELU`] by the hyperbolic tangent, as GPT-2 has it.
    GELUTanh => try_gelu_tanh;
    /// x·σ(x), also called swish.
    SiLU => try_silu;
    /// x·tanh(ln(1 + eˣ)).
    Mish => try_mish;
    /// 1 / (1 + e⁻ˣ).
    Sigmoid => try_sigmoid;
    /// The hyperbolic tangent.
    Tanh => try_tanh;
    /// x where it is positive, and `slope`·x elsewhere.
    LeakyReLU { f64 = 0.01 } => try_leaky_relu;
    /// x where it is positive, and α·(eˣ − 1) elsewhere.
    ELU { f64 = 1.0 } => try_elu;
    /// eˣ over an axis, scaled to a sum of one.
    Softmax { isize = -1 } => try_softmax;
    /// The logarithm of [`Softmax`].
    LogSoftmax { isize = -1 } => try_log_softmax;
}
