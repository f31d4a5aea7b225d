//! A decoder-only transformer: tokens in, the next token's logits out.

use super::gpt_block::{AnyNorm, Block};
use super::gpt_cache::GptCache;
use crate::autograd::no_grad;
use crate::call::Call;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::functional::try_cross_entropy;
use crate::nn::{Dropout, Embedding, Linear, Module, Visitor, init, layer};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// How positions are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Positions {
    /// A trained vector for every position.
    #[default]
    Learned,
    /// Rotations of queries and keys.
    Rotary,
}

/// What normalizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Norm {
    /// Layer norm.
    #[default]
    Layer,
    /// Root mean square norm.
    Rms,
}

/// What stands between the two products of a feed-forward part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Activation {
    /// GELU by the hyperbolic tangent, four times as wide as the model.
    #[default]
    Gelu,
    /// A gate of SiLU, 8/3 times as wide as the model: as many parameters.
    SwiGlu,
}

/// The shape of a [`Gpt`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GptOptions {
    /// How many tokens there are.
    pub vocabulary: usize,
    /// The most tokens it sees at once.
    pub context: usize,
    /// Blocks.
    pub layers: usize,
    /// Heads of attention a block.
    pub heads: usize,
    /// The width of a token's vector.
    pub width: usize,
    /// The probability of dropping a value while training.
    pub dropout: f64,
    /// How positions are known.
    pub positions: Positions,
    /// What normalizes.
    pub norm: Norm,
    /// What stands between the products of a feed-forward part.
    pub activation: Activation,
    /// Whether the last product shares its weight with the tokens' vectors.
    pub tied: bool,
}

impl Default for GptOptions {
    /// A small one.
    fn default() -> GptOptions {
        GptOptions {
            vocabulary: 256,
            context: 128,
            layers: 4,
            heads: 4,
            width: 128,
            dropout: 0.0,
            positions: Positions::default(),
            norm: Norm::default(),
            activation: Activation::default(),
            tied: false,
        }
    }
}

impl GptOptions {
    /// An error that names what cannot be.
    fn check(&self) -> Result<()> {
        for (name, value) in [
            ("vocabulary", self.vocabulary),
            ("context", self.context),
            ("layers", self.layers),
            ("heads", self.heads),
            ("width", self.width),
        ] {
            if value == 0 {
                bail!(Argument, "{name} is 0: at least 1 is needed");
            }
        }
        if !self.width.is_multiple_of(self.heads) {
            bail!(Argument, "a width of {} does not divide into {} heads", self.width, self.heads);
        }
        if !(0.0..1.0).contains(&self.dropout) {
            bail!(Argument, "a dropout of {} is not within 0 and 1", self.dropout);
        }
        Ok(())
    }
}

/// The standard deviation of first weights, as GPT-2 has it.
pub(super) const DEVIATION: f64 = 0.02;

/// A language model in the manner of GPT-2, with the parts of newer ones to choose from.
///
/// ```
/// use volta::models::{Gpt, GptOptions};
/// use volta::{Module, Tensor};
/// let model = Gpt::new(GptOptions { vocabulary: 65, context: 32, layers: 2, ..GptOptions::default() });
/// let tokens = Tensor::randint(0, 65, [2, 32]);
/// assert_eq!(model.forward(&tokens).shape()[..], [2, 32, 65]);
/// let loss = model.loss(&tokens, &tokens);
/// loss.backward();
/// ```
pub struct Gpt {
    /// Its shape.
    pub options: GptOptions,
    tokens: Embedding,
    positions: Option<Embedding>,
    dropout: Dropout,
    blocks: Vec<Block>,
    norm: AnyNorm,
    /// None if it shares the tokens' vectors.
    head: Option<Linear>,
}

