//! First values of parameters, as PyTorch draws them.

use crate::shape::Dims;
use crate::tensor::Tensor;

/// A parameter with these values.
pub(crate) fn parameter(value: Tensor) -> Tensor {
    value.requires_grad(true)
}

/// Uniform within ±`bound`.
pub fn uniform(shape: impl Into<Dims>, bound: f64) -> Tensor {
    parameter((Tensor::rand(shape) * 2.0 - 1.0) * bound)
}

/// Uniform within ±1/√`fan_in`: weights and biases of linear and convolution layers.
pub fn by_fan_in(shape: impl Into<Dims>, fan_in: usize) -> Tensor {
    uniform(shape, 1.0 / (fan_in.max(1) as f64).sqrt())
}

/// Normal with a standard deviation.
pub fn normal(shape: impl Into<Dims>, deviation: f64) -> Tensor {
    parameter(Tensor::randn(shape) * deviation)
}

/// Uniform within ±√(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
pub fn xavier_uniform(shape: impl Into<Dims>, fan_in: usize, fan_out: usize) -> Tensor {
    uniform(shape, (6.0 / (fan_in + fan_out).max(1) as f64).sqrt())
}

/// Normal with √(2 / fan_in), for layers before a ReLU (He et al., 2015).
pub fn kaiming_normal(shape: impl Into<Dims>, fan_in: usize) -> Tensor {
    normal(shape, (2.0 / fan_in.max(1) as f64).sqrt())
}

/// Zeros.
pub fn zeros(shape: impl Into<Dims>) -> Tensor {
    parameter(Tensor::zeros(shape))
}

/// Ones.
pub fn ones(shape: impl Into<Dims>) -> Tensor {
    parameter(Tensor::ones(shape))
}
