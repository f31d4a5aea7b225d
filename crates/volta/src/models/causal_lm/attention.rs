//! Self-attention with rotary positions, grouped queries, windows and soft caps.

use super::norm::ScaledNorm;
use super::options::CausalLmOptions;
use super::projection::Projection;
use super::rotary::Rotation;
use crate::dtype::DType;
use crate::error::Result;
use crate::nn::{KvCache, Module, grouped_attention, layer};
use crate::shape::Shape;
use crate::tensor::{AttentionOptions, Tensor};

/// Which keys the queries of a pass see.
pub(super) struct Sight {
    /// Each query the keys up to its own place, all of them new.
    causal: bool,
    /// Bools of (queries, keys), or of (batch, 1, queries, keys).
    mask: Option<Tensor>,
}

impl Sight {
    /// Of `length` new positions that attend to each other alone.
    pub fn among(like: &Tensor, length: usize, window: Option<usize>) -> Result<Sight> {
        match window.filter(|&window| window < length) {
            None => Ok(Sight { causal: true, mask: None }),
            window => Sight::of(like, 0, length, length, window),
        }
    }

    /// Of positions whose `segments`, integers of (batch, length), say what belongs together: each sees those of its own segment up to
    /// itself.
    pub fn within(segments: &Tensor, window: Option<usize>) -> Result<Sight> {
        let length = segments.size(1);
        let before =
            Sight::of(segments, 0, length, length, window)?.mask.expect("a sight of a cache has a mask");
        let together = segments.try_unsqueeze(2)?.try_eq(&segments.try_unsqueeze(1)?)?;
        let seen = together.try_logical_and(&before)?.try_unsqueeze(1)?;
        Ok(Sight { causal: false, mask: Some(seen) })
    }

    /// Of `length` positions from `start` on that attend to a cache of `keys` positions.
    pub fn of(
        like: &Tensor,
        start: usize,
        length: usize,
        keys: usize,
        window: Option<usize>,
    ) -> Result<Sight> {
        let shape = Shape::new(&[length, keys])?;
        let [query, key] = [0, 1].map(|axis| like.index_rule(axis, shape, DType::I32));
        Sight::up_to(&query.try_add(start)?, &key, keys, window)
    }

    /// Of one position each of a batch, (batch, 1, 1, 1), that attend to a cache of `keys` positions.
    pub fn at(places: &Tensor, keys: usize, window: Option<usize>) -> Result<Sight> {
        let shape = Shape::new(&[places.size(0), 1, 1, keys])?;
        Sight::up_to(places, &places.index_rule(3, shape, DType::I32), keys, window)
    }

    fn up_to(query: &Tensor, key: &Tensor, keys: usize, window: Option<usize>) -> Result<Sight> {
        let mut seen = key.try_le(query)?;
        if let Some(window) = window.filter(|&window| window < keys) {
            seen = seen.try_logical_and(&key.try_add(window)?.try_gt(query)?)?;
        }
        Ok(Sight { causal: false, mask: Some(seen) })
    }
}

/// Attention of a layer. Its parameters have Hugging Face's names; `qkv_proj` stands for the three before it where they are one.
#[derive(Module)]
#[module(no_forward)]
pub(super) struct SelfAttention {
    pub q_proj: Option<Projection>,
    pub k_proj: Option<Projection>,
    pub v_proj: Option<Projection>,
    pub qkv_proj: Option<Projection>,
    pub o_proj: Projection,
    q_norm: Option<ScaledNorm>,
    k_norm: Option<ScaledNorm>,
    heads: usize,
    kv_heads: usize,
    head_width: usize,
    scale: f64,
    softcap: Option<f64>,
}

impl SelfAttention {
    pub fn new(o: &CausalLmOptions) -> SelfAttention {
        let (q, kv) = (o.heads * o.head_width, o.kv_heads * o.head_width);
        let apart = |rows| (!o.fused).then(|| Projection::new(o.width, rows, o.qkv_bias));
        let norm = || o.qk_norm.then(|| ScaledNorm::rms(o.head_width, o));
        SelfAttention {
            q_proj: apart(q),
            k_proj: apart(kv),
            v_proj: apart(kv),
            qkv_proj: o.fused.then(|| Projection::new(o.width, q + 2 * kv, o.qkv_bias)),
            o_proj: Projection::new(q, o.width, o.output_bias),
            q_norm: norm(),
            k_norm: norm(),
            heads: o.heads,
            kv_heads: o.kv_heads,
            head_width: o.head_width,
            scale: o.attention_scale.unwrap_or(1.0 / (o.head_width as f64).sqrt()),
            softcap: o.attention_softcap,
        }
    }

