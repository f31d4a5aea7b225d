//! What a request asks of the model, and what it hears of it.

use crate::grammar::{Grammar, Vocabulary};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::mpsc::UnboundedSender;
use volta::text::SamplerOptions;

/// How texts are written.
#[derive(Clone)]
pub struct Settings {
    /// The seed is that of the first text; each has the next.
    pub sampling: SamplerOptions,
    pub presence_penalty: f32,
    pub frequency_penalty: f32,
    /// The most tokens of each.
    pub length: usize,
    /// Texts that end one, and are not part of it.
    pub stops: Vec<String>,
    /// Whether tokens come with their probabilities, and how many others with each.
    pub notes: Option<usize>,
    /// How many texts.
    pub choices: usize,
    /// What they may be.
    pub grammar: Option<(Arc<Grammar>, Arc<Vocabulary>)>,
}

/// A prompt and what to do with it.
pub struct Work {
    pub prompt: Vec<u32>,
    pub settings: Settings,
    /// The number of the first text in what is heard.
    pub first: usize,
    /// Whoever listens; one who goes cancels the work.
    pub events: UnboundedSender<Event>,
    pub place: Arc<Place>,
    pub submitted: Instant,
}

/// What is heard of a text.
#[derive(Debug)]
pub enum Event {
    /// It grew, or a token of it came. Text that may be the beginning of a stop is held back.
    Text { choice: usize, text: String, note: Option<TokenNote> },
    /// It has come to its end, with so many tokens.
    Done { choice: usize, end: End, tokens: usize },
    /// The model could not go on.
    Failed(String),
}

/// Why a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, by a stop, or by its grammar.
    Stop,
    /// It has all tokens that it may have.
    Length,
}

impl End {
    pub fn name(self) -> &'static str {
        match self {
            End::Stop => "stop",
            End::Length => "length",
        }
    }
}

/// A token with its logarithmic probability, as the model gave it.
#[derive(Clone, Debug)]
pub struct TokenNote {
    pub token: TokenChance,
    /// The likeliest, in order.
    pub top: Vec<TokenChance>,
}

#[derive(Clone, Debug)]
pub struct TokenChance {
    pub text: String,
    pub bytes: Vec<u8>,
    pub logprob: f32,
}

impl Work {
    pub fn is_cancelled(&self) -> bool {
        self.events.is_closed()
    }

    pub fn fail(&self, message: &str) {
        // Who is gone needs no answer.
        let _ = self.events.send(Event::Failed(message.to_string()));
    }
}

/// Places that texts take while they wait or are written; given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    taken: Arc<AtomicUsize>,
    texts: usize,
}

impl Place {
    /// Some of at most so many, if they are free.
    pub fn take(taken: &Arc<AtomicUsize>, texts: usize, most: usize) -> Option<Place> {
        let more = |now: usize| Some(now + texts).filter(|all| *all <= most);
        taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Place { taken: taken.clone(), texts })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.texts, Ordering::AcqRel);
    }
}
