//! Recurrent networks and their cells.

use crate::array::{Array, array, real, tensor};
use crate::driver::{Parameters, assert_close, check, check_forward, fill, value_tolerance};
use volta::{GRU, GRUCell, LSTM, LSTMCell, Module, RNN, RNNCell, RecurrentOptions, Tensor};
use volta_testing::test;

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Tanh,
    Relu,
    Lstm,
    Gru,
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// One step of one example: the next output and cell.
fn step(p: &Parameters, suffix: &str, kind: Step, x: &[f64], h: &[f64], c: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let n = h.len();
    let product = |weight: &str, bias: &str, v: &[f64], row: usize| -> f64 {
        let w = &p[&format!("{weight}{suffix}")];
        let sum: f64 = v.iter().enumerate().map(|(k, v)| w.at(&[row, k]) * v).sum();
        sum + p.get(&format!("{bias}{suffix}")).map_or(0.0, |b| b.at(&[row]))
    };
    let from_x = |row: usize| product("weight_ih", "bias_ih", x, row);
    let from_h = |row: usize| product("weight_hh", "bias_hh", h, row);
    let sum = |row: usize| from_x(row) + from_h(row);
    let mut cells = c.to_vec();
    let outputs = (0..n)
        .map(|k| match kind {
            Step::Tanh => sum(k).tanh(),
            Step::Relu => sum(k).max(0.0),
            Step::Lstm => {
                cells[k] = sigmoid(sum(n + k)) * c[k] + sigmoid(sum(k)) * sum(2 * n + k).tanh();
                sigmoid(sum(3 * n + k)) * cells[k].tanh()
            }
            Step::Gru => {
                let (r, z) = (sigmoid(sum(k)), sigmoid(sum(n + k)));
                let new = (from_x(2 * n + k) + r * from_h(2 * n + k)).tanh();
                (1.0 - z) * new + z * h[k]
            }
        })
        .collect();
    (outputs, cells)
}

/// The outputs along (length, batch, inputs), and the last states of (layers · directions, batch, hidden).
fn run(
    p: &Parameters,
    kind: Step,
    o: &RecurrentOptions,
    x: &Array,
    states: Option<[&Array; 2]>,
    hidden: usize,
) -> (Array, Array, Array) {
    let [length, batch] = [x.shape[0], x.shape[1]];
    let directions = 1 + usize::from(o.bidirectional);
    let states_shape = [o.layers * directions, batch, hidden];
    let (mut last_h, mut last_c) = (Array::zeros(&states_shape), Array::zeros(&states_shape));
    let mut x = x.clone();
    for layer in 0..o.layers {
        let mut out = Array::zeros(&[length, batch, hidden * directions]);
        for d in 0..directions {
            let suffix = format!("_l{layer}{}", if d == 1 { "_reverse" } else { "" });
            for b in 0..batch {
                let place = layer * directions + d;
                let first = |k: usize| -> Vec<f64> {
                    (0..hidden).map(|i| states.map_or(0.0, |s| s[k].at(&[place, b, i]))).collect()
                };
                let (mut h, mut c) = (first(0), first(1));
                for step_number in 0..length {
                    let t = if d == 1 { length - 1 - step_number } else { step_number };
                    let input: Vec<f64> = (0..x.shape[2]).map(|i| x.at(&[t, b, i])).collect();
                    (h, c) = step(p, &suffix, kind, &input, &h, &c);
                    (0..hidden).for_each(|i| out.add_at(&[t, b, d * hidden + i], h[i]));
                }
                (0..hidden).for_each(|i| last_h.add_at(&[place, b, i], h[i]));
                (0..hidden).for_each(|i| last_c.add_at(&[place, b, i], c[i]));
            }
        }
        x = out;
    }
    (x, last_h, last_c)
}

