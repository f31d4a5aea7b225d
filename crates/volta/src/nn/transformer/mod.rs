//! The layers of transformers (Vaswani et al., 2017): attention and a network of two linear layers, with what comes in
//! added to what comes out.

mod decoder;
mod encoder;

pub use decoder::TransformerDecoderLayer;
pub use encoder::TransformerEncoderLayer;

use super::{Dropout, LayerNorm, Linear, Module, MultiHeadAttention, MultiHeadOptions, Rotary};
use crate::error::Result;
use crate::tensor::Tensor;

/// The activation between the two linear layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeedForwardActivation {
    /// max(x, 0).
    #[default]
    Relu,
    /// x·Φ(x).
    Gelu,
}

/// Options of [`TransformerEncoderLayer`] and [`TransformerDecoderLayer`]; PyTorch's, but the batch comes first.
#[derive(Clone, Copy, Debug)]
pub struct TransformerOptions {
    /// The width between the two linear layers.
    pub dim_feedforward: usize,
    /// The probability of dropping elements while training: of attention weights, between the linear layers, and of what
    /// is added to the input.
    pub dropout: f64,
    /// What stands between the two linear layers.
    pub activation: FeedForwardActivation,
    /// Normalize before each part rather than after it.
    pub norm_first: bool,
    /// The batch is the first axis, (batch, length, width), rather than the second.
    pub batch_first: bool,
    /// Whether linear layers, attention and norms add a bias.
    pub bias: bool,
    /// Keeps the divisors of the norms from zero.
    pub layer_norm_eps: f64,
    /// Heads of keys and values in self-attention; as many as of queries unless given.
    pub kv_heads: Option<usize>,
    /// Positions as rotations in self-attention.
    pub rotary: Option<Rotary>,
}

impl Default for TransformerOptions {
    fn default() -> Self {
        TransformerOptions {
            dim_feedforward: 2048,
            dropout: 0.1,
            activation: FeedForwardActivation::Relu,
            norm_first: false,
            batch_first: true,
            bias: true,
            layer_norm_eps: 1e-5,
            kv_heads: None,
            rotary: None,
        }
    }
}

impl TransformerOptions {
    #[track_caller]
    fn self_attention(&self, width: usize, heads: usize) -> Result<MultiHeadAttention> {
        let (kv_heads, rotary) = (self.kv_heads, self.rotary);
        let options = MultiHeadOptions { bias: self.bias, dropout: self.dropout, kv_heads, rotary };
        MultiHeadAttention::try_with_options(width, heads, options)
    }

    #[track_caller]
    fn attention_to_memory(&self, width: usize, heads: usize) -> Result<MultiHeadAttention> {
        let options =
            MultiHeadOptions { bias: self.bias, dropout: self.dropout, ..MultiHeadOptions::default() };
        MultiHeadAttention::try_with_options(width, heads, options)
    }

    #[track_caller]
    fn linears(&self, width: usize) -> [Linear; 2] {
        let inner = self.dim_feedforward;
        [Linear::new(width, inner, self.bias), Linear::new(inner, width, self.bias)]
    }

    #[track_caller]
    fn norm(&self, width: usize) -> LayerNorm {
        let norm = LayerNorm::new(width).with_eps(self.layer_norm_eps);
        if self.bias { norm } else { norm.without_bias() }
    }

    /// One part of a layer, normalized and added to what goes in.
    fn residual(
        &self,
        x: &Tensor,
        norm: &LayerNorm,
        dropout: &Dropout,
        part: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        if self.norm_first {
            return x.try_add(&dropout.try_forward(&part(&norm.try_forward(x)?)?)?);
        }
        norm.try_forward(&x.try_add(&dropout.try_forward(&part(x)?)?)?)
    }

    fn feed_forward(&self, x: &Tensor, linears: [&Linear; 2], dropout: &Dropout) -> Result<Tensor> {
        let x = linears[0].try_forward(x)?;
        let x = match self.activation {
            FeedForwardActivation::Relu => x.try_relu()?,
            FeedForwardActivation::Gelu => x.try_gelu()?,
        };
        linears[1].try_forward(&dropout.try_forward(&x)?)
    }

    /// `x` with the batch first, or what had it first as the user wants it.
    fn turned(&self, x: &Tensor) -> Result<Tensor> {
        if self.batch_first || x.rank() < 3 { Ok(x.clone()) } else { x.try_transpose(0, 1) }
    }

    fn described(&self, attention: &MultiHeadAttention) -> String {
        let first = if self.norm_first { ", norm first" } else { "" };
        format!("{}, feed-forward {}{first}", attention.describe(), self.dim_feedforward)
    }
}
