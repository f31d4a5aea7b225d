//! Functions of tensors that layers are made of, but for convolutions, losses and attention.

use crate::tensor::{PyTensor, record};
use pyo3::prelude::*;
use volta::{Interpolation, Result, Tensor, no_grad};

/// An optional tensor among a function's arguments.
pub type Maybe<'py> = Option<PyRef<'py, PyTensor>>;

/// The tensor behind an optional argument.
pub fn inner<'a>(tensor: &'a Maybe<'_>) -> Option<&'a Tensor> {
    tensor.as_ref().map(|t| &t.0)
}

/// Functions of one tensor and plain numbers: the engine's method of the same name.
macro_rules! methods {
    ($($name:ident($($argument:ident: $ty:ty),*) => $method:ident;)*) => {
        $(
            #[pyfunction]
            fn $name(x: PyRef<'_, PyTensor> $(, $argument: $ty)*) -> PyResult<PyTensor> {
                record(|| x.0.$method($($argument),*))
            }
        )*

        fn register_methods(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

methods! {
    relu() => try_relu;
    relu6() => try_relu6;
    gelu() => try_gelu;
    gelu_tanh() => try_gelu_tanh;
    silu() => try_silu;
    mish() => try_mish;
    sigmoid() => try_sigmoid;
    tanh() => try_tanh;
    hardsigmoid() => try_hardsigmoid;
    hardswish() => try_hardswish;
    softsign() => try_softsign;
    logsigmoid() => try_log_sigmoid;
    leaky_relu(slope: f64) => try_leaky_relu;
    elu(alpha: f64) => try_elu;
    softplus(beta: f64, threshold: f64) => try_softplus;
    hardtanh(min: f64, max: f64) => try_hardtanh;
    softmax(dim: isize) => try_softmax;
    log_softmax(dim: isize) => try_log_softmax;
    dropout(p: f64, training: bool) => try_dropout;
    dropout2d(p: f64, training: bool) => try_dropout2d;
    pixel_shuffle(factor: usize) => try_pixel_shuffle;
    pixel_unshuffle(factor: usize) => try_pixel_unshuffle;
    one_hot(classes: usize) => try_one_hot;
    normalize(p: f64, dim: isize, eps: f64) => try_normalize;
    flatten(start: isize, end: isize) => try_flatten;
}

#[pyfunction]
fn prelu(x: PyRef<'_, PyTensor>, weight: PyRef<'_, PyTensor>) -> PyResult<PyTensor> {
    record(|| x.0.try_prelu(&weight.0))
}

#[pyfunction]
fn unflatten(x: PyRef<'_, PyTensor>, dim: isize, sizes: Vec<isize>) -> PyResult<PyTensor> {
    record(|| x.0.try_unflatten(dim, &sizes[..]))
}

#[pyfunction]
#[pyo3(signature = (x, weight, bias = None))]
fn linear(x: PyRef<'_, PyTensor>, weight: PyRef<'_, PyTensor>, bias: Maybe<'_>) -> PyResult<PyTensor> {
    record(|| x.0.try_linear(&weight.0, inner(&bias)))
}

/// The rows of a table; the row for padding is not trained.
#[pyfunction]
#[pyo3(signature = (index, weight, padding_idx = None))]
fn embedding(
    index: PyRef<'_, PyTensor>,
    weight: PyRef<'_, PyTensor>,
    padding_idx: Option<usize>,
) -> PyResult<PyTensor> {
    let layer = volta::Embedding { weight: weight.0.clone(), padding_idx };
    record(|| volta::Module::try_forward(&layer, &index.0))
}

#[pyfunction]
fn layer_norm(
    x: PyRef<'_, PyTensor>,
    shape: Vec<usize>,
    weight: Maybe<'_>,
    bias: Maybe<'_>,
    eps: f64,
) -> PyResult<PyTensor> {
    record(|| x.0.try_layer_norm(&shape[..], inner(&weight), inner(&bias), eps))
}

#[pyfunction]
fn rms_norm(
    x: PyRef<'_, PyTensor>,
    shape: Vec<usize>,
    weight: Maybe<'_>,
    eps: Option<f64>,
) -> PyResult<PyTensor> {
    record(|| {
        // Without a number of choice, the layer knows the smallest step of each type.
        let shape = volta::Shape::new(&shape)?;
        let layer = volta::RMSNorm { weight: inner(&weight).cloned(), shape, eps };
        volta::Module::try_forward(&layer, &x.0)
    })
}

#[pyfunction]
fn group_norm(
    x: PyRef<'_, PyTensor>,
    groups: usize,
    weight: Maybe<'_>,
    bias: Maybe<'_>,
    eps: f64,
) -> PyResult<PyTensor> {
    record(|| x.0.try_group_norm(groups, inner(&weight), inner(&bias), eps))
}

/// Normalization by running averages.
#[pyfunction]
fn batch_norm_eval(
    x: PyRef<'_, PyTensor>,
    mean: PyRef<'_, PyTensor>,
    variance: PyRef<'_, PyTensor>,
    weight: Maybe<'_>,
    bias: Maybe<'_>,
    eps: f64,
) -> PyResult<PyTensor> {
    record(|| x.0.try_batch_norm_eval(&mean.0, &variance.0, inner(&weight), inner(&bias), eps))
}

/// Normalization by the statistics of the batch, which are weighed into the running averages, if there are any: by
/// `momentum`, or evenly over all batches that `batches` counts. A batch without values counts, and has no statistics.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the arguments of PyTorch's function")]
fn batch_norm_train(
    x: PyRef<'_, PyTensor>,
    mean: Maybe<'_>,
    variance: Maybe<'_>,
    batches: Maybe<'_>,
    weight: Maybe<'_>,
    bias: Maybe<'_>,
    momentum: Option<f64>,
    eps: f64,
) -> PyResult<PyTensor> {
    record(|| {
        let (y, seen_mean, seen_variance) = x.0.try_batch_norm_train(inner(&weight), inner(&bias), eps)?;
        let count = (x.0.numel() / seen_mean.numel().max(1)) as f64;
        no_grad(|| {
            if let Some(batches) = inner(&batches) {
                batches.try_assign(&batches.try_add(1)?)?;
            }
            if count == 0.0 {
                return Ok(());
            }
            let unbiased = seen_variance.try_mul(count / (count - 1.0))?;
            let seen = [(inner(&mean), &seen_mean), (inner(&variance), &unbiased)];
            take_in(&seen, inner(&batches), momentum)
        })?;
        Ok(y)
    })
}

/// Weighs what a batch has shown into running averages, where they are.
fn take_in(
    seen: &[(Option<&Tensor>, &Tensor)],
    batches: Option<&Tensor>,
    momentum: Option<f64>,
) -> Result<()> {
    for &(running, seen) in seen {
        let Some(running) = running else { continue };
        let change = seen.detach().try_to_dtype(running.dtype())?.try_sub(running)?;
        let part = match (momentum, batches) {
            (Some(momentum), _) => change.try_mul(momentum)?,
            (None, Some(batches)) => change.try_div(&batches.try_to_dtype(running.dtype())?)?,
            (None, None) => change,
        };
        running.try_assign(&running.try_add(&part)?)?;
    }
    Ok(())
}

/// Images of another size: `size`, or `scale` times their own.
#[pyfunction]
fn interpolate(
    x: PyRef<'_, PyTensor>,
    size: Option<[usize; 2]>,
    scale: Option<[f64; 2]>,
    mode: &str,
    align_corners: bool,
) -> PyResult<PyTensor> {
    let how = match mode {
        "nearest" => Interpolation::Nearest,
        "bilinear" => Interpolation::Bilinear { align_corners },
        other => {
            let message = format!("interpolation {other:?} is not there: use \"nearest\" or \"bilinear\"");
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
    };
    match (size, scale) {
        (Some(size), None) => record(|| x.0.try_interpolate(size, how)),
        (None, Some(scale)) => record(|| x.0.try_interpolate_scale(scale, how)),
        _ => Err(pyo3::exceptions::PyValueError::new_err("give either a size or a scale_factor")),
    }
}

#[pyfunction]
fn cosine_similarity(
    a: PyRef<'_, PyTensor>,
    b: PyRef<'_, PyTensor>,
    dim: isize,
    eps: f64,
) -> PyResult<PyTensor> {
    record(|| a.0.try_cosine_similarity(&b.0, dim, eps))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register_methods(module)?;
    module.add_function(wrap_pyfunction!(prelu, module)?)?;
    module.add_function(wrap_pyfunction!(unflatten, module)?)?;
    module.add_function(wrap_pyfunction!(linear, module)?)?;
    module.add_function(wrap_pyfunction!(embedding, module)?)?;
    module.add_function(wrap_pyfunction!(layer_norm, module)?)?;
    module.add_function(wrap_pyfunction!(rms_norm, module)?)?;
    module.add_function(wrap_pyfunction!(group_norm, module)?)?;
    module.add_function(wrap_pyfunction!(batch_norm_eval, module)?)?;
    module.add_function(wrap_pyfunction!(batch_norm_train, module)?)?;
    module.add_function(wrap_pyfunction!(interpolate, module)?)?;
    module.add_function(wrap_pyfunction!(cosine_similarity, module)?)
}
