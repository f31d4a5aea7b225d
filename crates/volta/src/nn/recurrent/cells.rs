//! Single steps, for loops of one's own.

use super::RecurrentWeights;
use super::step::Kind;
use crate::device::Device;
use crate::error::{ErrorKind, Result};
use crate::nn::call::{forward, layer, misuse, on_device, within};
use crate::nn::{Module, Visitor};
use crate::tensor::Tensor;

/// The next state from an input of (batch, inputs) or (inputs), and a state, if there is one.
fn next(
    name: &'static str,
    kind: Kind,
    weights: &RecurrentWeights,
    x: &Tensor,
    state: &[&Tensor],
) -> Result<Vec<Tensor>> {
    let (hidden, inputs) = (weights.weight_hh.size(1), weights.weight_ih.size(1));
    let mut whole = x.shape().to_vec();
    if !(1..=2).contains(&x.rank()) || whole.pop() != Some(inputs) {
        let message = format!("the input has shape {}, and (batch, {inputs}) is needed", x.shape());
        return Err(misuse(name, ErrorKind::Shape, message));
    }
    whole.push(hidden);
    if let Some(wrong) = state.iter().find(|s| s.shape()[..] != whole) {
        let message = format!("the state has shape {}, and {whole:?} is needed", wrong.shape());
        return Err(misuse(name, ErrorKind::Shape, message));
    }
    let state: Vec<Tensor> = if state.is_empty() {
        vec![x.constant(0.0, crate::Shape::new(&whole)?, x.dtype()); kind.states()]
    } else {
        state.iter().map(|s| (*s).clone()).collect()
    };
    kind.step(&x.try_linear(&weights.weight_ih, weights.bias_ih.as_ref())?, weights, &state)
}

/// Cells; the arguments are those of the networks.
macro_rules! cells {
    ($($(#[$meta:meta])* $name:ident, $kind:expr, $given:ty, $list:expr, $state:ty, $made:expr;)*) => {$(
        $(#[$meta])*
        pub struct $name {
            /// Shown as `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh`.
            pub weights: RecurrentWeights,
            kind: Kind,
        }

        impl $name {
            /// With first values within ±1/√hidden.
            #[track_caller]
            pub fn new(inputs: usize, hidden: usize, bias: bool) -> $name {
                $name { weights: RecurrentWeights::new(inputs, hidden, $kind.gates(), bias), kind: $kind }
            }

            /// [`new`](Self::new) on a device of choice.
            #[track_caller]
            pub fn new_on_device(inputs: usize, hidden: usize, bias: bool, device: Device) -> $name {
                on_device(device, || $name::new(inputs, hidden, bias))
            }

            /// With weights of one's own.
            pub fn from_weights(weights: RecurrentWeights) -> $name {
                $name { weights, kind: $kind }
            }

            /// The state after an input of (batch, inputs), or of (inputs) alone. Without a state to start from it is
            /// zero.
            #[track_caller]
            pub fn run(&self, x: &Tensor, state: Option<$given>) -> $state {
                self.try_run(x, state).unwrap_or_else(|e| e.raise())
            }

            /// [`run`](Self::run) that returns its error.
            #[track_caller]
            pub fn try_run(&self, x: &Tensor, state: Option<$given>) -> Result<$state> {
                let made: fn(Vec<Tensor>) -> $state = $made;
                within(self, || {
                    let state = state.map($list).unwrap_or_default();
                    next(stringify!($name), self.kind, &self.weights, x, &state).map(made)
                })
            }
        }

        impl Module for $name {
            forward!();

            /// The output for one input, from a state of zeros.
            #[track_caller]
            fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
                layer(self, || {
                    Ok(next(stringify!($name), self.kind, &self.weights, x, &[])?.remove(0))
                })
            }

            fn visit(&self, visitor: &mut Visitor<'_>) {
                self.weights.visit("", visitor);
            }

            fn describe(&self) -> String {
                format!("{} → {}", self.weights.weight_ih.size(1), self.weights.weight_hh.size(1))
            }
        }
    )*};
}

cells! {
    /// One step of an [`RNN`](super::RNN).
    RNNCell, Kind::Tanh, &Tensor, |h| vec![h], Tensor, |mut states| states.remove(0);

    /// One step of an [`LSTM`](super::LSTM); the state is a pair: the output and the cell.
    LSTMCell, Kind::Lstm, (&Tensor, &Tensor), |(h, c)| vec![h, c], (Tensor, Tensor), |mut states| {
        let cell = states.remove(1);
        (states.remove(0), cell)
    };

    /// One step of a [`GRU`](super::GRU).
    GRUCell, Kind::Gru, &Tensor, |h| vec![h], Tensor, |mut states| states.remove(0);
}

impl RNNCell {
    /// With max(·, 0) for the hyperbolic tangent.
    pub fn with_relu(self) -> RNNCell {
        RNNCell { kind: Kind::Relu, ..self }
    }
}
