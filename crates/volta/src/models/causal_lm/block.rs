//! One block: attention and a gated feed-forward part, each behind a norm and added to what it was computed from.

use super::attention::{SelfAttention, Sight};
use super::norm::ScaledNorm;
use super::options::{CausalLmOptions, Gate};
use super::projection::Projection;
use super::rotary::Rotation;
use crate::error::Result;
use crate::nn::{KvCache, Module, layer};
use crate::tensor::Tensor;

/// down(gate(x) · up(x)). `gate_up_proj` stands for the two before it where they are one.
#[derive(Module)]
pub(super) struct FeedForward {
    pub gate_proj: Option<Projection>,
    pub up_proj: Option<Projection>,
    pub gate_up_proj: Option<Projection>,
    pub down_proj: Projection,
    hidden: usize,
    #[module(skip)]
    gate: Gate,
}

impl FeedForward {
    fn new(o: &CausalLmOptions) -> FeedForward {
        let apart = || (!o.fused).then(|| Projection::new(o.width, o.hidden, o.mlp_bias));
        FeedForward {
            gate_proj: apart(),
            up_proj: apart(),
            gate_up_proj: o.fused.then(|| Projection::new(o.width, 2 * o.hidden, o.mlp_bias)),
            down_proj: Projection::new(o.hidden, o.width, o.mlp_bias),
            hidden: o.hidden,
            gate: o.gate,
        }
    }

    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let (gate, up) = match (&self.gate_proj, &self.up_proj, &self.gate_up_proj) {
                (Some(gate), Some(up), _) => (gate.try_forward(x)?, up.try_forward(x)?),
                (.., Some(both)) => {
                    let both = both.try_forward(x)?;
                    (both.try_narrow(-1, 0, self.hidden)?, both.try_narrow(-1, self.hidden, self.hidden)?)
                }
                _ => unreachable!("gate and up are made apart or together"),
            };
            let gate = match self.gate {
                Gate::Silu => gate.try_silu()?,
                Gate::Gelu => gate.try_gelu()?,
                Gate::GeluTanh => gate.try_gelu_tanh()?,
            };
            self.down_proj.try_forward(&gate.try_mul(&up)?)
        })
    }
}

/// A block. Norms have Hugging Face's names, which differ with their number: of two, `post_attention_layernorm` stands before the
/// feed-forward part, of four behind attention.
#[derive(Module)]
#[module(no_forward)]
pub(super) struct Block {
    pub self_attn: SelfAttention,
    pub mlp: FeedForward,
    input_layernorm: ScaledNorm,
    post_attention_layernorm: ScaledNorm,
    pre_feedforward_layernorm: Option<ScaledNorm>,
    post_feedforward_layernorm: Option<ScaledNorm>,
    /// Whether it sees a window only.
    pub windowed: bool,
}

impl Block {
    pub fn new(o: &CausalLmOptions, index: usize) -> Block {
        let norm = || ScaledNorm::new(o.width, o);
        Block {
            self_attn: SelfAttention::new(o),
            mlp: FeedForward::new(o),
            input_layernorm: norm(),
            post_attention_layernorm: norm(),
            pre_feedforward_layernorm: o.post_norms.then(norm),
            post_feedforward_layernorm: o.post_norms.then(norm),
            windowed: o.window_of(index).is_some(),
        }
    }

    /// The layers that multiply by a weight, with their names in the model, where this block is the `k`-th.
    pub fn projections(&mut self, k: usize) -> Vec<(String, &mut Projection)> {
        let (attention, mlp) = (&mut self.self_attn, &mut self.mlp);
        let all = [
            ("self_attn.q_proj", attention.q_proj.as_mut()),
            ("self_attn.k_proj", attention.k_proj.as_mut()),
            ("self_attn.v_proj", attention.v_proj.as_mut()),
            ("self_attn.qkv_proj", attention.qkv_proj.as_mut()),
            ("self_attn.o_proj", Some(&mut attention.o_proj)),
            ("mlp.gate_proj", mlp.gate_proj.as_mut()),
            ("mlp.up_proj", mlp.up_proj.as_mut()),
            ("mlp.gate_up_proj", mlp.gate_up_proj.as_mut()),
            ("mlp.down_proj", Some(&mut mlp.down_proj)),
        ];
        let there = all.into_iter().filter_map(|(name, layer)| Some((name, layer?)));
        there.map(|(name, layer)| (format!("model.layers.{k}.{name}"), layer)).collect()
    }

    pub fn try_pass(
        &self,
        x: &Tensor,
        rotation: &Rotation,
        sight: &Sight,
        cache: Option<&mut KvCache>,
        in_cache: bool,
    ) -> Result<Tensor> {
        layer(self, || {
            let found = self.self_attn.attend(
                &self.input_layernorm.try_forward(x)?,
                rotation,
                sight,
                cache,
                in_cache,
            )?;
            let (Some(before), Some(behind)) =
                (&self.pre_feedforward_layernorm, &self.post_feedforward_layernorm)
            else {
                let x = x.try_add(&found)?;
                return x.try_add(&self.mlp.try_forward(&self.post_attention_layernorm.try_forward(&x)?)?);
            };
            let x = x.try_add(&self.post_attention_layernorm.try_forward(&found)?)?;
            x.try_add(&behind.try_forward(&self.mlp.try_forward(&before.try_forward(&x)?)?)?)
        })
    }
}
