//! Picking the next token from a model's logits.

use crate::call::Call;
use crate::error::{Result, bail};
use crate::random::threefry;

/// How a token is picked. The default takes the model's own probabilities as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerOptions {
    /// Divides the logits: below 1 the likely becomes likelier, at 0 the likeliest token is always taken.
    pub temperature: f32,
    /// Only this many of the likeliest tokens are considered; 0 considers all.
    pub top_k: usize,
    /// Only the likeliest tokens that together have this probability are considered; 1 considers all.
    pub top_p: f32,
    /// Tokens that occurred recently are made less likely: positive logits are divided by it, negative ones
    /// multiplied. 1 changes nothing.
    pub repetition_penalty: f32,
    /// Where the random numbers start: the same seed picks the same tokens.
    pub seed: u64,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        SamplerOptions { temperature: 1.0, top_k: 0, top_p: 1.0, repetition_penalty: 1.0, seed: 0 }
    }
}

/// Picks tokens: first the repetition penalty, then the temperature, `top_k` and `top_p`.
///
/// ```
/// use volta::text::{Sampler, SamplerOptions};
///
/// let mut greedy = Sampler::new(SamplerOptions { temperature: 0.0, ..Default::default() })?;
/// assert_eq!(greedy.pick(&[0.1, 2.0, -1.0], &[])?, 1);
/// let mut sampler = Sampler::new(SamplerOptions { top_k: 2, seed: 7, ..Default::default() })?;
/// assert_ne!(sampler.pick(&[0.1, 2.0, -1.0], &[])?, 2);
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    options: SamplerOptions,
    /// How many random numbers were drawn.
    drawn: u64,
}

/// A token that may be picked.
#[derive(Clone, Copy)]
struct Candidate {
    token: u32,
    logit: f32,
}

impl Sampler {
    /// A sampler.
    ///
    /// # Errors
    /// An option out of its range; the message names it, its value and what is allowed.
    #[track_caller]
    pub fn new(options: SamplerOptions) -> Result<Sampler> {
        let _call = Call::enter("Sampler::new");
        let SamplerOptions { temperature, top_p, repetition_penalty, .. } = options;
        if !(temperature >= 0.0 && temperature.is_finite()) {
            bail!(Argument, "temperature is {temperature}; it must be 0 (the likeliest token) or more");
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            bail!(Argument, "top_p is {top_p}; it must be more than 0 and at most 1 (all tokens)");
        }
        if !(repetition_penalty > 0.0 && repetition_penalty.is_finite()) {
            bail!(
                Argument,
                "repetition_penalty is {repetition_penalty}; it must be more than 0, and 1 changes nothing"
            );
        }
        Ok(Sampler { options, drawn: 0 })
    }

    /// The options it was made with.
    pub fn options(&self) -> &SamplerOptions {
        &self.options
    }

    /// Picks a token for logits, one a token of the vocabulary. `recent` are the tokens that the repetition
    /// penalty counts. A token with the logit −∞ is never picked.
    ///
    /// # Errors
    /// Logits that are NaN or +∞, or all −∞: the model is broken.
    #[track_caller]
    pub fn pick(&mut self, logits: &[f32], recent: &[u32]) -> Result<u32> {
        let _call = Call::enter("Sampler::pick");
        let candidates = self.candidates(logits, recent)?;
        if let [only] = candidates[..] {
            return Ok(only.token);
        }
        let weights = weights(&candidates);
        let mut left = self.uniform() * weights.iter().sum::<f64>();
        for (candidate, weight) in candidates.iter().zip(&weights) {
            left -= weight;
            if left < 0.0 {
                return Ok(candidate.token);
            }
        }
        // Rounding may leave a rest; a candidate always has a chance.
        Ok(candidates[candidates.len() - 1].token)
    }

    /// The tokens that [`pick`](Self::pick) may return, with their probabilities, the likeliest first.
    ///
    /// # Errors
    /// Those of `pick`.
    #[track_caller]
    pub fn distribution(&self, logits: &[f32], recent: &[u32]) -> Result<Vec<(u32, f64)>> {
        let _call = Call::enter("Sampler::distribution");
        let mut candidates = self.candidates(logits, recent)?;
        candidates.sort_unstable_by(likelier);
        let weights = weights(&candidates);
        let total: f64 = weights.iter().sum();
        Ok(candidates.iter().zip(weights).map(|(c, weight)| (c.token, weight / total)).collect())
    }