    /// An empty cache for so many texts and positions.
    pub fn cache(&self, batch: usize, capacity: usize) -> KvCache {
        KvCache::new([batch, self.kv_heads, capacity, self.head_width], self.o_proj.weight.dtype())
    }

    /// What `x` of (batch, length, width) finds. With a cache the new keys go into it, and `in_cache` says that they are looked for
    /// there.
    pub fn attend(
        &self,
        x: &Tensor,
        rotation: &Rotation,
        sight: &Sight,
        cache: Option<&mut KvCache>,
        in_cache: bool,
    ) -> Result<Tensor> {
        layer(self, || {
            let [batch, length] = [x.size(0), x.size(1)];
            let [q, k, v] = self.project(x)?;
            let normed = |norm: &Option<ScaledNorm>, t: Tensor| match norm {
                Some(norm) => norm.try_forward(&t),
                None => Ok(t),
            };
            let q = rotation.apply(&normed(&self.q_norm, q)?)?;
            let k = rotation.apply(&normed(&self.k_norm, k)?)?;
            let found = match cache {
                None => self.look(&q, &k, &v, sight)?,
                Some(cache) => {
                    cache.append(&k, &v)?;
                    if in_cache {
                        let wide = |t: &Tensor| t.try_to_dtype(q.dtype());
                        self.look(&q, &wide(&cache.keys)?, &wide(&cache.values)?, sight)?
                    } else {
                        self.look(&q, &k, &v, sight)?
                    }
                }
            };
            let joined = found.try_transpose(1, 2)?;
            self.o_proj.try_forward(&joined.try_reshape([batch, length, self.heads * self.head_width])?)
        })
    }

    /// Queries, keys and values of (batch, heads, length, width of a head).
    fn project(&self, x: &Tensor) -> Result<[Tensor; 3]> {
        let heads = |t: Tensor, heads| t.try_unflatten(-1, [heads, self.head_width])?.try_transpose(1, 2);
        let [h, g] = [self.heads, self.kv_heads];
        match (&self.q_proj, &self.k_proj, &self.v_proj, &self.qkv_proj) {
            (Some(q), Some(k), Some(v), _) => {
                Ok([heads(q.try_forward(x)?, h)?, heads(k.try_forward(x)?, g)?, heads(v.try_forward(x)?, g)?])
            }
            (.., Some(all)) => {
                let all = heads(all.try_forward(x)?, h + 2 * g)?;
                Ok([all.try_narrow(1, 0, h)?, all.try_narrow(1, h, g)?, all.try_narrow(1, h + g, g)?])
            }
            _ => unreachable!("queries, keys and values are made apart or together"),
        }
    }

    fn look(&self, q: &Tensor, k: &Tensor, v: &Tensor, sight: &Sight) -> Result<Tensor> {
        let Some(cap) = self.softcap else {
            let mask = sight.mask.as_ref();
            let options =
                AttentionOptions { causal: sight.causal, mask, dropout: 0.0, scale: Some(self.scale) };
            return grouped_attention(q, k, v, options);
        };
        // Scores are capped before they are hidden, which only the formula can do.
        let group = self.heads / self.kv_heads;
        let spread = |t: &Tensor| t.try_repeat_interleave(group, Some(1));
        let scores = q.try_matmul(&spread(k)?.try_transpose(-2, -1)?)?;
        let scores = scores.try_mul(self.scale / cap)?.try_tanh()?.try_mul(cap)?;
        let mask = match &sight.mask {
            Some(mask) => mask.clone(),
            None => {
                let made = Sight::of(q, 0, q.size(2), k.size(2), None)?;
                made.mask.expect("a sight of a cache has a mask")
            }
        };
        let weights = mask.try_where_(&scores, f64::NEG_INFINITY)?.try_softmax(-1)?;
        weights.try_matmul(&spread(v)?)
    }
}
