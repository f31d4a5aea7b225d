//! One block of a [`Gpt`](super::Gpt): attention, then a feed-forward part, each around a norm and added to its input.

use super::gpt::{Activation, DEVIATION, GptOptions, Norm, Positions};
use crate::error::Result;
use crate::nn::{
    AttentionMask, Dropout, KvCache, LayerNorm, Linear, Module, MultiHeadAttention, MultiHeadOptions,
    RMSNorm, Rotary, Visitor, init, layer,
};
use crate::tensor::Tensor;

/// The norm of choice.
pub(super) enum AnyNorm {
    Layer(LayerNorm),
    Rms(RMSNorm),
}

impl AnyNorm {
    pub fn new(norm: Norm, width: usize) -> AnyNorm {
        match norm {
            Norm::Layer => AnyNorm::Layer(LayerNorm::new([width])),
            Norm::Rms => AnyNorm::Rms(RMSNorm::new([width])),
        }
    }

    fn inner(&self) -> &dyn Module {
        match self {
            AnyNorm::Layer(norm) => norm,
            AnyNorm::Rms(norm) => norm,
        }
    }
}

impl Module for AnyNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.inner().forward(x)
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        self.inner().try_forward(x)
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.inner().visit(visitor);
    }

    fn kind(&self) -> &'static str {
        self.inner().kind()
    }

    fn describe(&self) -> String {
        self.inner().describe()
    }

    fn place(&self) -> (usize, usize) {
        self.inner().place()
    }
}

/// Attention and a feed-forward part.
pub(super) struct Block {
    norm1: AnyNorm,
    pub attention: MultiHeadAttention,
    norm2: AnyNorm,
    /// The gate of SwiGLU.
    gate: Option<Linear>,
    up: Linear,
    down: Linear,
    dropout: Dropout,
}

/// A linear layer with GPT-2's first values.
fn linear(inputs: usize, outputs: usize, deviation: f64) -> Linear {
    Linear { weight: init::normal([outputs, inputs], deviation), bias: Some(init::zeros([outputs])) }
}

impl Block {
    pub fn try_new(options: &GptOptions) -> Result<Block> {
        let GptOptions { width, heads, layers, norm, .. } = *options;
        let rotary = (options.positions == Positions::Rotary).then(Rotary::default);
        let attention = MultiHeadOptions { dropout: options.dropout, rotary, ..MultiHeadOptions::default() };
        let mut attention = MultiHeadAttention::try_with_options(width, heads, attention)?;
        // What is added to the main path is made smaller, so that the sum of all blocks is not larger with more of them.
        let added = DEVIATION / (2.0 * layers as f64).sqrt();
        attention.in_proj_weight = init::normal(attention.in_proj_weight.shape(), DEVIATION);
        attention.out_proj = linear(width, width, added);
        let gated = options.activation == Activation::SwiGlu;
        let hidden = if gated { (8 * width / 3).next_multiple_of(8) } else { 4 * width };
        Ok(Block {
            norm1: AnyNorm::new(norm, width),
            attention,
            norm2: AnyNorm::new(norm, width),
            gate: gated.then(|| linear(width, hidden, DEVIATION)),
            up: linear(width, hidden, DEVIATION),
            down: linear(hidden, width, added),
            dropout: Dropout::new(options.dropout),
        })
    }

    /// The block for the next positions, with a memory of those before.
    pub fn try_next(&self, x: &Tensor, memory: &mut KvCache) -> Result<Tensor> {
        let found = self.attention.try_attend_cached(&self.norm1.try_forward(x)?, memory)?;
        self.after_attention(x, &found)
    }

    /// How much each position looks at each before it, in one head.
    pub fn try_weights(&self, x: &Tensor, head: usize) -> Result<Tensor> {
        self.attention.try_causal_weights(&self.norm1.try_forward(x)?, head)
    }

    fn after_attention(&self, x: &Tensor, found: &Tensor) -> Result<Tensor> {
        let x = x.try_add(&self.dropout.try_forward(found)?)?;
        let h = self.norm2.try_forward(&x)?;
        let up = self.up.try_forward(&h)?;
        let h = match &self.gate {
            Some(gate) => gate.try_forward(&h)?.try_silu()?.try_mul(&up)?,
            None => up.try_gelu_tanh()?,
        };
        x.try_add(&self.dropout.try_forward(&self.down.try_forward(&h)?)?)
    }
}

impl Module for Block {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let h = self.norm1.try_forward(x)?;
            self.after_attention(x, &self.attention.try_attend(&h, &h, &h, AttentionMask::causal())?)
        })
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("norm1", &self.norm1);
        visitor.field("attention", &self.attention);
        visitor.field("norm2", &self.norm2);
        visitor.field("gate", &self.gate);
        visitor.field("up", &self.up);
        visitor.field("down", &self.down);
        visitor.field("dropout", &self.dropout);
    }
}
