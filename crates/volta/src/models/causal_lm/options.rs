//! What a model of Llama's family looks like: sizes, norms, positions, and what its relatives do otherwise.

use super::rotary::RotaryOptions;
use crate::error::{Result, bail};

/// What normalizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NormKind {
    /// Root mean square norm.
    #[default]
    Rms,
    /// Layer norm, with a shift.
    Layer,
}

/// What the gate of a feed-forward part goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Gate {
    /// SwiGLU.
    #[default]
    Silu,
    /// GeGLU with the exact GELU.
    Gelu,
    /// GeGLU with GELU by the hyperbolic tangent.
    GeluTanh,
}

/// The shape of a [`CausalLm`](super::CausalLm).
///
/// The default is a small Llama; every relative is the same with other values.
#[derive(Clone, Debug, PartialEq)]
pub struct CausalLmOptions {
    /// How many tokens there are.
    pub vocabulary: usize,
    /// The most tokens it sees at once.
    pub context: usize,
    /// Blocks.
    pub layers: usize,
    /// The width of a token's vector.
    pub width: usize,
    /// The width between the products of a feed-forward part.
    pub hidden: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values, each shared by a group of heads of queries.
    pub kv_heads: usize,
    /// The width of a head; `heads` times this need not be `width`.
    pub head_width: usize,
    /// What normalizes.
    pub norm: NormKind,
    /// Keeps a norm's divisor from zero.
    pub norm_eps: f64,
    /// What is added to an RMS norm's factors: 1 in Gemma.
    pub norm_offset: f64,
    /// Whether the results of attention and feed-forward parts are normalized as well, as in Gemma 2 and 3.
    pub post_norms: bool,
    /// Whether each head's queries and keys are normalized, as in Qwen 3 and Gemma 3.
    pub qk_norm: bool,
    /// What the gate goes through.
    pub gate: Gate,
    /// Whether queries, keys and values have a bias.
    pub qkv_bias: bool,
    /// Whether what follows attention has a bias.
    pub output_bias: bool,
    /// Whether the feed-forward parts have biases.
    pub mlp_bias: bool,
    /// Whether queries, keys and values are one product, and gate and up another, as in Phi-3.
    pub fused: bool,
    /// Whether the last product shares its weight with the tokens' vectors.
    pub tied: bool,
    /// What tokens' vectors are multiplied by: the root of the width in Gemma.
    pub embedding_scale: f64,
    /// What scores are multiplied by; one over the root of the head's width unless given.
    pub attention_scale: Option<f64>,
    /// Scores become c · tanh(score / c).
    pub attention_softcap: Option<f64>,
    /// Logits become c · tanh(logit / c).
    pub logit_softcap: Option<f64>,
    /// Rotations of queries and keys.
    pub rotary: RotaryOptions,
    /// Those of layers with a window, if they differ.
    pub window_rotary: Option<RotaryOptions>,
    /// How many positions layers with a window see, their own included.
    pub window: Option<usize>,
    /// Which layers have the window.
    pub windowed: Vec<bool>,
}

impl Default for CausalLmOptions {
    fn default() -> CausalLmOptions {
        CausalLmOptions {
            vocabulary: 256,
            context: 128,
            layers: 2,
            width: 64,
            hidden: 176,
            heads: 4,
            kv_heads: 2,
            head_width: 16,
            norm: NormKind::Rms,
            norm_eps: 1e-5,
            norm_offset: 0.0,
            post_norms: false,
            qk_norm: false,
            gate: Gate::Silu,
            qkv_bias: false,
            output_bias: false,
            mlp_bias: false,
            fused: false,
            tied: false,
            embedding_scale: 1.0,
            attention_scale: None,
            attention_softcap: None,
            logit_softcap: None,
            rotary: RotaryOptions::new(10_000.0, 16),
            window_rotary: None,
            window: None,
            windowed: Vec::new(),
        }
    }
}

impl CausalLmOptions {
    /// An error that names what cannot be.
    pub(super) fn check(&self) -> Result<()> {
        for (name, value) in [
            ("vocabulary", self.vocabulary),
            ("context", self.context),
            ("layers", self.layers),
            ("width", self.width),
            ("hidden", self.hidden),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("head_width", self.head_width),
            ("window", self.window.unwrap_or(1)),
        ] {
            if value == 0 || i32::try_from(value).is_err() {
                bail!(Argument, "{name} is {value}: it must be 1 to {}", i32::MAX);
            }
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let (heads, kv_heads) = (self.heads, self.kv_heads);
            bail!(Argument, "{heads} heads cannot share {kv_heads} heads of keys and values evenly");
        }
        for rotary in [Some(&self.rotary), self.window_rotary.as_ref()].into_iter().flatten() {
            rotary.check(self.head_width)?;
        }
        for (name, value) in [
            ("norm_eps", Some(self.norm_eps)),
            ("attention_scale", self.attention_scale),
            ("attention_softcap", self.attention_softcap),
            ("logit_softcap", self.logit_softcap),
            ("embedding_scale", Some(self.embedding_scale)),
        ] {
            if value.is_some_and(|x| !(x > 0.0 && x.is_finite())) {
                bail!(Argument, "{name} is {value:?}: it must be more than 0 and finite");
            }
        }
        Ok(())
    }

    /// The window of a layer, if it has one.
    pub(super) fn window_of(&self, layer: usize) -> Option<usize> {
        self.window.filter(|_| self.windowed.get(layer).copied().unwrap_or(false))
    }
}
