//! Recurrent networks: `step` holds the formulas of one step, `sequence` runs them along a sequence, `layers` and `cells`
//! are what users hold.

mod cells;
mod layers;
mod sequence;
mod step;

pub use cells::{GRUCell, LSTMCell, RNNCell};
pub use layers::{GRU, LSTM, RNN};

use super::{Visitor, init};
use crate::tensor::Tensor;

/// Options of [`RNN`], [`LSTM`] and [`GRU`]; PyTorch's.
#[derive(Clone, Copy, Debug)]
pub struct RecurrentOptions {
    /// How many layers stand on one another.
    pub layers: usize,
    /// Whether the products add a bias.
    pub bias: bool,
    /// The batch is the first axis, (batch, length, width), rather than the second.
    pub batch_first: bool,
    /// The probability of dropping an element between layers while training.
    pub dropout: f64,
    /// A second network runs from the end to the beginning, and outputs stand side by side.
    pub bidirectional: bool,
}

impl Default for RecurrentOptions {
    fn default() -> Self {
        RecurrentOptions { layers: 1, bias: true, batch_first: false, dropout: 0.0, bidirectional: false }
    }
}

impl RecurrentOptions {
    fn directions(&self) -> usize {
        1 + usize::from(self.bidirectional)
    }
}

/// The parameters of one layer in one direction, or of a cell. Rows are those of all gates, in PyTorch's order: input,
/// forget, cell, output for an LSTM; reset, update, new for a GRU.
pub struct RecurrentWeights {
    /// Gates · hidden × inputs.
    pub weight_ih: Tensor,
    /// Gates · hidden × hidden.
    pub weight_hh: Tensor,
    /// Gates · hidden.
    pub bias_ih: Option<Tensor>,
    /// Gates · hidden.
    pub bias_hh: Option<Tensor>,
}

impl RecurrentWeights {
    /// Uniform within ±1/√hidden.
    #[track_caller]
    fn new(inputs: usize, hidden: usize, gates: usize, bias: bool) -> RecurrentWeights {
        let rows = gates * hidden;
        RecurrentWeights {
            weight_ih: init::by_fan_in([rows, inputs], hidden),
            weight_hh: init::by_fan_in([rows, hidden], hidden),
            bias_ih: bias.then(|| init::by_fan_in([rows], hidden)),
            bias_hh: bias.then(|| init::by_fan_in([rows], hidden)),
        }
    }

    /// Shows the parameters under PyTorch's names, which end in the layer and the direction.
    fn visit(&self, suffix: &str, visitor: &mut Visitor<'_>) {
        visitor.parameter(&format!("weight_ih{suffix}"), &self.weight_ih);
        visitor.parameter(&format!("weight_hh{suffix}"), &self.weight_hh);
        visitor.field(&format!("bias_ih{suffix}"), &self.bias_ih);
        visitor.field(&format!("bias_hh{suffix}"), &self.bias_hh);
    }
}
