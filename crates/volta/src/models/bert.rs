//! BERT: every token of a text looks at all others.

use super::config_json::Fields;
use crate::call::Call;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::nn::{Embedding, LayerNorm, Linear, Module, Visitor, init, layer};
use crate::shape::Shape;
use crate::tensor::{AttentionOptions, Tensor};
use serde_json::Value;

/// The shape of a [`Bert`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BertOptions {
    /// How many tokens there are.
    pub vocabulary: usize,
    /// The most tokens it sees at once.
    pub context: usize,
    /// Kinds of segments, of which the first is used.
    pub segments: usize,
    /// Blocks.
    pub layers: usize,
    /// Heads of attention.
    pub heads: usize,
    /// The width of a token's vector.
    pub width: usize,
    /// The width between the products of a feed-forward part.
    pub hidden: usize,
    /// Keeps a norm's divisor from zero.
    pub norm_eps: f64,
}

impl BertOptions {
    /// What a `config.json` of Hugging Face describes.
    ///
    /// # Errors
    /// A field that is missing, cannot be, or is not understood; the message names it.
    #[track_caller]
    pub fn from_config(json: &str) -> Result<BertOptions> {
        let _call = Call::enter("BertOptions::from_config");
        match serde_json::from_str(json) {
            Ok(value) => BertOptions::from_json(&value),
            Err(error) => bail!(Data, "config.json is no JSON: {error}"),
        }
    }

    pub(super) fn from_json(config: &Value) -> Result<BertOptions> {
        let f = Fields::of("config.json", config)?;
        if f.text("model_type")? != "bert" {
            return Err(f.wrong("model_type", "Volta encodes with bert"));
        }
        if f.text_if("hidden_act")?.is_some_and(|name| name != "gelu") {
            return Err(f.wrong("hidden_act", "Volta's BERT has gelu"));
        }
        if f.text_if("position_embedding_type")?.is_some_and(|name| name != "absolute") {
            return Err(f.wrong("position_embedding_type", "Volta's BERT has absolute positions"));
        }
        // A model without a head has nothing to tie.
        f.get("tie_word_embeddings");
        let options = BertOptions {
            vocabulary: f.size("vocab_size")?,
            context: f.size("max_position_embeddings")?,
            segments: f.size_if("type_vocab_size")?.unwrap_or(2),
            layers: f.size("num_hidden_layers")?,
            heads: f.size("num_attention_heads")?,
            width: f.size("hidden_size")?,
            hidden: f.size("intermediate_size")?,
            norm_eps: f.number_if("layer_norm_eps")?.unwrap_or(1e-12),
        };
        f.finish()?;
        options.check().map_err(|e| e.with_context("config.json"))?;
        Ok(options)
    }

    fn check(&self) -> Result<()> {
        let BertOptions { vocabulary, context, segments, layers, heads, width, hidden, .. } = *self;
        for (name, value) in [
            ("vocabulary", vocabulary),
            ("context", context),
            ("segments", segments),
            ("layers", layers),
            ("heads", heads),
            ("width", width),
            ("hidden", hidden),
        ] {
            if value == 0 || i32::try_from(value).is_err() {
                bail!(Argument, "{name} is {value}: it must be 1 to {}", i32::MAX);
            }
        }
        if !width.is_multiple_of(heads) {
            bail!(Argument, "a width of {width} does not divide into {heads} heads");
        }
        Ok(())
    }
}

/// The standard deviation of first weights.
const DEVIATION: f64 = 0.02;

fn linear(inputs: usize, outputs: usize) -> Linear {
    Linear { weight: init::normal([outputs, inputs], DEVIATION), bias: Some(init::zeros([outputs])) }
}

fn table(rows: usize, width: usize) -> Embedding {
    Embedding { weight: init::normal([rows, width], DEVIATION), padding_idx: None }
}

/// What tokens are before they have looked at each other.
#[derive(Module)]
#[module(no_forward)]
#[expect(non_snake_case, reason = "names of fields are those of parameters, and these are Hugging Face's")]
struct Embeddings {
    word_embeddings: Embedding,
    position_embeddings: Embedding,
    token_type_embeddings: Embedding,
    LayerNorm: LayerNorm,
}

/// Queries, keys and values.
#[derive(Module)]
#[module(no_forward)]
struct Projections {
    query: Linear,
    key: Linear,
    value: Linear,
}

/// A product whose result is added to what stood before, and normalized.
#[derive(Module)]
#[module(no_forward)]
#[expect(non_snake_case, reason = "names of fields are those of parameters, and these are Hugging Face's")]
struct Output {
    dense: Linear,
    LayerNorm: LayerNorm,
}

impl Output {
    fn new(inputs: usize, o: &BertOptions) -> Output {
        Output { dense: linear(inputs, o.width), LayerNorm: LayerNorm::new([o.width]).with_eps(o.norm_eps) }
    }

    fn add(&self, x: &Tensor, before: &Tensor) -> Result<Tensor> {
        self.LayerNorm.try_forward(&self.dense.try_forward(x)?.try_add(before)?)
    }
}

struct Attention {
    projections: Projections,
    output: Output,
}

