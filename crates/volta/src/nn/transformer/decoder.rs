//! A layer of self-attention and attention to a memory.

use super::TransformerOptions;
use crate::device::Device;
use crate::error::{ErrorKind, Result};
use crate::nn::call::{forward, layer, misuse, on_device};
use crate::nn::{AttentionMask, Dropout, KvCache, LayerNorm, Linear, Module, MultiHeadAttention, Visitor};
use crate::tensor::Tensor;

/// Self-attention, attention to a memory (what an encoder gave), then two linear layers, over (batch, length, width).
pub struct TransformerDecoderLayer {
    /// Attention of the sequence to itself.
    pub self_attn: MultiHeadAttention,
    /// Attention to the memory.
    pub multihead_attn: MultiHeadAttention,
    /// The first linear layer.
    pub linear1: Linear,
    /// The second linear layer.
    pub linear2: Linear,
    /// The norm of self-attention.
    pub norm1: LayerNorm,
    /// The norm of attention to the memory.
    pub norm2: LayerNorm,
    /// The norm of the linear layers.
    pub norm3: LayerNorm,
    /// Dropout between the linear layers and of what is added to the input.
    pub dropout: Dropout,
    /// What it was made with.
    pub options: TransformerOptions,
}

impl TransformerDecoderLayer {
    /// Vectors of `width`, cut into `heads`.
    #[track_caller]
    pub fn new(width: usize, heads: usize) -> TransformerDecoderLayer {
        TransformerDecoderLayer::with_options(width, heads, TransformerOptions::default())
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(width: usize, heads: usize, device: Device) -> TransformerDecoderLayer {
        on_device(device, || TransformerDecoderLayer::new(width, heads))
    }

    /// With options.
    #[track_caller]
    pub fn with_options(width: usize, heads: usize, options: TransformerOptions) -> TransformerDecoderLayer {
        TransformerDecoderLayer::try_with_options(width, heads, options).unwrap_or_else(|e| e.raise())
    }

    /// [`with_options`](Self::with_options) that returns its error.
    #[track_caller]
    pub fn try_with_options(
        width: usize,
        heads: usize,
        options: TransformerOptions,
    ) -> Result<TransformerDecoderLayer> {
        let [linear1, linear2] = options.linears(width);
        Ok(TransformerDecoderLayer {
            self_attn: options.self_attention(width, heads)?,
            multihead_attn: options.attention_to_memory(width, heads)?,
            linear1,
            linear2,
            norm1: options.norm(width),
            norm2: options.norm(width),
            norm3: options.norm(width),
            dropout: Dropout::new(options.dropout),
            options,
        })
    }

    /// The output for a sequence and a memory, each with what is hidden in it.
    #[track_caller]
    pub fn run(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: AttentionMask<'_>,
        memory_mask: AttentionMask<'_>,
    ) -> Tensor {
        self.try_run(x, memory, mask, memory_mask).unwrap_or_else(|e| e.raise())
    }

    /// [`run`](Self::run) that returns its error.
    #[track_caller]
    pub fn try_run(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: AttentionMask<'_>,
        memory_mask: AttentionMask<'_>,
    ) -> Result<Tensor> {
        layer(self, || self.through(x, memory, memory_mask, |x| self.self_attn.try_attend(x, x, x, mask)))
    }

    /// The output for the next positions, which see all before them through the cache, and the memory; see
    /// [`MultiHeadAttention::attend_cached`].
    #[track_caller]
    pub fn run_cached(
        &self,
        x: &Tensor,
        memory: &Tensor,
        cache: &mut KvCache,
        memory_mask: AttentionMask<'_>,
    ) -> Tensor {
        self.try_run_cached(x, memory, cache, memory_mask).unwrap_or_else(|e| e.raise())
    }

    /// [`run_cached`](Self::run_cached) that returns its error.
    #[track_caller]
    pub fn try_run_cached(
        &self,
        x: &Tensor,
        memory: &Tensor,
        cache: &mut KvCache,
        memory_mask: AttentionMask<'_>,
    ) -> Result<Tensor> {
        layer(self, || {
            crate::no_grad(|| {
                self.through(x, memory, memory_mask, |x| self.self_attn.try_attend_cached(x, cache))
            })
        })
    }

    fn through(
        &self,
        x: &Tensor,
        memory: &Tensor,
        memory_mask: AttentionMask<'_>,
        attend: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (x, memory) = (self.options.turned(x)?, self.options.turned(memory)?);
        let x = self.options.residual(&x, &self.norm1, &self.dropout, attend)?;
        let x = self.options.residual(&x, &self.norm2, &self.dropout, |x| {
            self.multihead_attn.try_attend(x, &memory, &memory, memory_mask)
        })?;
        let x = self.options.residual(&x, &self.norm3, &self.dropout, |x| {
            self.options.feed_forward(x, [&self.linear1, &self.linear2], &self.dropout)
        })?;
        self.options.turned(&x)
    }
}

impl Module for TransformerDecoderLayer {
    forward!();

    /// An error: a decoder needs a memory, which [`run`](Self::run) takes.
    #[track_caller]
    fn try_forward(&self, _: &Tensor) -> Result<Tensor> {
        let message = "a decoder has no forward of one tensor: call run with a memory";
        Err(misuse("TransformerDecoderLayer", ErrorKind::Argument, message))
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("self_attn", &self.self_attn);
        visitor.field("multihead_attn", &self.multihead_attn);
        visitor.field("linear1", &self.linear1);
        visitor.field("linear2", &self.linear2);
        visitor.field("norm1", &self.norm1);
        visitor.field("norm2", &self.norm2);
        visitor.field("norm3", &self.norm3);
        visitor.field("dropout", &self.dropout);
    }

    fn describe(&self) -> String {
        self.options.described(&self.self_attn)
    }
}
