//! The formulas of one step.

use super::RecurrentWeights;
use crate::error::Result;
use crate::tensor::Tensor;

/// What computes the next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tanh,
    Relu,
    Lstm,
    Gru,
}

impl Kind {
    /// How many blocks of rows the weights have.
    pub fn gates(self) -> usize {
        match self {
            Kind::Tanh | Kind::Relu => 1,
            Kind::Lstm => 4,
            Kind::Gru => 3,
        }
    }

    /// How many tensors the state has: the output, and the cell of an LSTM.
    pub fn states(self) -> usize {
        if self == Kind::Lstm { 2 } else { 1 }
    }

    /// The next state, the output first. `from_input` is x·W_ihᵀ + b_ih of (batch, gates · hidden).
    pub fn step(
        self,
        from_input: &Tensor,
        weights: &RecurrentWeights,
        state: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        let output = &state[0];
        let hidden = output.size(-1);
        let from_output = output.try_linear(&weights.weight_hh, weights.bias_hh.as_ref())?;
        let gate = |t: &Tensor, k: usize| t.try_narrow(-1, k * hidden, hidden);
        Ok(match self {
            Kind::Tanh => vec![from_input.try_add(&from_output)?.try_tanh()?],
            Kind::Relu => vec![from_input.try_add(&from_output)?.try_relu()?],
            Kind::Lstm => {
                let all = from_input.try_add(&from_output)?;
                let input = gate(&all, 0)?.try_sigmoid()?;
                let forget = gate(&all, 1)?.try_sigmoid()?;
                let new = gate(&all, 2)?.try_tanh()?;
                let cell = forget.try_mul(&state[1])?.try_add(&input.try_mul(&new)?)?;
                vec![gate(&all, 3)?.try_sigmoid()?.try_mul(&cell.try_tanh()?)?, cell]
            }
            Kind::Gru => {
                let both = |k| gate(from_input, k)?.try_add(&gate(&from_output, k)?);
                let reset = both(0)?.try_sigmoid()?;
                let update = both(1)?.try_sigmoid()?;
                let new =
                    gate(from_input, 2)?.try_add(&reset.try_mul(&gate(&from_output, 2)?)?)?.try_tanh()?;
                // (1 − z)·n + z·h
                vec![new.try_add(&update.try_mul(&output.try_sub(&new)?)?)?]
            }
        })
    }
}
