//! A convolution, a norm over its channels, and what comes after.

use crate::error::Result;
use crate::nn::{BatchNorm2d, Conv2d, Module, Sequential, init};
use crate::tensor::{ConvOptions, Tensor};

/// Functions of one element as layers without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activation {
    Relu,
    Relu6,
    HardSwish,
}

impl Module for Activation {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Activation::Relu => x.try_relu(),
            Activation::Relu6 => x.try_relu6(),
            Activation::HardSwish => x.try_hardswish(),
        }
    }
}

/// A square convolution without a bias that keeps the image's size but for its stride; first values are He's, by the outputs.
pub(super) fn conv(
    inputs: usize,
    outputs: usize,
    kernel: usize,
    stride: usize,
    groups: usize,
) -> Result<Conv2d> {
    let options =
        ConvOptions { stride: [stride; 2], padding: [(kernel - 1) / 2; 2], groups, ..ConvOptions::default() };
    let mut layer = Conv2d::try_with_options(inputs, outputs, [kernel, kernel], options, false)?;
    let fan_out = outputs * kernel * kernel / groups.max(1);
    layer.weight = init::kaiming_normal(layer.weight.shape(), fan_out);
    Ok(layer)
}

/// Layers one after another: the convolution, its norm, and the function if there is one.
pub(super) fn conv_norm(
    channels: (usize, usize),
    (kernel, stride, groups): (usize, usize, usize),
    norm: impl Fn(usize) -> BatchNorm2d,
    activation: Option<Activation>,
) -> Result<Sequential> {
    let (inputs, outputs) = channels;
    let mut layers: Vec<Box<dyn Module>> =
        vec![Box::new(conv(inputs, outputs, kernel, stride, groups)?), Box::new(norm(outputs))];
    if let Some(activation) = activation {
        layers.push(Box::new(activation));
    }
    Ok(Sequential::new(layers))
}

/// A number of channels that divides by eight, at most a tenth below what was asked for.
pub(super) fn rounded(channels: f64) -> usize {
    let near = (((channels + 4.0) as usize) / 8 * 8).max(8);
    if (near as f64) < 0.9 * channels { near + 8 } else { near }
}
