//! Llama and its relatives, from one description: Llama 2 and 3, SmolLM 2, Qwen 2 to 3, Mistral, Gemma 1 to 3, Phi-3, StableLM.
//!
//! `options` says what a model looks like, `hugging_face` reads that from a `config.json`, and `gguf` from a GGUF file, which `gguf_write` writes. A model is
//! `block`s of `attention` and feed-forward parts, with `projection`s, `norm`s and the `rotary` positions that one pass shares; `cache` is what it
//! remembers while it writes, `batch` goes on with texts of any lengths at once. Parameters have Hugging Face's names. A matrix is a `weight`, of
//! floats or in blocks, which `blocks` puts into a model that is read. `packed` is the loss of several texts in a row.

mod attention;
mod batch;
mod block;
mod blocks;
mod cache;
mod gguf;
#[cfg(not(target_arch = "wasm32"))]
mod gguf_write;
mod hugging_face;
mod norm;
mod options;
mod packed;
mod projection;
mod rotary;
mod weight;

pub use cache::CausalLmCache;
pub use options::{CausalLmOptions, Gate, NormKind};
pub use packed::IGNORED;
pub use rotary::{RotaryOptions, RotaryScaling};
pub use weight::WeightStorage;

use crate::autograd::no_grad;
use crate::call::Call;
use crate::default_device::with_device;
use crate::device::Device;
use crate::error::{Result, bail};
use crate::functional::{
    CrossEntropyOptions, LinearCrossEntropyOptions, Reduction, try_cross_entropy_with,
    try_linear_cross_entropy_with,
};
use crate::nn::{KvCache, Module, Visitor, init, layer};
use crate::tensor::Tensor;
use attention::Sight;
use block::Block;
use norm::ScaledNorm;
pub(super) use projection::{Adapter, row_lengths};
use projection::{DEVIATION, Projection};
use rotary::{Frequencies, Rotation};
use weight::Table;
pub(super) use weight::Weight;

/// Everything but the head.
#[derive(Module)]
#[module(no_forward)]
struct Body {
    embed_tokens: Table,
    layers: Vec<Block>,
    norm: ScaledNorm,
}

/// Where the positions of a pass are, and what they see, for all layers.
struct View {
    full: Rotation,
    near: Option<Rotation>,
    all: Sight,
    window: Sight,
    /// Whether keys are looked for in the cache.
    in_cache: bool,
}

/// A language model of Llama's family: tokens in, the next token's logits out.
///
/// ```
/// use volta::models::{CausalLm, CausalLmOptions};
/// use volta::{Module, Tensor};
/// let model = CausalLm::new(CausalLmOptions { vocabulary: 65, tied: true, ..CausalLmOptions::default() });
/// let tokens = Tensor::randint(0, 65, [2, 32]);
/// assert_eq!(model.forward(&tokens).shape()[..], [2, 32, 65]);
/// assert!(model.state_dict().get("model.layers.0.self_attn.q_proj.weight").is_some());
/// let mut cache = model.cache(2, 32);
/// assert_eq!(model.next(&tokens, &mut cache).shape()[..], [2, 65]);
/// ```
pub struct CausalLm {
    /// Its shape.
    pub options: CausalLmOptions,
    body: Body,
    /// None if it shares the tokens' vectors.
    head: Option<Projection>,
    rotary: Frequencies,
    window_rotary: Option<Frequencies>,
}

