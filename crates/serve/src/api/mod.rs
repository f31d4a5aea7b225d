//! OpenAI's interface: what requests say, and what they are answered.
//!
//! `fields` reads JSON and refuses what it does not know, `settings` what both ways of writing share; `chat`, `completions` and
//! `embeddings` are the three endpoints that compute, `models` lists. `form` writes answers of what the engine tells, `reply` streams
//! them, and `error` is what goes wrong.

mod base64;
pub mod chat;
pub mod completions;
pub mod embeddings;
mod error;
mod fields;
mod form;
pub mod models;
mod reply;
mod settings;

pub use error::ApiError;
pub use reply::{Answer, Stream};

use crate::engine::{Engine, Event, Settings, Work};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Prompts and how to go on from each, as a request asks for.
struct Plan {
    prompts: Vec<Vec<u32>>,
    settings: Settings,
    stream: bool,
    include_usage: bool,
}

impl Plan {
    /// Checks that there is room, and hands the work in. What the texts become is heard.
    fn submit(self, engine: &Engine) -> Result<UnboundedReceiver<Event>, ApiError> {
        let (sender, events) = unbounded_channel();
        let limits = engine.limits();
        let each = self.settings.choices;
        let texts = self.prompts.len() * each;
        if each > limits.batch || texts > limits.batch + limits.queue {
            let most = if each > limits.batch { limits.batch } else { limits.batch + limits.queue };
            return Err(ApiError::wrong(
                "n",
                format!("{texts} texts are asked for: this server writes {most} at once"),
            ));
        }
        let place = Arc::new(engine.place(texts).ok_or_else(ApiError::busy)?);
        for (k, prompt) in self.prompts.into_iter().enumerate() {
            let settings = fitting(&self.settings, prompt.len(), limits.context)?;
            let (events, place) = (sender.clone(), place.clone());
            let work = Work { prompt, settings, first: k * each, events, place, submitted: Instant::now() };
            if !engine.submit(work) {
                return Err(ApiError::internal("the model's thread has ended: restart the server"));
            }
        }
        Ok(events)
    }
}

/// The settings with no more tokens than the context has left.
fn fitting(settings: &Settings, prompt: usize, context: usize) -> Result<Settings, ApiError> {
    match context.checked_sub(prompt) {
        None | Some(0) => {
            let message = format!(
                "This model's maximum context length is {context} tokens. However, your messages resulted in {prompt} tokens."
            );
            Err(ApiError::wrong("messages", message).with_code("context_length_exceeded"))
        }
        Some(left) => Ok(Settings { length: settings.length.min(left), ..settings.clone() }),
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A name that no other answer has.
fn new_id(prefix: &str) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    format!("{prefix}-{nanos:016x}{:04x}", COUNT.fetch_add(1, Ordering::Relaxed) & 0xffff)
}
