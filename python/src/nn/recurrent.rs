//! Recurrent networks and single steps of them, by the engine's own layers with the weights of Python's.

use super::functional::{Maybe, inner};
use crate::arguments::TensorArg;
use crate::error::call;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use volta::nn::RecurrentWeights;
use volta::{GRU, GRUCell, LSTM, LSTMCell, RNN, RNNCell, RecurrentOptions, Result, Tensor};

/// `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh` of one layer in one direction.
pub struct Weights(RecurrentWeights);

impl<'a, 'py> FromPyObject<'a, 'py> for Weights {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        type Parts<'py> = (PyRef<'py, PyTensor>, PyRef<'py, PyTensor>, Maybe<'py>, Maybe<'py>);
        let (ih, hh, bias_ih, bias_hh): Parts<'_> = object.extract()?;
        Ok(Weights(RecurrentWeights {
            weight_ih: ih.0.clone(),
            weight_hh: hh.0.clone(),
            bias_ih: inner(&bias_ih).cloned(),
            bias_hh: inner(&bias_hh).cloned(),
        }))
    }
}

/// The states that Python gave or gets: the output, and the cell of an LSTM.
type States = Vec<TensorArg>;

fn first(states: &[TensorArg]) -> Option<&Tensor> {
    states.first().map(|s| &s.0)
}

fn both(states: &[TensorArg]) -> Option<(&Tensor, &Tensor)> {
    Some((&states.first()?.0, &states.get(1)?.0))
}

/// The output of every step and the last states of a network.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the options of a recurrent network")]
fn recurrent(
    kind: &str,
    x: PyRef<'_, PyTensor>,
    states: States,
    weights: Vec<Weights>,
    layers: usize,
    batch_first: bool,
    dropout: f64,
    bidirectional: bool,
) -> PyResult<(PyTensor, States)> {
    let weights: Vec<RecurrentWeights> = weights.into_iter().map(|w| w.0).collect();
    let bias = weights.first().is_some_and(|w| w.bias_ih.is_some());
    let options = RecurrentOptions { layers, bias, batch_first, dropout, bidirectional };
    let x = &x.0;
    let one = |result: Result<(Tensor, Tensor)>| result.map(|(y, h)| (y, vec![h]));
    let run = || match kind {
        "RNN_TANH" => one(RNN::try_from_weights(weights, options).and_then(|n| n.try_run(x, first(&states)))),
        "RNN_RELU" => {
            one(RNN::try_from_weights(weights, options)
                .and_then(|n| n.with_relu().try_run(x, first(&states))))
        }
        "GRU" => one(GRU::try_from_weights(weights, options).and_then(|n| n.try_run(x, first(&states)))),
        "LSTM" => LSTM::try_from_weights(weights, options)
            .and_then(|n| n.try_run(x, both(&states)))
            .map(|(y, (h, c))| (y, vec![h, c])),
        other => panic!("{other:?} is no recurrent network"),
    };
    let (y, last) = call(run)?;
    Ok((PyTensor::from(y), last.into_iter().map(TensorArg).collect()))
}

/// The states after one step.
#[pyfunction]
fn recurrent_cell(kind: &str, x: PyRef<'_, PyTensor>, states: States, weights: Weights) -> PyResult<States> {
    let (x, weights) = (&x.0, weights.0);
    let run = || match kind {
        "RNN_TANH" => RNNCell::from_weights(weights).try_run(x, first(&states)).map(|h| vec![h]),
        "RNN_RELU" => RNNCell::from_weights(weights).with_relu().try_run(x, first(&states)).map(|h| vec![h]),
        "GRU" => GRUCell::from_weights(weights).try_run(x, first(&states)).map(|h| vec![h]),
        "LSTM" => LSTMCell::from_weights(weights).try_run(x, both(&states)).map(|(h, c)| vec![h, c]),
        other => panic!("{other:?} is no recurrent network"),
    };
    Ok(call(run)?.into_iter().map(TensorArg).collect())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(recurrent, module)?)?;
    module.add_function(wrap_pyfunction!(recurrent_cell, module)?)
}
