//! Writing with a [`Gpt`]: one token at a time, each at the same cost.

use super::{Gpt, GptCache};
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::nn::Module;
use crate::tensor::Tensor;
use crate::text::Sampler;

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
pub struct Generation<'m> {
    model: &'m Gpt,
    cache: GptCache,
    device: Device,
    sampler: Sampler,
    /// What the model sees.
    seen: Vec<u32>,
    /// Logits of what comes next.
    next: Option<Tensor>,
}

impl<'m> Generation<'m> {
    /// Nothing yet. The model is switched to evaluation.
    pub fn new(model: &'m Gpt, sampler: Sampler) -> Generation<'m> {
        model.eval();
        let (cache, device) = (model.cache(1), model.device());
        Generation { model, cache, device, sampler, seen: Vec::new(), next: None }
    }

    /// Takes tokens in that somebody else wrote. Of more than the context holds, the last are seen.
    pub fn read(&mut self, tokens: &[u32]) -> Result<()> {
        let context = self.model.options.context;
        if self.seen.len() + tokens.len() > context {
            let all = [&self.seen[..], tokens].concat();
            // Half of the context is left for what is to be written.
            let kept = all[all.len() - (context / 2).max(1).min(all.len())..].to_vec();
            self.seen.clear();
            self.cache.truncate(0);
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

    /// In pieces whose lengths are powers of two: any text needs few different plans.
    fn take_in(&mut self, mut tokens: &[u32]) -> Result<()> {
        // Somebody may train it between two tokens.
        self.model.eval();
        if self.cache.is_empty() {
            // Zeros that are there, as keys will be: the first token has the plan of all others.
            self.cache.try_realize()?;
        }
        while !tokens.is_empty() {
            let (piece, rest) = tokens.split_at(1 << tokens.len().ilog2());
            let ids: Vec<i32> = piece.iter().map(|&t| t as i32).collect();
            let x = crate::with_device(self.device, || Tensor::try_from_vec(ids, [1, piece.len()]))?;
            let logits = self.model.try_next(&x, &mut self.cache)?;
            logits.try_realize()?;
            self.next = Some(logits);
            self.seen.extend(piece);
            tokens = rest;
        }
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