impl CausalLm {
    /// With small random values.
    #[track_caller]
    pub fn new(options: CausalLmOptions) -> CausalLm {
        CausalLm::try_new(options).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(options: CausalLmOptions) -> Result<CausalLm> {
        let _call = Call::enter("CausalLm");
        options.check()?;
        let o = &options;
        let table = init::normal([o.vocabulary, o.width], DEVIATION);
        Ok(CausalLm {
            body: Body {
                embed_tokens: Table { weight: Weight::Floats(table) },
                layers: (0..o.layers).map(|index| Block::new(o, index)).collect(),
                norm: ScaledNorm::new(o.width, o),
            },
            head: (!o.tied).then(|| Projection::new(o.width, o.vocabulary, false)),
            rotary: Frequencies::new(o.rotary.clone()),
            window_rotary: o.window_rotary.clone().map(Frequencies::new),
            options,
        })
    }

    /// The layers of attention and feed-forward parts that multiply by a weight, with their names.
    pub(super) fn projections(&mut self) -> Vec<(String, &mut Projection)> {
        let layers = self.body.layers.iter_mut().enumerate();
        layers.flat_map(|(k, block)| block.projections(k)).collect()
    }

    /// Where its parameters are.
    pub fn device(&self) -> Device {
        self.body.embed_tokens.weight.device()
    }

    /// An empty memory of `capacity` positions for generating `batch` texts at once.
    #[track_caller]
    pub fn cache(&self, batch: usize, capacity: usize) -> CausalLmCache {
        with_device(self.device(), || {
            CausalLmCache(self.body.layers.iter().map(|b| b.self_attn.cache(batch, capacity)).collect())
        })
    }

    /// The mean cross-entropy of every next token: both are integers of (batch, length).
    #[track_caller]
    pub fn loss(&self, tokens: &Tensor, next: &Tensor) -> Tensor {
        self.try_loss(tokens, next).unwrap_or_else(|e| e.raise())
    }

    /// [`loss`](Self::loss) that returns its error.
    #[track_caller]
    pub fn try_loss(&self, tokens: &Tensor, next: &Tensor) -> Result<Tensor> {
        let x = self.hidden(tokens, None, None)?;
        self.loss_of(&x, next, Reduction::Mean)
    }

    /// The losses of what the head makes of `x`, for the tokens that follow.
    fn loss_of(&self, x: &Tensor, next: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let loss = CrossEntropyOptions { reduction, ..CrossEntropyOptions::default() };
        if self.options.logit_softcap.is_some() {
            let rows = next.numel();
            let logits = self.logits(x)?.try_reshape([rows, self.options.vocabulary])?;
            let losses = try_cross_entropy_with(&logits, &next.try_reshape([rows])?, loss)?;
            return if reduction == Reduction::None { losses.try_reshape(next.shape()) } else { Ok(losses) };
        }
        // A part of the vocabulary at a time: the logits of all positions would take most of the memory.
        let options = LinearCrossEntropyOptions { loss, ..LinearCrossEntropyOptions::default() };
        try_linear_cross_entropy_with(x, &self.head_weight().floats()?, next, options)
    }

    /// The logits (batch, vocabulary) of what follows `tokens` (batch, length), which follow what is in the cache.
    #[track_caller]
    pub fn next(&self, tokens: &Tensor, cache: &mut CausalLmCache) -> Tensor {
        self.try_next(tokens, cache, tokens.size(-1)).unwrap_or_else(|e| e.raise())
    }

    /// The logits (batch, vocabulary) of what follows the first `count` of `tokens` (batch, length), which follow what is in the
    /// cache. What is behind these is forgotten: a text may be filled up to a length that has a plan already.
    #[track_caller]
    pub fn try_next(&self, tokens: &Tensor, cache: &mut CausalLmCache, count: usize) -> Result<Tensor> {
        no_grad(|| {
            let start = cache.len();
            if tokens.rank() != 2 || count == 0 || count > tokens.size(1) {
                let _call = Call::enter("CausalLm");
                bail!(
                    Shape,
                    "{count} tokens of {}: (batch, length) with one at least is needed",
                    tokens.shape()
                );
            }
            let x = self.hidden(tokens, Some(&mut *cache), None)?;
            cache.truncate(start + count);
            // The place is an argument of the plan, where a view's beginning would be a part of it.
            let last = with_device(x.device(), || Tensor::try_from_vec(vec![count as i32 - 1], [1]))?;
            let last = if x.size(1) == 1 { x } else { x.try_index_select(1, &last)? };
            self.logits(&last.try_squeeze(1)?)
        })
    }

    /// What the head reads, of (batch, length, width). Without a cache, tokens of different `segments` do not see each other.
    fn hidden(
        &self,
        tokens: &Tensor,
        cache: Option<&mut CausalLmCache>,
        segments: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (shape, o) = (tokens.shape(), &self.options);
        let start = cache.as_ref().map_or(0, |cache| cache.len());
        if shape.rank() != 2 || start + shape[1] > o.context {
            let _call = Call::enter("CausalLm");
            bail!(
                Shape,
                "tokens of {shape} after {start}: (batch, length) is needed, of {} in all at most",
                o.context
            );
        }
        let length = shape[1];
        let x = self.embedded(tokens)?;
        let device = x.device();
        let full = self.rotary.rotation(device, start, length)?;
        let near = self.window_rotary.as_ref().map(|f| f.rotation(device, start, length)).transpose()?;
        // A text's beginning looks at itself alone, and not at the room behind it.
        let in_cache = cache.is_some() && (start > 0 || length == 1);
        let capacity = cache.as_ref().map_or(0, |cache| cache.capacity());
        let sight = |window| match (in_cache, segments) {
            (true, _) => Sight::of(&x, start, length, capacity, window),
            (false, Some(segments)) => Sight::within(segments, window),
            (false, None) => Sight::among(&x, length, window),
        };
        let view = View { full, near, all: sight(None)?, window: sight(o.window)?, in_cache };
        self.through(x, &view, cache)
    }

    /// What the head reads, of tokens' vectors that passed all blocks.
    fn through(&self, mut x: Tensor, view: &View, cache: Option<&mut CausalLmCache>) -> Result<Tensor> {
        let mut caches: Vec<Option<&mut KvCache>> = match cache {
            Some(cache) => cache.0.iter_mut().map(Some).collect(),
            None => self.body.layers.iter().map(|_| None).collect(),
        };
        for (block, cache) in self.body.layers.iter().zip(&mut caches) {
            let (rotation, sight) = match block.windowed {
                true => (view.near.as_ref().unwrap_or(&view.full), &view.window),
                false => (&view.full, &view.all),
            };
            x = block.try_pass(&x, rotation, sight, cache.take(), view.in_cache)?;
        }
        self.body.norm.try_forward(&x)
    }

    /// The vectors of tokens.
    fn embedded(&self, tokens: &Tensor) -> Result<Tensor> {
        let x = self.body.embed_tokens.try_forward(tokens)?;
        let scale = self.options.embedding_scale;
        if scale == 1.0 { Ok(x) } else { x.try_mul(scale) }
    }

    fn head_weight(&self) -> &Weight {
        self.head.as_ref().map_or(&self.body.embed_tokens.weight, |head| &head.weight)
    }

    fn logits(&self, x: &Tensor) -> Result<Tensor> {
        let logits = match &self.head {
            Some(head) => head.try_forward(x)?,
            None => self.body.embed_tokens.weight.linear(x, None)?,
        };
        match self.options.logit_softcap {
            Some(cap) => logits.try_div(cap)?.try_tanh()?.try_mul(cap),
            None => Ok(logits),
        }
    }
}

impl Module for CausalLm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    /// Logits (batch, length, vocabulary) for integers of (batch, length).
    #[track_caller]
    fn try_forward(&self, tokens: &Tensor) -> Result<Tensor> {
        layer(self, || self.logits(&self.hidden(tokens, None, None)?))
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("model", &self.body);
        visitor.field("lm_head", &self.head);
    }

    fn describe(&self) -> String {
        let o = &self.options;
        let (layers, heads, width) = (o.layers, o.heads, o.width);
        format!("{layers} layers, {heads} heads on {}, width {width}, context {}", o.kv_heads, o.context)
    }
}
