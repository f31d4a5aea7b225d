//! A text that is being written: from logits to a token, from tokens to text, and where it ends.

use super::stops::Stops;
use super::work::{End, Event, Place, Settings, TokenChance, TokenNote, Work};
use crate::grammar::Matcher;
use crate::metrics::Metrics;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use volta::models::Llm;
use volta::text::{DecodeStream, Sampler, SamplerOptions};

pub struct Writer<'m> {
    choice: usize,
    settings: Settings,
    sampler: Result<Sampler, String>,
    /// The prompt and what was written: what a repetition penalty counts.
    seen: Vec<u32>,
    /// How often each token was written.
    counts: HashMap<u32, u32>,
    written: usize,
    stream: DecodeStream<'m>,
    stops: Stops,
    matcher: Option<Matcher>,
    events: UnboundedSender<Event>,
    place: Option<Arc<Place>>,
}

impl<'m> Writer<'m> {
    pub fn new(llm: &'m Llm, work: &Work, choice: usize) -> Writer<'m> {
        let settings = work.settings.clone();
        let seed = settings.sampling.seed.wrapping_add(choice as u64);
        let sampler = Sampler::new(SamplerOptions { seed, ..settings.sampling.clone() });
        Writer {
            choice: work.first + choice,
            sampler: sampler.map_err(|error| error.message().to_string()),
            seen: work.prompt.clone(),
            counts: HashMap::new(),
            written: 0,
            stream: llm.tokenizer.decode_stream(),
            stops: Stops::new(&settings.stops),
            matcher: settings.grammar.as_ref().map(|(grammar, _)| Matcher::new(grammar.clone())),
            events: work.events.clone(),
            place: Some(work.place.clone()),
            settings,
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.events.is_closed()
    }

    pub fn fail(&self, message: &str) {
        // Who is gone needs no answer.
        let _ = self.events.send(Event::Failed(message.to_string()));
    }

    /// Picks the next token of logits; nothing if the text ends.
    pub fn take(&mut self, llm: &Llm, logits: Vec<f32>, metrics: &Metrics) -> Option<u32> {
        match self.pick(llm, logits) {
            Err(message) => {
                self.fail(&message);
                None
            }
            Ok(None) => {
                self.finish(End::Stop, true);
                None
            }
            Ok(Some((token, note))) => {
                metrics.written_tokens.add(1);
                self.go_on(token, note)
            }
        }
    }

    /// A token, or nothing where the model ends.
    fn pick(&mut self, llm: &Llm, mut logits: Vec<f32>) -> Result<Option<(u32, Option<TokenNote>)>, String> {
        let raw = self.settings.notes.map(|_| logits.clone());
        for (&token, &count) in &self.counts {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit -= self.settings.presence_penalty + self.settings.frequency_penalty * count as f32;
            }
        }
        if let (Some(matcher), Some((_, vocabulary))) = (&mut self.matcher, &self.settings.grammar) {
            let mut masked = vec![f32::NEG_INFINITY; logits.len()];
            let mut any = false;
            vocabulary.allowed(matcher, |token| {
                // What is no text ends one: a special token is none, whatever its spelling.
                if let Some(&logit) = logits.get(token as usize).filter(|_| !llm.ends(token)) {
                    masked[token as usize] = logit;
                    any = true;
                }
            });
            if matcher.may_end() {
                for (token, logit) in logits.iter().enumerate().filter(|(token, _)| llm.ends(*token as u32)) {
                    masked[token] = *logit;
                    any = true;
                }
            }
            if !any {
                return Err(
                    "no token of this model's vocabulary goes on with what `response_format` asks for".into(),
                );
            }
            logits = masked;
        }
        let sampler = self.sampler.as_mut().map_err(|error| error.clone())?;
        let token = sampler.pick(&logits, &self.seen).map_err(|error| error.message().to_string())?;
        if llm.ends(token) {
            return Ok(None);
        }
        if let Some(matcher) = &mut self.matcher
            && !llm.tokenizer.token_bytes(token).is_some_and(|bytes| matcher.push(&bytes))
        {
            return Err("the sampler picked a token that the grammar does not have".into());
        }
        let note = raw.map(|raw| note(llm, &raw, token, self.settings.notes.unwrap_or(0)));
        Ok(Some((token, note)))
    }

    fn go_on(&mut self, token: u32, note: Option<TokenNote>) -> Option<u32> {
        self.written += 1;
        self.seen.push(token);
        *self.counts.entry(token).or_default() += 1;
        let (text, is_stopped) = self.stops.push(&self.stream.push(token));
        if !text.is_empty() || note.is_some() {
            let _ = self.events.send(Event::Text { choice: self.choice, text, note });
        }
        if is_stopped {
            self.finish(End::Stop, false);
        } else if self.matcher.as_ref().is_some_and(Matcher::is_complete) {
            self.finish(End::Stop, true);
        } else if self.written >= self.settings.length {
            self.finish(End::Length, true);
        } else {
            return Some(token);
        }
        None
    }

    /// Says that the text has come to its end, with what was held back.
    fn finish(&mut self, mut end: End, with_rest: bool) {
        if with_rest {
            let (mut text, is_stopped) = self.stops.push(&self.stream.finish());
            if is_stopped {
                end = End::Stop;
            } else {
                text += &self.stops.finish();
            }
            if !text.is_empty() {
                let _ = self.events.send(Event::Text { choice: self.choice, text, note: None });
            }
        }
        // Whoever hears of the end finds the place free.
        self.place = None;
        let _ = self.events.send(Event::Done { choice: self.choice, end, tokens: self.written });
    }
}

/// The probabilities of a token and of the likeliest.
fn note(llm: &Llm, logits: &[f32], token: u32, count: usize) -> TokenNote {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let all: f64 = logits.iter().map(|&logit| f64::from(logit - most).exp()).sum();
    let total = f64::from(most) + all.ln();
    let chance = |token: u32| {
        let bytes = llm.tokenizer.token_bytes(token);
        let bytes = bytes.unwrap_or_else(|| llm.tokenizer.token(token).unwrap_or_default().into_bytes());
        TokenChance {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            logprob: (f64::from(logits[token as usize]) - total) as f32,
            bytes,
        }
    };
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    let likelier = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
    let count = count.min(order.len());
    if count > 0 {
        order.select_nth_unstable_by(count - 1, likelier);
    }
    order.truncate(count);
    order.sort_unstable_by(likelier);
    TokenNote { token: chance(token), top: order.into_iter().map(chance).collect() }
}
