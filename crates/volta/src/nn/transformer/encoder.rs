//! A layer of self-attention.

use super::TransformerOptions;
use crate::device::Device;
use crate::error::Result;
use crate::nn::call::{forward, layer, on_device};
use crate::nn::{AttentionMask, Dropout, KvCache, LayerNorm, Linear, Module, MultiHeadAttention, Visitor};
use crate::tensor::Tensor;

/// Self-attention, then two linear layers, over (batch, length, width). With a causal mask it is the block of a GPT.
///
/// ```
/// use volta::{AttentionMask, Module, Tensor, TransformerEncoderLayer};
/// let layer = TransformerEncoderLayer::new(16, 4);
/// layer.eval();
/// let x = Tensor::randn([2, 7, 16]);
/// assert_eq!(layer.run(&x, AttentionMask::causal()).shape(), x.shape());
/// ```
pub struct TransformerEncoderLayer {
    /// Attention of the sequence to itself.
    pub self_attn: MultiHeadAttention,
    /// The first linear layer.
    pub linear1: Linear,
    /// The second linear layer.
    pub linear2: Linear,
    /// The norm of the attention.
    pub norm1: LayerNorm,
    /// The norm of the linear layers.
    pub norm2: LayerNorm,
    /// Dropout between the linear layers and of what is added to the input.
    pub dropout: Dropout,
    /// What it was made with.
    pub options: TransformerOptions,
}

impl TransformerEncoderLayer {
    /// Vectors of `width`, cut into `heads`.
    #[track_caller]
    pub fn new(width: usize, heads: usize) -> TransformerEncoderLayer {
        TransformerEncoderLayer::with_options(width, heads, TransformerOptions::default())
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(width: usize, heads: usize, device: Device) -> TransformerEncoderLayer {
        on_device(device, || TransformerEncoderLayer::new(width, heads))
    }

    /// With options.
    #[track_caller]
    pub fn with_options(width: usize, heads: usize, options: TransformerOptions) -> TransformerEncoderLayer {
        TransformerEncoderLayer::try_with_options(width, heads, options).unwrap_or_else(|e| e.raise())
    }

    /// [`with_options`](Self::with_options) that returns its error.
    #[track_caller]
    pub fn try_with_options(
        width: usize,
        heads: usize,
        options: TransformerOptions,
    ) -> Result<TransformerEncoderLayer> {
        let [linear1, linear2] = options.linears(width);
        Ok(TransformerEncoderLayer {
            self_attn: options.self_attention(width, heads)?,
            linear1,
            linear2,
            norm1: options.norm(width),
            norm2: options.norm(width),
            dropout: Dropout::new(options.dropout),
            options,
        })
    }

    /// The output for an input of which a part is hidden.
    #[track_caller]
    pub fn run(&self, x: &Tensor, mask: AttentionMask<'_>) -> Tensor {
        self.try_run(x, mask).unwrap_or_else(|e| e.raise())
    }

    /// [`run`](Self::run) that returns its error.
    #[track_caller]
    pub fn try_run(&self, x: &Tensor, mask: AttentionMask<'_>) -> Result<Tensor> {
        layer(self, || self.through(x, |x| self.self_attn.try_attend(x, x, x, mask)))
    }

    /// The output for the next positions, which see all before them through the cache; see
    /// [`MultiHeadAttention::attend_cached`].
    #[track_caller]
    pub fn run_cached(&self, x: &Tensor, cache: &mut KvCache) -> Tensor {
        self.try_run_cached(x, cache).unwrap_or_else(|e| e.raise())
    }

    /// [`run_cached`](Self::run_cached) that returns its error.
    #[track_caller]
    pub fn try_run_cached(&self, x: &Tensor, cache: &mut KvCache) -> Result<Tensor> {
        layer(self, || crate::no_grad(|| self.through(x, |x| self.self_attn.try_attend_cached(x, cache))))
    }

    fn through(&self, x: &Tensor, attend: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let x = self.options.turned(x)?;
        let x = self.options.residual(&x, &self.norm1, &self.dropout, attend)?;
        let x = self.options.residual(&x, &self.norm2, &self.dropout, |x| {
            self.options.feed_forward(x, [&self.linear1, &self.linear2], &self.dropout)
        })?;
        self.options.turned(&x)
    }
}

impl Module for TransformerEncoderLayer {
    forward!();

    /// Nothing is hidden.
    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        self.try_run(x, AttentionMask::default())
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("self_attn", &self.self_attn);
        visitor.field("linear1", &self.linear1);
        visitor.field("linear2", &self.linear2);
        visitor.field("norm1", &self.norm1);
        visitor.field("norm2", &self.norm2);
        visitor.field("dropout", &self.dropout);
    }

    fn describe(&self) -> String {
        self.options.described(&self.self_attn)
    }
}
