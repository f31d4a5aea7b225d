//! x·Wᵀ + b.

use super::call::{forward, layer, on_device};
use super::{Module, QuantizedLinear, Visitor, init};
use crate::device::Device;
use crate::error::Result;
use crate::op::quantized::BlockFormat;
use crate::tensor::{QuantizedMatrix, Tensor};

/// A fully connected layer: `x · weightᵀ + bias` over the last axis.
pub struct Linear {
    /// Outputs × inputs.
    pub weight: Tensor,
    /// One number an output.
    pub bias: Option<Tensor>,
}

impl Linear {
    /// With uniform first values within ±1/√inputs.
    #[track_caller]
    pub fn new(inputs: usize, outputs: usize, bias: bool) -> Linear {
        let weight = init::by_fan_in([outputs, inputs], inputs);
        Linear { weight, bias: bias.then(|| init::by_fan_in([outputs], inputs)) }
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(inputs: usize, outputs: usize, bias: bool, device: Device) -> Linear {
        on_device(device, || Linear::new(inputs, outputs, bias))
    }

    /// The layer with its weight rounded to blocks of 4 or 8 bits; the inputs must be a multiple of 32. It shares the bias.
    #[track_caller]
    pub fn quantize(&self, format: BlockFormat) -> Result<QuantizedLinear> {
        let weight = QuantizedMatrix::quantize(&self.weight, format)?;
        Ok(QuantizedLinear { weight, bias: self.bias.clone() })
    }
}

impl Module for Linear {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || x.try_linear(&self.weight, self.bias.as_ref()))
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
        visitor.field("bias", &self.bias);
    }

    fn describe(&self) -> String {
        let (inputs, outputs) = (self.weight.size(1), self.weight.size(0));
        format!("{inputs} → {outputs}{}", if self.bias.is_some() { "" } else { ", no bias" })
    }
}
