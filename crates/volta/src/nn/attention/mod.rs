//! Multi-head attention: `mask` says which keys a query sees, `cache` holds keys and values while text is generated.

mod cache;
mod mask;
mod weights;

pub use cache::KvCache;
pub use mask::AttentionMask;

use super::call::{forward, layer, misuse, on_device};
use super::{Linear, Mode, Module, Rotary, Visitor, init};
use crate::autograd::no_grad;
use crate::default_device::with_device;
use crate::device::Device;
use crate::error::{ErrorKind, Result};
use crate::tensor::{AttentionOptions, Tensor};

/// Options of [`MultiHeadAttention`].
#[derive(Clone, Copy, Debug)]
pub struct MultiHeadOptions {
    /// Whether the projections add a bias.
    pub bias: bool,
    /// The probability of dropping a weight while training.
    pub dropout: f64,
    /// Heads of keys and values, each shared by a group of heads of queries; as many as those unless given.
    pub kv_heads: Option<usize>,
    /// Positions as rotations of queries and keys. It goes with attention of a sequence to itself.
    pub rotary: Option<Rotary>,
}

impl Default for MultiHeadOptions {
    fn default() -> Self {
        MultiHeadOptions { bias: true, dropout: 0.0, kv_heads: None, rotary: None }
    }
}

/// Attention of several heads over (batch, length, width), or the same without the batch.
///
/// Parameters are laid out as PyTorch's. Masks are not: here, as in
/// [`scaled_dot_product_attention`](Tensor::scaled_dot_product_attention), true means that a key is seen.
///
/// ```
/// use volta::{AttentionMask, Module, MultiHeadAttention, Tensor};
/// let attention = MultiHeadAttention::new(32, 4);
/// let (x, memory) = (Tensor::randn([2, 5, 32]), Tensor::randn([2, 9, 32]));
/// let alone = attention.attend(&x, &x, &x, AttentionMask::causal());
/// let across = attention.attend(&x, &memory, &memory, AttentionMask::default());
/// assert_eq!((alone.shape(), across.shape()), (x.shape(), x.shape()));
/// ```
pub struct MultiHeadAttention {
    /// Rows for queries, then for keys, then for values × width.
    pub in_proj_weight: Tensor,
    /// As many numbers as the weight has rows.
    pub in_proj_bias: Option<Tensor>,
    /// What the heads' results go through.
    pub out_proj: Linear,
    /// How many heads there are.
    pub heads: usize,
    /// How many heads keys and values have.
    pub kv_heads: usize,
    /// The probability of dropping a weight while training.
    pub dropout: f64,
    /// Positions as rotations.
    pub rotary: Option<Rotary>,
    /// Whether it trains.
    pub mode: Mode,
}

impl MultiHeadAttention {
    /// Vectors of `width`, cut into `heads`.
    #[track_caller]
    pub fn new(width: usize, heads: usize) -> MultiHeadAttention {
        MultiHeadAttention::with_options(width, heads, MultiHeadOptions::default())
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(width: usize, heads: usize, device: Device) -> MultiHeadAttention {
        on_device(device, || MultiHeadAttention::new(width, heads))
    }

    /// With options.
    #[track_caller]
    pub fn with_options(width: usize, heads: usize, options: MultiHeadOptions) -> MultiHeadAttention {
        MultiHeadAttention::try_with_options(width, heads, options).unwrap_or_else(|e| e.raise())
    }

    /// [`with_options`](Self::with_options) that returns its error.
    #[track_caller]
    pub fn try_with_options(
        width: usize,
        heads: usize,
        options: MultiHeadOptions,
    ) -> Result<MultiHeadAttention> {
        let MultiHeadOptions { bias, dropout, kv_heads, rotary } = options;
        let kv_heads = kv_heads.unwrap_or(heads);
        let problem = if heads == 0 || !width.is_multiple_of(heads) {
            Some(format!("a width of {width} does not divide into {heads} heads"))
        } else if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            Some(format!("{heads} heads cannot share {kv_heads} heads of keys and values evenly"))
        } else if rotary.is_some() && !(width / heads).is_multiple_of(2) {
            Some(format!("heads of width {} cannot be rotated: it must be even", width / heads))
        } else {
            None
        };
        if let Some(message) = problem {
            return Err(misuse("MultiHeadAttention", ErrorKind::Argument, message));
        }
        let rows = width + 2 * kv_heads * (width / heads);
        let out_proj = Linear::new(width, width, bias);
        if let Some(bias) = &out_proj.bias {
            bias.try_assign(&bias.zeros_like())?;
        }
        Ok(MultiHeadAttention {
            in_proj_weight: init::xavier_uniform([rows, width], width, rows),
            in_proj_bias: bias.then(|| init::zeros([rows])),
            out_proj,
            heads,
            kv_heads,
            dropout,
            rotary,
            mode: Mode::default(),
        })
    }

