//! Writing with a [`LanguageModel`]: one token at a time, each at the same cost.

use super::{CausalLm, CausalLmCache, Gpt, GptCache};
use crate::error::{Error, ErrorKind, Result};
use crate::nn::Module;
use crate::tensor::Tensor;
use crate::text::Sampler;

/// A network that can go on from a text, with a memory of what it has read.
pub trait LanguageModel: Module {
    /// What it remembers of a text.
    type Cache: Send;

    /// The most tokens that it sees at once.
    fn max_tokens(&self) -> usize;

    /// An empty memory for one text.
    fn start(&self) -> Self::Cache;

    /// Takes tokens in, at least one; gives the logits of (1, vocabulary) of what follows. All that was read must fit into
    /// [`max_tokens`](Self::max_tokens).
    fn read(&self, tokens: &[u32], cache: &mut Self::Cache) -> Result<Tensor>;

    /// Forgets all but the first tokens.
    fn truncate(&self, cache: &mut Self::Cache, length: usize);
}

/// A row of tokens where a model is.
fn row(tokens: &[u32], device: crate::Device) -> Result<Tensor> {
    let ids: Vec<i32> = tokens.iter().map(|&t| t as i32).collect();
    crate::with_device(device, || Tensor::try_from_vec(ids, [1, tokens.len()]))
}

impl LanguageModel for Gpt {
    type Cache = GptCache;

    fn max_tokens(&self) -> usize {
        self.options.context
    }

    fn start(&self) -> GptCache {
        self.cache(1)
    }

    /// In pieces whose lengths are powers of two: any text needs few different plans.
    fn read(&self, mut tokens: &[u32], cache: &mut GptCache) -> Result<Tensor> {
        if cache.is_empty() {
            // Zeros that are there, as keys will be: the first token has the plan of all others.
            cache.try_realize()?;
        }
        loop {
            let count = 1 << tokens.len().max(1).ilog2();
            let (piece, rest) = tokens.split_at(tokens.len().min(count));
            let logits = self.try_next(&row(piece, self.device())?, cache)?;
            logits.try_realize()?;
            tokens = rest;
            if rest.is_empty() {
                return Ok(logits);
            }
        }
    }

    fn truncate(&self, cache: &mut GptCache, length: usize) {
        cache.truncate(length);
    }
}

/// The most tokens of a [`CausalLm`] that are read in one pass.
const MAX_PASS: usize = 512;
/// The least room of a cache.
const MIN_ROOM: usize = 256;

impl LanguageModel for CausalLm {
    type Cache = CausalLmCache;

    fn max_tokens(&self) -> usize {
        self.options.context
    }

    /// Room grows with the text: a pass looks at all of it.
    fn start(&self) -> CausalLmCache {
        self.cache(1, MIN_ROOM.min(self.options.context))
    }

    /// In passes whose lengths are powers of two or one and a half of these, filled up where need be: any text needs few different
    /// plans.
    fn read(&self, mut tokens: &[u32], cache: &mut CausalLmCache) -> Result<Tensor> {
        if cache.is_empty() {
            cache.realize()?;
        }
        loop {
            let (piece, rest) = tokens.split_at(tokens.len().min(MAX_PASS));
            let left = self.options.context - cache.len();
            let length = pass_length(piece.len()).min(left);
            let room = (cache.len() + length).next_power_of_two().max(MIN_ROOM);
            cache.reserve(room.min(self.options.context))?;
            let mut filled = piece.to_vec();
            filled.resize(length.max(piece.len()), 0);
            let logits = self.try_next(&row(&filled, self.device())?, cache, piece.len())?;
            cache.realize_with(std::slice::from_ref(&logits))?;
            tokens = rest;
            if rest.is_empty() {
                return Ok(logits);
            }
        }
    }

    fn truncate(&self, cache: &mut CausalLmCache, length: usize) {
        cache.truncate(length);
    }
}

/// The least power of two, or one and a half of one, that is not below.
fn pass_length(tokens: usize) -> usize {
    let whole = tokens.next_power_of_two();
    if whole >= 4 && tokens <= whole / 4 * 3 { whole / 4 * 3 } else { whole }
}

/// A text that grows token by token. The model sees the last tokens that fit into its context.
///
/// A full context is halved: its later half is read again, in one go, and writing goes on from there. So a token costs
/// the same wherever it stands, apart from that one reading every half context.
///
/// ```
/// use volta::models::{Generation, Gpt, GptOptions};
/// use volta::text::{Sampler, SamplerOptions};
/// let model = Gpt::new(GptOptions { vocabulary: 50, context: 16, layers: 1, ..GptOptions::default() });
/// let mut text = Generation::new(&model, Sampler::new(SamplerOptions::default())?);
/// text.read(&[1, 2, 3])?;
/// let written: Vec<u32> = (0..40).map(|_| text.write()).collect::<Result<_, _>>()?;
/// assert!(written.iter().all(|&t| t < 50));
/// # Ok::<(), volta::Error>(())
/// ```
pub struct Generation<'m, M: LanguageModel = Gpt> {
    model: &'m M,
    cache: M::Cache,
    sampler: Sampler,
    /// What the model sees.
    seen: Vec<u32>,
    /// Logits of what comes next.
    next: Option<Tensor>,
}

