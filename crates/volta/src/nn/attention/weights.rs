//! The weights of attention, to be looked at: what the kernels that compute attention never store.

use super::MultiHeadAttention;
use crate::autograd::no_grad;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::nn::call::{layer, misuse};
use crate::tensor::Tensor;

impl MultiHeadAttention {
    /// How much each position of `x` (batch, length, width) looks at each before it and at itself, in one head: (batch, length,
    /// length), whose rows sum to 1. Nothing is dropped, and nothing is recorded for gradients.
    ///
    /// ```
    /// use volta::{MultiHeadAttention, Tensor};
    /// let attention = MultiHeadAttention::new(32, 4);
    /// let weights = attention.causal_weights(&Tensor::randn([2, 5, 32]), 3);
    /// assert_eq!(weights.shape()[..], [2, 5, 5]);
    /// assert_eq!(weights.narrow(1, 0, 1).to_vec::<f32>()[..5], [1., 0., 0., 0., 0.]);
    /// ```
    #[track_caller]
    pub fn causal_weights(&self, x: &Tensor, head: usize) -> Tensor {
        self.try_causal_weights(x, head).unwrap_or_else(|e| e.raise())
    }

    /// [`causal_weights`](Self::causal_weights) that returns its error.
    #[track_caller]
    pub fn try_causal_weights(&self, x: &Tensor, head: usize) -> Result<Tensor> {
        if head >= self.heads {
            let message = format!("there is no head {head}: there are {}, from 0 on", self.heads);
            return Err(misuse("MultiHeadAttention", ErrorKind::Argument, message));
        }
        layer(self, || {
            no_grad(|| {
                self.check(x, x, x)?;
                let [q, k, _] = self.project(x, x, x)?;
                let (q, k) = match self.rotary {
                    Some(rotary) => (rotary.try_apply(&q, 0)?, rotary.try_apply(&k, 0)?),
                    None => (q, k),
                };
                let one =
                    |t: &Tensor, head| t.try_narrow(1, head, 1)?.try_squeeze(1)?.try_to_dtype(DType::F32);
                let q = one(&q, head)?;
                let k = one(&k, head / (self.heads / self.kv_heads))?;
                let scale = 1.0 / (q.size(2) as f64).sqrt();
                let scores = q.try_matmul(&k.try_transpose(1, 2)?)?.try_mul(scale)?;
                let length = x.size(1);
                let later =
                    Tensor::try_full([length, length], 1.0)?.try_triu(1)?.try_to_device(x.device())?;
                let hidden = later.try_mul(f64::from(f32::MIN))?;
                scores.try_add(&hidden)?.try_softmax(-1)
            })
        })
    }
}
