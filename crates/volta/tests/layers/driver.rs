//! The check that every layer goes through: its values against a plain reference, and its gradients, in the middle of a
//! graph, against differences of that reference.

use crate::array::{Array, array, real, tensor};
use std::collections::BTreeMap;
use volta::{DType, Module, Tensor};

pub type Parameters = BTreeMap<String, Array>;

/// How far apart the points of a difference are.
const STEP: f64 = 1e-5;
/// How many elements of each tensor are tried.
const SAMPLES: usize = 6;

pub fn value_tolerance() -> f64 {
    if real() == DType::F64 { 1e-10 } else { 5e-5 }
}

pub fn gradient_tolerance() -> f64 {
    if real() == DType::F64 { 1e-6 } else { 2e-3 }
}

pub fn assert_close(what: &str, actual: &Array, expected: &Array, tolerance: f64) {
    assert_eq!(actual.shape, expected.shape, "{what}: the shape");
    for (k, (&a, &e)) in actual.data.iter().zip(&expected.data).enumerate() {
        let close = (a - e).abs() <= tolerance * e.abs().max(1.0);
        assert!(close, "{what}: element {k} of {:?} is {a:?}, expected {e:?}", expected.shape);
    }
}

/// Gives every parameter and every buffer of floats known numbers, by the order of their names; parameters as the
/// reference takes them.
pub fn fill(module: &dyn Module) -> Parameters {
    module.to_dtype(real());
    let parameters: BTreeMap<String, Tensor> = module.named_parameters().into_iter().collect();
    let filled = parameters.iter().enumerate().map(|(seed, (name, t))| {
        let values = Array::waves(&t.shape(), seed + 1);
        t.assign(&tensor(&values));
        (name.clone(), values)
    });
    filled.collect()
}

fn places(count: usize) -> impl Iterator<Item = usize> {
    let step = (count / SAMPLES).max(1);
    (0..count).step_by(step).take(SAMPLES)
}

/// `run` is what the layer does with its inputs, `reference` the same in plain loops.
pub fn check(
    what: &str,
    module: &dyn Module,
    inputs: &[Array],
    run: impl Fn(&[Tensor]) -> Tensor,
    reference: impl Fn(&Parameters, &[Array]) -> Array,
) {
    let parameters = fill(module);
    module.zero_grad();
    // Leaves hold half of what the layer sees, so that it stands in the middle of a graph.
    let leaves: Vec<Tensor> =
        inputs.iter().map(|x| tensor(&x.map(|v| v / 2.0)).requires_grad(true)).collect();
    let seen: Vec<Tensor> = leaves.iter().map(|x| x * 2.0).collect();
    let out = run(&seen);
    assert_close(what, &array(&out), &reference(&parameters, inputs), value_tolerance());

    let weights = Array::waves(&out.shape(), 77);
    (out * tensor(&weights)).sum().backward();
    let loss = |parameters: &Parameters, inputs: &[Array]| -> f64 {
        reference(parameters, inputs).data.iter().zip(&weights.data).map(|(y, w)| y * w).sum()
    };
    let near = |what: String, found: f64, slope: f64| {
        let close = (found - slope).abs() <= gradient_tolerance() * slope.abs().max(1.0);
        assert!(close, "{what} is {found:?}, by differences {slope:?}");
    };
    for (name, t) in module.named_parameters() {
        let gradient = array(&t.grad().unwrap_or_else(|| panic!("{what}: {name} has no gradient")));
        for place in places(gradient.data.len()) {
            let nudged = |by: f64| {
                let mut all = parameters.clone();
                all.get_mut(&name).expect("a parameter").data[place] += by;
                loss(&all, inputs)
            };
            let slope = (nudged(STEP) - nudged(-STEP)) / (2.0 * STEP);
            near(format!("{what}: the gradient of {name} at {place}"), gradient.data[place], slope);
        }
    }
    for (k, leaf) in leaves.iter().enumerate() {
        let gradient = array(&leaf.grad().unwrap_or_else(|| panic!("{what}: input {k} has no gradient")));
        for place in places(gradient.data.len()) {
            let nudged = |by: f64| {
                let mut all = inputs.to_vec();
                all[k].data[place] += by;
                loss(&parameters, &all)
            };
            let slope = 2.0 * (nudged(STEP) - nudged(-STEP)) / (2.0 * STEP);
            near(format!("{what}: the gradient of input {k} at {place}"), gradient.data[place], slope);
        }
    }
}

/// [`check`] of a layer's forward pass of one input.
pub fn check_forward(
    what: &str,
    module: &dyn Module,
    input: &Array,
    reference: impl Fn(&Parameters, &Array) -> Array,
) {
    check(what, module, std::slice::from_ref(input), |x| module.forward(&x[0]), |p, x| reference(p, &x[0]));
}