fn every_option() -> Vec<(&'static str, RecurrentOptions)> {
    let plain = RecurrentOptions::default();
    vec![
        ("plain", plain),
        ("no bias", RecurrentOptions { bias: false, ..plain }),
        ("both directions", RecurrentOptions { bidirectional: true, ..plain }),
        ("two layers of both directions", RecurrentOptions { layers: 2, bidirectional: true, ..plain }),
    ]
}

const HIDDEN: usize = 3;

/// Output and states in one array, so that gradients of all of them are checked.
fn joined(parts: &[Tensor]) -> Tensor {
    let flat: Vec<Tensor> = parts.iter().map(|t| t.flatten(0, -1)).collect();
    Tensor::cat(&flat, 0)
}

fn joined_arrays(parts: &[&Array]) -> Array {
    let data: Vec<f64> = parts.iter().flat_map(|a| a.data.clone()).collect();
    Array { shape: vec![data.len()], data }
}

#[test]
fn an_lstm_agrees_with_loops() {
    for (what, o) in every_option() {
        let layer = LSTM::with_options(2, HIDDEN, o);
        let x = Array::waves(&[4, 2, 2], 60);
        check_forward(what, &layer, &x, |p, x| run(p, Step::Lstm, &o, x, None, HIDDEN).0);
        let states = o.layers * (1 + usize::from(o.bidirectional));
        let (h, c) = (Array::waves(&[states, 2, HIDDEN], 61), Array::waves(&[states, 2, HIDDEN], 62));
        check(
            &format!("{what}, from a state"),
            &layer,
            &[x, h, c],
            |x| {
                let (y, (h, c)) = layer.run(&x[0], Some((&x[1], &x[2])));
                joined(&[y, h, c])
            },
            |p, x| {
                let (y, h, c) = run(p, Step::Lstm, &o, &x[0], Some([&x[1], &x[2]]), HIDDEN);
                joined_arrays(&[&y, &h, &c])
            },
        );
    }
}

#[test]
fn gru_and_rnn_agree_with_loops() {
    for (what, o) in every_option() {
        let (gru, rnn) = (GRU::with_options(2, HIDDEN, o), RNN::with_options(2, HIDDEN, o));
        let relu = RNN::with_options(2, HIDDEN, o).with_relu();
        let states = o.layers * (1 + usize::from(o.bidirectional));
        let inputs = [Array::waves(&[4, 2, 2], 60), Array::waves(&[states, 2, HIDDEN], 61)];
        let expected = |kind: Step| {
            move |p: &Parameters, x: &[Array]| {
                let (y, h, _) = run(p, kind, &o, &x[0], Some([&x[1], &x[1]]), HIDDEN);
                joined_arrays(&[&y, &h])
            }
        };
        let given = |(y, h): (Tensor, Tensor)| joined(&[y, h]);
        check(
            &format!("GRU, {what}"),
            &gru,
            &inputs,
            |x| given(gru.run(&x[0], Some(&x[1]))),
            expected(Step::Gru),
        );
        check(
            &format!("RNN, {what}"),
            &rnn,
            &inputs,
            |x| given(rnn.run(&x[0], Some(&x[1]))),
            expected(Step::Tanh),
        );
        check(
            &format!("RNN of relu, {what}"),
            &relu,
            &inputs,
            |x| given(relu.run(&x[0], Some(&x[1]))),
            expected(Step::Relu),
        );
    }
}

#[test]
fn a_long_sequence_is_cut_in_groups() {
    let o = RecurrentOptions::default();
    let layer = GRU::new(2, HIDDEN);
    check_forward("30 steps", &layer, &Array::waves(&[30, 1, 2], 60), |p, x| {
        run(p, Step::Gru, &o, x, None, HIDDEN).0
    });
}