impl Module for Attention {
    #[track_caller]
    fn forward(&self, _: &Tensor) -> Tensor {
        panic!("BERT's attention has no forward of one tensor: it needs to know what is filled up")
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        // No field can have this name.
        visitor.field("self", &self.projections);
        visitor.field("output", &self.output);
    }
}

#[derive(Module)]
#[module(no_forward)]
struct Intermediate {
    dense: Linear,
}

#[derive(Module)]
#[module(no_forward)]
struct Block {
    attention: Attention,
    intermediate: Intermediate,
    output: Output,
}

impl Block {
    fn try_pass(&self, x: &Tensor, heads: usize, seen: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let apart = |linear: &Linear| {
                let width = linear.weight.size(0) / heads;
                linear.try_forward(x)?.try_unflatten(-1, [heads, width])?.try_transpose(1, 2)
            };
            let p = &self.attention.projections;
            let (q, k, v) = (apart(&p.query)?, apart(&p.key)?, apart(&p.value)?);
            let options = AttentionOptions { mask: Some(seen), ..AttentionOptions::default() };
            let found = q.try_scaled_dot_product_attention(&k, &v, options)?;
            let joined = found.try_transpose(1, 2)?.try_flatten(-2, -1)?;
            let x = self.attention.output.add(&joined, x)?;
            self.output.add(&self.intermediate.dense.try_forward(&x)?.try_gelu()?, &x)
        })
    }
}

#[derive(Module)]
#[module(no_forward)]
struct Encoder {
    layer: Vec<Block>,
}

/// An encoder: tokens in, a vector for each out. Parameters have the names of Hugging Face's `BertModel`, whose pooler is left out.
///
/// ```
/// use volta::models::{Bert, BertOptions};
/// use volta::{DType, Tensor};
/// let options = BertOptions {
///     vocabulary: 100, context: 16, segments: 2, layers: 2, heads: 4, width: 32, hidden: 64, norm_eps: 1e-12,
/// };
/// let model = Bert::try_new(options)?;
/// let tokens = Tensor::randint(0, 100, [2, 16]);
/// let seen = Tensor::ones([2, 16]).to_dtype(DType::Bool);
/// assert_eq!(model.encode(&tokens, &seen).shape()[..], [2, 16, 32]);
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Module)]
#[module(no_forward)]
pub struct Bert {
    /// Its shape.
    #[module(skip)]
    pub options: BertOptions,
    embeddings: Embeddings,
    encoder: Encoder,
}

impl Bert {
    /// With small random values.
    #[track_caller]
    pub fn try_new(options: BertOptions) -> Result<Bert> {
        let _call = Call::enter("Bert");
        options.check()?;
        let o = &options;
        let block = |_| Block {
            attention: Attention {
                projections: Projections {
                    query: linear(o.width, o.width),
                    key: linear(o.width, o.width),
                    value: linear(o.width, o.width),
                },
                output: Output::new(o.width, o),
            },
            intermediate: Intermediate { dense: linear(o.width, o.hidden) },
            output: Output::new(o.hidden, o),
        };
        Ok(Bert {
            embeddings: Embeddings {
                word_embeddings: table(o.vocabulary, o.width),
                position_embeddings: table(o.context, o.width),
                token_type_embeddings: table(o.segments, o.width),
                LayerNorm: LayerNorm::new([o.width]).with_eps(o.norm_eps),
            },
            encoder: Encoder { layer: (0..o.layers).map(block).collect() },
            options,
        })
    }

    /// Where its parameters are.
    pub fn device(&self) -> Device {
        self.embeddings.word_embeddings.weight.device()
    }

    /// Vectors of (batch, length, width) for tokens of (batch, length); `seen` is false, of the same shape, where a text is filled up.
    #[track_caller]
    pub fn encode(&self, tokens: &Tensor, seen: &Tensor) -> Tensor {
        self.try_encode(tokens, seen).unwrap_or_else(|e| e.raise())
    }

    /// [`encode`](Self::encode) that returns its error.
    #[track_caller]
    pub fn try_encode(&self, tokens: &Tensor, seen: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let (shape, o) = (tokens.shape(), &self.options);
            if shape.rank() != 2
                || shape[1] > o.context
                || seen.shape() != shape
                || seen.dtype() != DType::Bool
            {
                let _call = Call::enter("Bert");
                bail!(
                    Shape,
                    "tokens of {shape} and {} of {}: (batch, length) is needed of both, of {} tokens at most, the second bools",
                    seen.dtype(),
                    seen.shape(),
                    o.context
                );
            }
            let e = &self.embeddings;
            let place = tokens.index_rule(0, Shape::of(&[shape[1]]), DType::I32);
            let x = e.word_embeddings.try_forward(tokens)?;
            let x = x.try_add(&e.position_embeddings.weight.try_embedding(&place)?)?;
            let x = x.try_add(&e.token_type_embeddings.weight.try_narrow(0, 0, 1)?)?;
            let mut x = e.LayerNorm.try_forward(&x)?;
            let seen = seen.try_reshape([shape[0], 1, 1, shape[1]])?;
            for block in &self.encoder.layer {
                x = block.try_pass(&x, o.heads, &seen)?;
            }
            Ok(x)
        })
    }
}