    /// What each query finds among the keys: `query`, `key` and `value` are (batch, length, width), or all without the
    /// batch.
    #[track_caller]
    pub fn attend(&self, query: &Tensor, key: &Tensor, value: &Tensor, mask: AttentionMask<'_>) -> Tensor {
        self.try_attend(query, key, value, mask).unwrap_or_else(|e| e.raise())
    }

    /// [`attend`](Self::attend) that returns its error.
    #[track_caller]
    pub fn try_attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        mask: AttentionMask<'_>,
    ) -> Result<Tensor> {
        layer(self, || {
            if query.rank() == 2 && key.rank() == 2 && value.rank() == 2 {
                // What was one tensor stays one.
                let like = |t: &Tensor, other: &Tensor, one: &Tensor| {
                    if t.is_same(other) { Ok(one.clone()) } else { t.try_unsqueeze(0) }
                };
                let q = query.try_unsqueeze(0)?;
                let k = like(key, query, &q)?;
                let v = like(value, key, &k)?;
                return self.batched(&q, &k, &v, mask)?.try_squeeze(0);
            }
            self.batched(query, key, value, mask)
        })
    }

    fn batched(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        mask: AttentionMask<'_>,
    ) -> Result<Tensor> {
        self.check(query, key, value)?;
        let [q, k, v] = self.project(query, key, value)?;
        let (q, k) = match self.rotary {
            Some(rotary) => (rotary.try_apply(&q, 0)?, rotary.try_apply(&k, 0)?),
            None => (q, k),
        };
        let seen = mask.combined(query.size(0), key.size(1))?;
        self.heads_together(&q, &k, &v, seen.as_ref(), mask.causal)
    }

    /// An empty [`KvCache`] for this layer, where its parameters are.
    #[track_caller]
    pub fn cache(&self, batch: usize, capacity: usize) -> KvCache {
        let width = self.in_proj_weight.size(1) / self.heads;
        with_device(self.in_proj_weight.device(), || {
            KvCache::new([batch, self.kv_heads, capacity, width], self.in_proj_weight.dtype())
        })
    }

    /// Causal attention of the next positions, `x` of (batch, length, width), to themselves and to all before them, whose
    /// keys and values are in the cache. For generation: nothing is recorded for gradients.
    #[track_caller]
    pub fn attend_cached(&self, x: &Tensor, cache: &mut KvCache) -> Tensor {
        self.try_attend_cached(x, cache).unwrap_or_else(|e| e.raise())
    }

    /// [`attend_cached`](Self::attend_cached) that returns its error.
    #[track_caller]
    pub fn try_attend_cached(&self, x: &Tensor, cache: &mut KvCache) -> Result<Tensor> {
        layer(self, || {
            no_grad(|| {
                self.check(x, x, x)?;
                let start = cache.len();
                let [q, k, v] = self.project(x, x, x)?;
                let (q, k) = match self.rotary {
                    Some(rotary) => (rotary.try_apply(&q, start)?, rotary.try_apply(&k, start)?),
                    None => (q, k),
                };
                cache.append(&k, &v)?;
                let (keys, values) =
                    (cache.keys.try_to_dtype(q.dtype())?, cache.values.try_to_dtype(q.dtype())?);
                let seen = mask::up_to(&q, start, cache.capacity())?;
                self.heads_together(&q, &keys, &values, Some(&seen), false)
            })
        })
    }

    fn check(&self, query: &Tensor, key: &Tensor, value: &Tensor) -> Result<()> {
        let (q, k, v) = (query.shape(), key.shape(), value.shape());
        let width = self.in_proj_weight.size(1);
        let is_batch = |s: &[usize]| s.len() == 3 && s[2] == width && s[0] == q[0];
        if !is_batch(&q) || !is_batch(&k) || !is_batch(&v) || k[1] != v[1] {
            let message = format!(
                "query {q}, key {k} and value {v}: (batch, length, {width}) are needed, keys and values of one length"
            );
            return Err(misuse("MultiHeadAttention", ErrorKind::Shape, message));
        }
        Ok(())
    }

    /// Queries, keys and values as (batch, heads, length, width of a head), in as few products as the operands allow.
    fn project(&self, query: &Tensor, key: &Tensor, value: &Tensor) -> Result<[Tensor; 3]> {
        let [h, g] = [self.heads, self.kv_heads];
        let cut = |t: &Tensor, from, count| t.try_narrow(1, from, count);
        if !key.is_same(value) {
            return Ok([self.part(query, 0, h)?, self.part(key, h, g)?, self.part(value, h + g, g)?]);
        }
        if !query.is_same(key) {
            let both = self.part(key, h, 2 * g)?;
            return Ok([self.part(query, 0, h)?, cut(&both, 0, g)?, cut(&both, g, g)?]);
        }
        let all = self.part(query, 0, h + 2 * g)?;
        Ok([cut(&all, 0, h)?, cut(&all, h, g)?, cut(&all, h + g, g)?])
    }

    /// The projection of `x` by the weight's rows of some heads.
    fn part(&self, x: &Tensor, first: usize, heads: usize) -> Result<Tensor> {
        let width = self.in_proj_weight.size(1) / self.heads;
        let cut = |t: &Tensor| {
            let (from, count) = (first * width, heads * width);
            if t.size(0) == count { Ok(t.clone()) } else { t.try_narrow(0, from, count) }
        };
        let bias = self.in_proj_bias.as_ref().map(cut).transpose()?;
        let y = x.try_linear(&cut(&self.in_proj_weight)?, bias.as_ref())?;
        y.try_unflatten(-1, [heads, width])?.try_transpose(1, 2)
    }

    fn heads_together(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        mask: Option<&Tensor>,
        causal: bool,
    ) -> Result<Tensor> {
        let [batch, length, width] = [q.size(0), q.size(2), q.size(3)];
        let dropout = if self.mode.is_training() { self.dropout } else { 0.0 };
        let options = AttentionOptions { causal, mask, dropout, scale: None };
        let found = grouped_attention(q, k, v, options)?;
        let joined = found.try_transpose(1, 2)?.try_reshape([batch, length, self.heads * width])?;
        self.out_proj.try_forward(&joined)
    }
}