#[test]
fn the_batch_may_come_first_or_be_left_out() {
    let layer = LSTM::new(2, HIDDEN);
    let first = LSTM::with_options(2, HIDDEN, RecurrentOptions { batch_first: true, ..Default::default() });
    fill(&layer);
    fill(&first);
    let x = tensor(&Array::waves(&[5, 2, 2], 60));
    let (expected, (h, c)) = layer.run(&x, None);
    let (y, (h1, c1)) = first.run(&x.transpose(0, 1), None);
    for (a, b) in [(&y.transpose(0, 1), &expected), (&h1, &h), (&c1, &c)] {
        assert_close("batch first", &array(a), &array(b), value_tolerance());
    }
    let (one, (h1, _)) = layer.run(&x.select(1, 0), None);
    assert_close("alone", &array(&one), &array(&expected.select(1, 0)), value_tolerance());
    assert_close("alone", &array(&h1), &array(&h.select(1, 0)), value_tolerance());
    let (again, _) = layer.run(&x.select(1, 0), Some((&h1, &h1)));
    assert_eq!(again.shape()[..], [5, HIDDEN]);
}

#[test]
fn dropout_between_layers_acts_in_training_only() {
    let options = RecurrentOptions { layers: 2, dropout: 0.5, ..Default::default() };
    let layer = GRU::with_options(2, HIDDEN, options);
    layer.to_dtype(real());
    let x = tensor(&Array::waves(&[5, 4, 2], 60));
    let run = || array(&layer.forward(&x)).data;
    assert_ne!(run(), run());
    layer.eval();
    assert_eq!(run(), run());
}

#[test]
fn cells_agree_with_loops() {
    let (x, h, c) =
        (Array::waves(&[2, 4], 63), Array::waves(&[2, HIDDEN], 64), Array::waves(&[2, HIDDEN], 65));
    let expected = |p: &Parameters, kind: Step, x: &[Array]| {
        let rows = |a: &Array| -> Vec<Vec<f64>> { a.data.chunks(a.shape[1]).map(<[f64]>::to_vec).collect() };
        let (xs, hs, cs) = (rows(&x[0]), rows(&x[1]), rows(&x[x.len() - 1]));
        let next: Vec<_> = (0..2).map(|b| step(p, "", kind, &xs[b], &hs[b], &cs[b])).collect();
        let mut data: Vec<f64> = next.iter().flat_map(|(h, _)| h.clone()).collect();
        if kind == Step::Lstm {
            data.extend(next.iter().flat_map(|(_, c)| c.clone()));
        }
        Array { shape: vec![data.len()], data }
    };
    for bias in [true, false] {
        let (rnn, relu) = (RNNCell::new(4, HIDDEN, bias), RNNCell::new(4, HIDDEN, bias).with_relu());
        let (lstm, gru) = (LSTMCell::new(4, HIDDEN, bias), GRUCell::new(4, HIDDEN, bias));
        let two = [x.clone(), h.clone()];
        let flat = |t: Tensor| t.flatten(0, -1);
        check("RNN", &rnn, &two, |x| flat(rnn.run(&x[0], Some(&x[1]))), |p, x| expected(p, Step::Tanh, x));
        check("relu", &relu, &two, |x| flat(relu.run(&x[0], Some(&x[1]))), |p, x| expected(p, Step::Relu, x));
        check("GRU", &gru, &two, |x| flat(gru.run(&x[0], Some(&x[1]))), |p, x| expected(p, Step::Gru, x));
        check(
            "LSTM",
            &lstm,
            &[x.clone(), h.clone(), c.clone()],
            |x| {
                let (h, c) = lstm.run(&x[0], Some((&x[1], &x[2])));
                joined(&[h, c])
            },
            |p, x| expected(p, Step::Lstm, x),
        );
    }
    let cell = LSTMCell::new(4, HIDDEN, true);
    fill(&cell);
    let zeros = tensor(&Array::zeros(&[2, HIDDEN]));
    let from_zeros = cell.run(&tensor(&x), Some((&zeros, &zeros))).0;
    assert_close("no state", &array(&cell.forward(&tensor(&x))), &array(&from_zeros), value_tolerance());
}