impl Gpt {
    /// With GPT-2's first values.
    #[track_caller]
    pub fn new(options: GptOptions) -> Gpt {
        Gpt::try_new(options).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(options: GptOptions) -> Result<Gpt> {
        let _call = Call::enter("Gpt");
        options.check()?;
        let table =
            |rows| Embedding { weight: init::normal([rows, options.width], DEVIATION), padding_idx: None };
        Ok(Gpt {
            tokens: table(options.vocabulary),
            positions: (options.positions == Positions::Learned).then(|| table(options.context)),
            dropout: Dropout::new(options.dropout),
            blocks: (0..options.layers).map(|_| Block::try_new(&options)).collect::<Result<_>>()?,
            norm: AnyNorm::new(options.norm, options.width),
            head: (!options.tied).then(|| Linear {
                weight: init::normal([options.vocabulary, options.width], DEVIATION),
                bias: None,
            }),
            options,
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
        let logits = self.try_forward(tokens)?;
        let rows = tokens.numel();
        try_cross_entropy(&logits.try_reshape([rows, self.options.vocabulary])?, &next.try_reshape([rows])?)
    }

    /// Where its parameters are.
    pub(super) fn device(&self) -> Device {
        self.tokens.weight.device()
    }

    /// An empty memory for generating `batch` texts at once.
    pub fn cache(&self, batch: usize) -> GptCache {
        GptCache(self.blocks.iter().map(|b| b.attention.cache(batch, self.options.context)).collect())
    }

    /// The logits (batch, vocabulary) of what follows `tokens` (batch, length), which follow what is in the cache. They
    /// must fit into the context together.
    #[track_caller]
    pub fn next(&self, tokens: &Tensor, cache: &mut GptCache) -> Tensor {
        self.try_next(tokens, cache).unwrap_or_else(|e| e.raise())
    }

    /// [`next`](Self::next) that returns its error.
    #[track_caller]
    pub fn try_next(&self, tokens: &Tensor, cache: &mut GptCache) -> Result<Tensor> {
        no_grad(|| {
            let start = cache.len();
            if tokens.numel() == 0 {
                let _call = Call::enter("Gpt");
                bail!(
                    Shape,
                    "tokens of {}: there must be one at least that another one follows",
                    tokens.shape()
                );
            }
            let mut x = self.embed(tokens, start, |table, length| {
                // The position is an argument of the plan, where a view's beginning would be a part of it.
                let place = tokens.index_rule(0, Shape::of(&[length]), DType::I32).try_add(start)?;
                table.try_embedding(&place)
            })?;
            for (block, memory) in self.blocks.iter().zip(&mut cache.0) {
                x = block.try_next(&x, memory)?;
            }
            let last = x.try_narrow(1, x.size(1) - 1, 1)?.try_squeeze(1)?;
            self.logits(&last)
        })
    }

    /// How much each token of (batch, length) looks at each before it and at itself, in one head of one layer: (batch, length, length),
    /// whose rows sum to 1. The model is switched to evaluation.
    ///
    /// ```
    /// use volta::models::{Gpt, GptOptions};
    /// use volta::Tensor;
    /// let model = Gpt::new(GptOptions { vocabulary: 65, context: 8, layers: 2, ..GptOptions::default() });
    /// let weights = model.attention(&Tensor::randint(0, 65, [1, 8]), 1, 3);
    /// assert_eq!(weights.shape()[..], [1, 8, 8]);
    /// ```
    #[track_caller]
    pub fn attention(&self, tokens: &Tensor, layer: usize, head: usize) -> Tensor {
        self.try_attention(tokens, layer, head).unwrap_or_else(|e| e.raise())
    }

    /// [`attention`](Self::attention) that returns its error.
    #[track_caller]
    pub fn try_attention(&self, tokens: &Tensor, layer: usize, head: usize) -> Result<Tensor> {
        let Some((looking, before)) = self.blocks.get(..=layer).and_then(<[Block]>::split_last) else {
            let _call = Call::enter("Gpt");
            bail!(Argument, "there is no layer {layer}: there are {}, from 0 on", self.blocks.len());
        };
        self.eval();
        no_grad(|| {
            let mut x = self.embed(tokens, 0, |table, length| table.try_narrow(0, 0, length))?;
            for block in before {
                x = block.try_forward(&x)?;
            }
            looking.try_weights(&x, head)
        })
    }

    /// Vectors of tokens that stand from position `start` on; `rows` takes those of the positions from their table.
    fn embed(
        &self,
        tokens: &Tensor,
        start: usize,
        rows: impl FnOnce(&Tensor, usize) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let shape = tokens.shape();
        if shape.rank() != 2 || start + shape[1] > self.options.context {
            let _call = Call::enter("Gpt");
            bail!(
                Shape,
                "tokens of {shape} after {start}: (batch, length) is needed, of {} in all at most",
                self.options.context
            );
        }
        let mut x = self.tokens.try_forward(tokens)?;
        if let Some(table) = &self.positions {
            x = x.try_add(&rows(&table.weight, shape[1])?)?;
        }
        self.dropout.try_forward(&x)
    }

    fn logits(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.norm.try_forward(x)?;
        match &self.head {
            Some(head) => head.try_forward(&x),
            None => x.try_linear(&self.tokens.weight, None),
        }
    }
}

impl Module for Gpt {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    /// Logits (batch, length, vocabulary) for integers of (batch, length).
    #[track_caller]
    fn try_forward(&self, tokens: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let mut x = self.embed(tokens, 0, |table, length| table.try_narrow(0, 0, length))?;
            for block in &self.blocks {
                x = block.try_forward(&x)?;
            }
            self.logits(&x)
        })
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("tokens", &self.tokens);
        visitor.field("positions", &self.positions);
        visitor.field("dropout", &self.dropout);
        visitor.field("blocks", &self.blocks);
        visitor.field("norm", &self.norm);
        visitor.field("head", &self.head);
    }

    fn describe(&self) -> String {
        let o = &self.options;
        format!("{} layers, {} heads, width {}, context {}", o.layers, o.heads, o.width, o.context)
    }
}