/// A [`Generation`] apart from its model, for those who cannot hold both at once.
///
/// ```
/// use volta::models::{Generation, Gpt, GptOptions};
/// use volta::text::{Sampler, SamplerOptions};
/// let model = Gpt::new(GptOptions { vocabulary: 50, context: 16, layers: 1, ..GptOptions::default() });
/// let mut text = Generation::new(&model, Sampler::new(SamplerOptions::default())?);
/// text.read(&[1, 2, 3])?;
/// let paused = text.pause();
/// assert!(paused.resume(&model).write()? < 50);
/// # Ok::<(), volta::Error>(())
/// ```
pub struct PausedGeneration<M: LanguageModel = Gpt> {
    cache: M::Cache,
    sampler: Sampler,
    seen: Vec<u32>,
    next: Option<Tensor>,
}

impl<M: LanguageModel> PausedGeneration<M> {
    /// Goes on, with the model that it came from.
    pub fn resume(self, model: &M) -> Generation<'_, M> {
        let PausedGeneration { cache, sampler, seen, next } = self;
        Generation { model, cache, sampler, seen, next }
    }
}

impl<'m, M: LanguageModel> Generation<'m, M> {
    /// The text apart from its model.
    pub fn pause(self) -> PausedGeneration<M> {
        let Generation { cache, sampler, seen, next, .. } = self;
        PausedGeneration { cache, sampler, seen, next }
    }

    /// Nothing yet. The model is switched to evaluation.
    pub fn new(model: &'m M, sampler: Sampler) -> Generation<'m, M> {
        model.eval();
        Generation { model, cache: model.start(), sampler, seen: Vec::new(), next: None }
    }

    /// Goes on from `tokens` instead of what it has seen; what both begin with is not read again.
    pub fn restart(&mut self, tokens: &[u32]) -> Result<()> {
        let common = self.seen.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        // The last token is read in any case: its logits are wanted.
        let common = common.min(tokens.len().saturating_sub(1));
        self.seen.truncate(common);
        self.model.truncate(&mut self.cache, common);
        self.next = None;
        self.read(&tokens[common..])
    }

    /// Takes tokens in that somebody else wrote. Of more than the context holds, the last are seen.
    pub fn read(&mut self, tokens: &[u32]) -> Result<()> {
        let context = self.model.max_tokens();
        if self.seen.len() + tokens.len() > context {
            let all = [&self.seen[..], tokens].concat();
            // Half of the context is left for what is to be written.
            let kept = all[all.len() - (context / 2).max(1).min(all.len())..].to_vec();
            self.seen.clear();
            self.model.truncate(&mut self.cache, 0);
            return self.take_in(&kept);
        }
        self.take_in(tokens)
    }

    /// The next token, picked and taken in.
    pub fn write(&mut self) -> Result<u32> {
        let logits: Vec<f32> = self.logits()?.try_to_vec()?;
        self.take(&logits)
    }

    /// [`write`](Self::write) that waits for the device without blocking: the only way in a browser, if the model is on a
    /// GPU.
    ///
    /// ```
    /// use volta::models::{Generation, Gpt, GptOptions};
    /// use volta::text::{Sampler, SamplerOptions};
    /// let model = Gpt::new(GptOptions { vocabulary: 50, context: 16, layers: 1, ..GptOptions::default() });
    /// let written = async {
    ///     let mut text = Generation::new(&model, Sampler::new(SamplerOptions::default())?);
    ///     text.read(&[1, 2, 3])?;
    ///     text.write_async().await
    /// };
    /// assert!(pollster::block_on(written)? < 50);
    /// # Ok::<(), volta::Error>(())
    /// ```
    pub async fn write_async(&mut self) -> Result<u32> {
        let logits: Vec<f32> = self.logits()?.to_vec_async().await?;
        self.take(&logits)
    }

    /// [`write_async`](Self::write_async), with the probability that the model gave the token, before the sampler's temperature and its
    /// choice among the likeliest.
    pub async fn write_with_probability(&mut self) -> Result<(u32, f64)> {
        let logits: Vec<f32> = self.logits()?.to_vec_async().await?;
        let token = self.take(&logits)?;
        Ok((token, probability(&logits, token)))
    }

    /// Logits of the next token.
    fn logits(&self) -> Result<Tensor> {
        match &self.next {
            Some(logits) => logits.try_to_dtype(crate::DType::F32),
            None => {
                Err(Error::new(ErrorKind::Argument, "there is nothing to go on from: read something first"))
            }
        }
    }

    /// Picks a token and takes it in.
    fn take(&mut self, logits: &[f32]) -> Result<u32> {
        let token = self.sampler.pick(logits, &self.seen)?;
        self.read(&[token])?;
        Ok(token)
    }

    fn take_in(&mut self, tokens: &[u32]) -> Result<()> {
        if tokens.is_empty() {
            return Ok(());
        }
        // Somebody may train it between two tokens.
        self.model.eval();
        self.next = Some(self.model.read(tokens, &mut self.cache)?);
        self.seen.extend(tokens);
        Ok(())
    }
}

/// The softmax of one of the logits.
fn probability(logits: &[f32], token: u32) -> f64 {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |logit: f32| f64::from(logit - most).exp();
    let all: f64 = logits.iter().copied().map(weight).sum();
    logits.get(token as usize).map_or(0.0, |&logit| weight(logit) / all)
}
