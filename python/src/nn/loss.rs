//! Losses.

use super::functional::{Maybe, inner};
use crate::tensor::{PyTensor, record};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use volta::{
    BceOptions, CosineEmbeddingOptions, CrossEntropyOptions, KlDivOptions, LinearCrossEntropyOptions,
    NllOptions, TripletMarginOptions,
};

/// What becomes of the losses of all examples, by PyTorch's names.
pub struct Reduction(volta::Reduction);

impl<'a, 'py> FromPyObject<'a, 'py> for Reduction {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<String>()?.as_str() {
            "mean" => Ok(Reduction(volta::Reduction::Mean)),
            "sum" => Ok(Reduction(volta::Reduction::Sum)),
            "none" => Ok(Reduction(volta::Reduction::None)),
            other => Err(PyValueError::new_err(format!(
                "{other:?} is no reduction: use \"mean\", \"sum\" or \"none\""
            ))),
        }
    }
}

type Given<'py> = PyRef<'py, PyTensor>;

#[pyfunction]
fn cross_entropy(
    input: Given<'_>,
    target: Given<'_>,
    weight: Maybe<'_>,
    ignore_index: Option<i64>,
    label_smoothing: f64,
    reduction: Reduction,
) -> PyResult<PyTensor> {
    let (weight, reduction) = (inner(&weight), reduction.0);
    let options = CrossEntropyOptions { weight, ignore_index, label_smoothing, reduction };
    record(|| volta::try_cross_entropy_with(&input.0, &target.0, options))
}

/// The cross-entropy of x·weightᵀ + bias, of which only a part is held at a time.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "a linear layer's and a loss's arguments")]
fn linear_cross_entropy(
    x: Given<'_>,
    linear_weight: Given<'_>,
    target: Given<'_>,
    bias: Maybe<'_>,
    weight: Maybe<'_>,
    ignore_index: Option<i64>,
    label_smoothing: f64,
    reduction: Reduction,
) -> PyResult<PyTensor> {
    let (weight, reduction) = (inner(&weight), reduction.0);
    let loss = CrossEntropyOptions { weight, ignore_index, label_smoothing, reduction };
    let options = LinearCrossEntropyOptions { bias: inner(&bias), loss, ..Default::default() };
    record(|| volta::try_linear_cross_entropy_with(&x.0, &linear_weight.0, &target.0, options))
}

#[pyfunction]
fn nll_loss(
    input: Given<'_>,
    target: Given<'_>,
    weight: Maybe<'_>,
    ignore_index: Option<i64>,
    reduction: Reduction,
) -> PyResult<PyTensor> {
    let options = NllOptions { weight: inner(&weight), ignore_index, reduction: reduction.0 };
    record(|| volta::try_nll_loss_with(&input.0, &target.0, options))
}

#[pyfunction]
fn mse_loss(input: Given<'_>, target: Given<'_>, reduction: Reduction) -> PyResult<PyTensor> {
    record(|| volta::try_mse_loss_with(&input.0, &target.0, reduction.0))
}

#[pyfunction]
fn l1_loss(input: Given<'_>, target: Given<'_>, reduction: Reduction) -> PyResult<PyTensor> {
    record(|| volta::try_l1_loss_with(&input.0, &target.0, reduction.0))
}

#[pyfunction]
fn smooth_l1_loss(
    input: Given<'_>,
    target: Given<'_>,
    beta: f64,
    reduction: Reduction,
) -> PyResult<PyTensor> {
    record(|| volta::try_smooth_l1_loss_with(&input.0, &target.0, beta, reduction.0))
}

#[pyfunction]
fn huber_loss(input: Given<'_>, target: Given<'_>, delta: f64, reduction: Reduction) -> PyResult<PyTensor> {
    record(|| volta::try_huber_loss_with(&input.0, &target.0, delta, reduction.0))
}

#[pyfunction]
fn binary_cross_entropy(
    input: Given<'_>,
    target: Given<'_>,
    weight: Maybe<'_>,
    reduction: Reduction,
) -> PyResult<PyTensor> {
    let options = BceOptions { weight: inner(&weight), pos_weight: None, reduction: reduction.0 };
    record(|| volta::try_bce_loss_with(&input.0, &target.0, options))
}

#[pyfunction]
fn binary_cross_entropy_with_logits(
    input: Given<'_>,
    target: Given<'_>,
    weight: Maybe<'_>,
    pos_weight: Maybe<'_>,
    reduction: Reduction,
) -> PyResult<PyTensor> {
    let (weight, pos_weight) = (inner(&weight), inner(&pos_weight));
    let options = BceOptions { weight, pos_weight, reduction: reduction.0 };
    record(|| volta::try_bce_with_logits_with(&input.0, &target.0, options))
}

#[pyfunction]
fn kl_div(input: Given<'_>, target: Given<'_>, log_target: bool, reduction: Reduction) -> PyResult<PyTensor> {
    let options = KlDivOptions { log_target, reduction: reduction.0 };
    record(|| volta::try_kl_div_with(&input.0, &target.0, options))
}

#[pyfunction]
fn cosine_embedding_loss(
    a: Given<'_>,
    b: Given<'_>,
    target: Given<'_>,
    margin: f64,
    reduction: Reduction,
) -> PyResult<PyTensor> {
    let options = CosineEmbeddingOptions { margin, reduction: reduction.0 };
    record(|| volta::try_cosine_embedding_loss_with(&a.0, &b.0, &target.0, options))
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the arguments of PyTorch's function")]
fn triplet_margin_loss(
    anchor: Given<'_>,
    positive: Given<'_>,
    negative: Given<'_>,
    margin: f64,
    p: f64,
    eps: f64,
    swap: bool,
    reduction: Reduction,
) -> PyResult<PyTensor> {
    let options = TripletMarginOptions { margin, p, eps, swap, reduction: reduction.0 };
    record(|| volta::try_triplet_margin_loss_with(&anchor.0, &positive.0, &negative.0, options))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(cross_entropy, module)?)?;
    module.add_function(wrap_pyfunction!(linear_cross_entropy, module)?)?;
    module.add_function(wrap_pyfunction!(nll_loss, module)?)?;
    module.add_function(wrap_pyfunction!(mse_loss, module)?)?;
    module.add_function(wrap_pyfunction!(l1_loss, module)?)?;
    module.add_function(wrap_pyfunction!(smooth_l1_loss, module)?)?;
    module.add_function(wrap_pyfunction!(huber_loss, module)?)?;
    module.add_function(wrap_pyfunction!(binary_cross_entropy, module)?)?;
    module.add_function(wrap_pyfunction!(binary_cross_entropy_with_logits, module)?)?;
    module.add_function(wrap_pyfunction!(kl_div, module)?)?;
    module.add_function(wrap_pyfunction!(cosine_embedding_loss, module)?)?;
    module.add_function(wrap_pyfunction!(triplet_margin_loss, module)?)
}