    /// What may be picked: never empty. Logits are differences from the best, divided by the temperature.
    fn candidates(&self, logits: &[f32], recent: &[u32]) -> Result<Vec<Candidate>> {
        if let Some((token, logit)) =
            logits.iter().enumerate().find(|(_, x)| x.is_nan() || **x == f32::INFINITY)
        {
            bail!(NonFinite, "the logit of token {token} is {logit}; the model has diverged");
        }
        let count = logits.len();
        let mut logits = logits.to_vec();
        self.penalise(&mut logits, recent);
        let mut candidates: Vec<Candidate> = (0..)
            .zip(logits)
            .filter(|&(_, logit)| logit > f32::NEG_INFINITY)
            .map(|(token, logit)| Candidate { token, logit })
            .collect();
        let Some(&best) = candidates.iter().min_by(|a, b| likelier(a, b)) else {
            bail!(Argument, "there is no token to pick: all {count} logits are -inf");
        };
        if self.options.temperature == 0.0 {
            return Ok(vec![Candidate { logit: 0.0, ..best }]);
        }
        for candidate in &mut candidates {
            // The difference first, so that a small temperature cannot overflow.
            candidate.logit = (candidate.logit - best.logit) / self.options.temperature;
        }
        let k = self.options.top_k;
        if k > 0 && k < candidates.len() {
            candidates.select_nth_unstable_by(k - 1, likelier);
            candidates.truncate(k);
        }
        if self.options.top_p < 1.0 {
            keep_probable(&mut candidates, f64::from(self.options.top_p));
        } else if k > 0 {
            // Selection leaves no order, and the order decides what a random number picks.
            candidates.sort_unstable_by(likelier);
        }
        Ok(candidates)
    }

    /// Makes each recent token less likely, once however often it occurred.
    fn penalise(&self, logits: &mut [f32], recent: &[u32]) {
        let penalty = self.options.repetition_penalty;
        if penalty == 1.0 {
            return;
        }
        let mut tokens = recent.to_vec();
        tokens.sort_unstable();
        tokens.dedup();
        for token in tokens {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit = if *logit > 0.0 { (*logit / penalty).min(f32::MAX) } else { *logit * penalty };
            }
        }
    }

    /// The next random number of [0, 1).
    fn uniform(&mut self) -> f64 {
        let words = |x: u64| [x as u32, (x >> 32) as u32];
        let [a, b] = threefry(words(self.options.seed), words(self.drawn));
        self.drawn += 1;
        // The 53 bits that a double holds.
        let bits = (u64::from(a) << 32 | u64::from(b)) >> 11;
        bits as f64 / (1u64 << 53) as f64
    }
}

/// The likelier first, and of equals the smaller id.
fn likelier(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.logit.total_cmp(&a.logit).then(a.token.cmp(&b.token))
}

/// Weights in the proportion of the probabilities. The best logit is 0, so that none overflows.
fn weights(candidates: &[Candidate]) -> Vec<f64> {
    candidates.iter().map(|c| f64::from(c.logit.exp())).collect()
}

/// Keeps the likeliest candidates that together reach probability `p`, in order. Vocabularies are large and
/// what is kept is small, so only as many are sorted as are needed.
fn keep_probable(candidates: &mut Vec<Candidate>, p: f64) {
    let goal = p * weights(candidates).iter().sum::<f64>();
    let mut sorted = 0;
    let mut mass = 0.0;
    let mut block = 64;
    while sorted < candidates.len() {
        let rest = &mut candidates[sorted..];
        let count = block.min(rest.len());
        if count < rest.len() {
            rest.select_nth_unstable_by(count - 1, likelier);
        }
        rest[..count].sort_unstable_by(likelier);
        for (at, candidate) in rest[..count].iter().enumerate() {
            mass += f64::from(candidate.logit.exp());
            if mass >= goal {
                candidates.truncate(sorted + at + 1);
                return;
            }
        }
        sorted += count;
        block *= 4;
    }
}
