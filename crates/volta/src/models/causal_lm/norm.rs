//! The norms of a [`CausalLm`](super::CausalLm).

use super::options::{CausalLmOptions, NormKind};
use crate::error::Result;
use crate::nn::{Module, init, layer};
use crate::tensor::Tensor;

/// A norm over the last axis whose factors may be stored as differences from 1.
#[derive(Module)]
pub(super) struct ScaledNorm {
    weight: Tensor,
    bias: Option<Tensor>,
    eps: f64,
    offset: f64,
    #[module(skip)]
    kind: NormKind,
}

impl ScaledNorm {
    /// The norm of choice.
    pub fn new(width: usize, o: &CausalLmOptions) -> ScaledNorm {
        let bias = (o.norm == NormKind::Layer).then(|| init::zeros([width]));
        ScaledNorm { bias, kind: o.norm, ..ScaledNorm::rms(width, o) }
    }

    /// An RMS norm.
    pub fn rms(width: usize, o: &CausalLmOptions) -> ScaledNorm {
        let weight = if o.norm_offset == 0.0 { init::ones([width]) } else { init::zeros([width]) };
        ScaledNorm { weight, bias: None, eps: o.norm_eps, offset: o.norm_offset, kind: NormKind::Rms }
    }

    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    #[track_caller]
    pub fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let shape = [self.weight.size(0)];
            match self.kind {
                NormKind::Layer => x.try_layer_norm(shape, Some(&self.weight), self.bias.as_ref(), self.eps),
                NormKind::Rms if self.offset == 0.0 => x.try_rms_norm(shape, Some(&self.weight), self.eps),
                NormKind::Rms => x.try_rms_norm(shape, Some(&self.weight.try_add(self.offset)?), self.eps),
            }
        })
    }
}
