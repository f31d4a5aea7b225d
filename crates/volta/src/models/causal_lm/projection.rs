//! A linear layer that may have an adapter of low rank.

use crate::error::Result;
use crate::nn::{Dropout, Module, Visitor, init, layer};
use crate::tensor::Tensor;

/// What is added to a product: scale · B · A · x.
pub(in crate::models) struct Adapter {
    /// Rank × inputs.
    pub a: Tensor,
    /// Outputs × rank.
    pub b: Tensor,
    pub scale: f64,
    pub dropout: Dropout,
}

/// x · weightᵀ + bias, and what an adapter adds.
pub(in crate::models) struct Projection {
    /// Outputs × inputs.
    pub weight: Tensor,
    pub bias: Option<Tensor>,
    pub adapter: Option<Adapter>,
}

/// The standard deviation of first weights.
pub(super) const DEVIATION: f64 = 0.02;

impl Projection {
    /// With small first values.
    pub fn new(inputs: usize, outputs: usize, bias: bool) -> Projection {
        let bias = bias.then(|| init::zeros([outputs]));
        Projection { weight: init::normal([outputs, inputs], DEVIATION), bias, adapter: None }
    }

    /// What the adapter adds to the weight.
    pub fn difference(&self) -> Result<Option<Tensor>> {
        let Some(Adapter { a, b, scale, .. }) = &self.adapter else { return Ok(None) };
        b.try_matmul(a)?.try_mul(*scale).map(Some)
    }
}

impl Module for Projection {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let y = x.try_linear(&self.weight, self.bias.as_ref())?;
            let Some(Adapter { a, b, scale, dropout }) = &self.adapter else { return Ok(y) };
            let low = dropout.try_forward(x)?.try_linear(a, None)?;
            y.try_add(&low.try_linear(b, None)?.try_mul(*scale)?)
        })
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
        visitor.field("bias", &self.bias);
        if let Some(adapter) = &self.adapter {
            // As PEFT calls them.
            visitor.parameter("lora_A.weight", &adapter.a);
            visitor.parameter("lora_B.weight", &adapter.b);
            visitor.field("lora_dropout", &adapter.dropout);
        }
    }

    fn describe(&self) -> String {
        let (inputs, outputs) = (self.weight.size(1), self.weight.size(0));
        let adapter = self.adapter.as_ref().map_or(String::new(), |a| format!(", rank {}", a.a.size(0)));
        format!("{inputs} → {outputs}{}{adapter}", if self.bias.is_some() { "" } else { ", no bias" })
    }
}
