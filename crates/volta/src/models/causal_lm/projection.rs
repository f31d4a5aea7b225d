//! A linear layer that may have an adapter of low rank.

use super::weight::Weight;
use crate::autograd::no_grad;
use crate::error::Result;
use crate::nn::{Dropout, Module, Visitor, init, layer};
use crate::tensor::Tensor;

/// What is added to a product: scale · B · A · x. With a magnitude (DoRA), the sum of both weights keeps its direction, and its rows get
/// these lengths.
pub(in crate::models) struct Adapter {
    /// Rank × inputs.
    pub a: Tensor,
    /// Outputs × rank.
    pub b: Tensor,
    /// One length a row of the weight.
    pub magnitude: Option<Tensor>,
    pub scale: f64,
    pub dropout: Dropout,
}

impl Adapter {
    /// scale · B · A.
    fn difference(&self) -> Result<Tensor> {
        self.b.try_matmul(&self.a)?.try_mul(self.scale)
    }

    /// What rows of the sum are multiplied by. No gradient flows through their lengths, as the paper has it.
    fn factors(&self, magnitude: &Tensor, weight: &Weight) -> Result<Tensor> {
        let lengths = no_grad(|| row_lengths(&weight.floats()?.try_add(&self.difference()?)?))?;
        magnitude.try_div(&lengths)
    }
}

/// The length of every row.
pub(in crate::models) fn row_lengths(weight: &Tensor) -> Result<Tensor> {
    weight.try_square()?.try_sum_dim(1, false)?.try_sqrt()
}

/// x · weightᵀ + bias, and what an adapter adds.
pub(in crate::models) struct Projection {
    /// Outputs × inputs.
    pub weight: Weight,
    pub bias: Option<Tensor>,
    pub adapter: Option<Adapter>,
}

/// The standard deviation of first weights.
pub(super) const DEVIATION: f64 = 0.02;

impl Projection {
    /// With small first values.
    pub fn new(inputs: usize, outputs: usize, bias: bool) -> Projection {
        let bias = bias.then(|| init::zeros([outputs]));
        let weight = Weight::Floats(init::normal([outputs, inputs], DEVIATION));
        Projection { weight, bias, adapter: None }
    }

    /// The weight with what the adapter makes of it; nothing without one.
    pub fn merged(&self) -> Result<Option<Tensor>> {
        let Some(adapter) = &self.adapter else { return Ok(None) };
        let weight = self.weight.floats()?;
        let sum = weight.try_add(&adapter.difference()?.try_to_dtype(weight.dtype())?)?;
        let Some(magnitude) = &adapter.magnitude else { return Ok(Some(sum)) };
        let factors = magnitude.try_div(&row_lengths(&sum)?)?;
        sum.try_mul(&factors.try_unsqueeze(1)?)?.try_to_dtype(weight.dtype()).map(Some)
    }

    /// What comes out with an adapter.
    fn adapted(&self, adapter: &Adapter, x: &Tensor) -> Result<Tensor> {
        let Adapter { a, b, magnitude, scale, dropout } = adapter;
        let bias = self.bias.as_ref();
        let dropped = dropout.try_forward(x)?;
        let low = dropped.try_linear(a, None)?.try_linear(b, None)?.try_mul(*scale)?;
        let Some(magnitude) = magnitude else { return self.weight.linear(x, bias)?.try_add(&low) };
        let factors = adapter.factors(magnitude, &self.weight)?;
        let plain = self.weight.linear(x, None)?;
        // What is dropped is dropped from both parts that are turned.
        let drops = dropout.p > 0.0 && dropout.mode.is_training();
        let turned = if drops { self.weight.linear(&dropped, None)? } else { plain.clone() };
        let y = plain.try_add(&turned.try_mul(&factors.try_sub(1.0)?)?)?;
        let y = y.try_add(&low.try_mul(&factors)?)?;
        match bias {
            Some(bias) => y.try_add(bias),
            None => Ok(y),
        }
    }
}

impl Module for Projection {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || match &self.adapter {
            Some(adapter) => self.adapted(adapter, x),
            None => self.weight.linear(x, self.bias.as_ref()),
        })
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
        visitor.field("bias", &self.bias);
        if let Some(adapter) = &self.adapter {
            // As PEFT calls them.
            visitor.parameter("lora_A.weight", &adapter.a);
            visitor.parameter("lora_B.weight", &adapter.b);
            if let Some(magnitude) = &adapter.magnitude {
                visitor.parameter("lora_magnitude_vector", magnitude);
            }
            visitor.field("lora_dropout", &adapter.dropout);
        }
    }

    fn describe(&self) -> String {
        let (inputs, outputs) = (self.weight.columns(), self.weight.rows());
        let adapter = self.adapter.as_ref().map_or(String::new(), |a| format!(", rank {}", a.a.size(0)));
        let bias = if self.bias.is_some() { "" } else { ", no bias" };
        format!("{inputs} → {outputs}{}{bias}{adapter}", self.weight.note())
    }
}