/// Attention where each head of keys and values serves a group of heads of queries: all are (batch, heads, length, width).
pub(crate) fn grouped_attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    options: AttentionOptions<'_>,
) -> Result<Tensor> {
    let [batch, heads, length, width] = [0, 1, 2, 3].map(|axis| q.size(axis));
    let kv_heads = k.size(1);
    let group = heads / kv_heads;
    if group == 1 {
        return q.try_scaled_dot_product_attention(k, v, options);
    }
    if length == 1 && !options.causal && options.mask.is_none_or(|m| m.rank() <= 2 || m.size(-3) == 1) {
        // The heads that share keys stand side by side as queries, so that no key is copied.
        let side_by_side = q.try_reshape([batch, kv_heads, group, width])?;
        let found = side_by_side.try_scaled_dot_product_attention(k, v, options)?;
        return found.try_reshape([batch, heads, length, v.size(3)]);
    }
    let spread = |t: &Tensor| t.try_repeat_interleave(group, Some(1));
    q.try_scaled_dot_product_attention(&spread(k)?, &spread(v)?, options)
}

impl Module for MultiHeadAttention {
    forward!();

    /// Attention of `x` to itself, with nothing hidden.
    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        self.try_attend(x, x, x, AttentionMask::default())
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("in_proj_weight", &self.in_proj_weight);
        visitor.field("in_proj_bias", &self.in_proj_bias);
        visitor.field("out_proj", &self.out_proj);
        visitor.field("mode", &self.mode);
    }

    fn describe(&self) -> String {
        let mut text = format!("width {}, {} heads", self.in_proj_weight.size(1), self.heads);
        if self.kv_heads != self.heads {
            text += &format!(" on {}", self.kv_heads);
        }
        if self.rotary.is_some() {
            text += ", rotary";
        }
        text
    }
}
