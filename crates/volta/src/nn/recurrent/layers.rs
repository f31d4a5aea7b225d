//! Networks over whole sequences.

use super::sequence::Stack;
use super::step::Kind;
use super::{RecurrentOptions, RecurrentWeights};
use crate::device::Device;
use crate::error::{ErrorKind, Result};
use crate::nn::call::{forward, layer, misuse, on_device, within};
use crate::nn::{Mode, Module, Visitor};
use crate::tensor::Tensor;

/// The weights of all layers and directions.
#[track_caller]
fn weights(
    name: &'static str,
    kind: Kind,
    inputs: usize,
    hidden: usize,
    options: &RecurrentOptions,
) -> Result<Vec<RecurrentWeights>> {
    if options.layers == 0 || hidden == 0 {
        let message =
            format!("{} layers of {hidden} hidden elements: both must be at least 1", options.layers);
        return Err(misuse(name, ErrorKind::Argument, message));
    }
    let directions = options.directions();
    let mut all = Vec::new();
    for layer in 0..options.layers {
        let inputs = if layer == 0 { inputs } else { hidden * directions };
        for _ in 0..directions {
            all.push(RecurrentWeights::new(inputs, hidden, kind.gates(), options.bias));
        }
    }
    Ok(all)
}

/// Networks that differ in their step. `$given` is the state as users give it and `$list` makes a list of it, `$state` the
/// state as they get it and `$made` makes it of a list.
macro_rules! networks {
    ($($(#[$meta:meta])* $name:ident, $kind:expr, $given:ty, $list:expr, $state:ty, $made:expr;)*) => {$(
        $(#[$meta])*
        pub struct $name {
            /// Layer by layer; with two directions, the one from the beginning to the end comes first.
            pub weights: Vec<RecurrentWeights>,
            /// How many elements the state has.
            pub hidden: usize,
            /// What it was made with.
            pub options: RecurrentOptions,
            /// Whether it trains.
            pub mode: Mode,
            kind: Kind,
        }

        impl $name {
            /// One layer, with first values within ±1/√hidden.
            #[track_caller]
            pub fn new(inputs: usize, hidden: usize) -> $name {
                $name::with_options(inputs, hidden, RecurrentOptions::default())
            }

            /// [`new`](Self::new) on a device of choice.
            #[track_caller]
            pub fn new_on_device(inputs: usize, hidden: usize, device: Device) -> $name {
                on_device(device, || $name::new(inputs, hidden))
            }

            /// With options.
            #[track_caller]
            pub fn with_options(inputs: usize, hidden: usize, options: RecurrentOptions) -> $name {
                $name::try_with_options(inputs, hidden, options).unwrap_or_else(|e| e.raise())
            }

            /// [`with_options`](Self::with_options) that returns its error.
            #[track_caller]
            pub fn try_with_options(inputs: usize, hidden: usize, options: RecurrentOptions) -> Result<$name> {
                let weights = weights(stringify!($name), $kind, inputs, hidden, &options)?;
                Ok($name { weights, hidden, options, mode: Mode::default(), kind: $kind })
            }

            /// With weights of one's own, layer by layer, the direction from the beginning to the end first.
            #[track_caller]
            pub fn try_from_weights(weights: Vec<RecurrentWeights>, options: RecurrentOptions) -> Result<$name> {
                let needed = options.layers * options.directions();
                if weights.len() != needed || weights.is_empty() {
                    let message = format!("{} layers of weights, and {needed} are needed", weights.len());
                    return Err(misuse(stringify!($name), ErrorKind::Argument, message));
                }
                let hidden = weights[0].weight_hh.size(-1);
                Ok($name { weights, hidden, options, mode: Mode::default(), kind: $kind })
            }

            /// The output of every step, (length, batch, hidden · directions), and the last state, (layers · directions,
            /// batch, hidden). Without a state to start from it is zero.
            #[track_caller]
            pub fn run(&self, x: &Tensor, state: Option<$given>) -> (Tensor, $state) {
                self.try_run(x, state).unwrap_or_else(|e| e.raise())
            }

            /// [`run`](Self::run) that returns its error.
            #[track_caller]
            pub fn try_run(&self, x: &Tensor, state: Option<$given>) -> Result<(Tensor, $state)> {
                let made: fn(Vec<Tensor>) -> $state = $made;
                let stack = Stack {
                    name: stringify!($name),
                    kind: self.kind,
                    weights: &self.weights,
                    options: &self.options,
                    hidden: self.hidden,
                    training: self.mode.is_training(),
                };
                within(self, || {
                    let (y, last) = stack.run(x, &state.map($list).unwrap_or_default())?;
                    Ok((y, made(last)))
                })
            }
        }

        impl Module for $name {
            forward!();

            /// The output of every step, from a state of zeros.
            #[track_caller]
            fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
                layer(self, || Ok(self.try_run(x, None)?.0))
            }

            fn visit(&self, visitor: &mut Visitor<'_>) {
                let directions = self.options.directions();
                for (k, weights) in self.weights.iter().enumerate() {
                    let reverse = if k % directions == 1 { "_reverse" } else { "" };
                    weights.visit(&format!("_l{}{reverse}", k / directions), visitor);
                }
                visitor.field("mode", &self.mode);
            }

            fn describe(&self) -> String {
                let layers = if self.options.layers > 1 {
                    format!(", {} layers", self.options.layers)
                } else {
                    String::new()
                };
                let both = if self.options.bidirectional { ", both directions" } else { "" };
                format!("{} → {}{layers}{both}", self.weights[0].weight_ih.size(1), self.hidden)
            }
        }
    )*};
}

networks! {
    /// h' = tanh(W·x + b + U·h + c), step by step along (length, batch, inputs).
    RNN, Kind::Tanh, &Tensor, |h| vec![h], Tensor, |mut states| states.remove(0);

    /// Long short-term memory (Hochreiter and Schmidhuber, 1997) along (length, batch, inputs). The state is a pair: the
    /// last output and the cell.
    ///
    /// ```
    /// use volta::{LSTM, Module, RecurrentOptions, Tensor};
    /// let options = RecurrentOptions { layers: 2, batch_first: true, ..RecurrentOptions::default() };
    /// let lstm = LSTM::with_options(8, 16, options);
    /// let (y, (h, c)) = lstm.run(&Tensor::randn([4, 10, 8]), None);
    /// assert_eq!((&y.shape()[..], &h.shape()[..]), (&[4, 10, 16][..], &[2, 4, 16][..]));
    /// let (y, _) = lstm.run(&Tensor::randn([4, 1, 8]), Some((&h, &c)));
    /// assert_eq!(y.shape()[..], [4, 1, 16]);
    /// ```
    LSTM, Kind::Lstm, (&Tensor, &Tensor), |(h, c)| vec![h, c], (Tensor, Tensor), |mut states| {
        let cell = states.remove(1);
        (states.remove(0), cell)
    };

    /// Gated recurrent units (Cho et al., 2014) along (length, batch, inputs).
    GRU, Kind::Gru, &Tensor, |h| vec![h], Tensor, |mut states| states.remove(0);
}

impl RNN {
    /// With max(·, 0) for the hyperbolic tangent.
    pub fn with_relu(self) -> RNN {
        RNN { kind: Kind::Relu, ..self }
    }
}
