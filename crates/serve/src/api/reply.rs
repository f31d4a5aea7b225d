//! What a client hears: an answer at once when it is whole, or a stream of events.

use super::ApiError;
use super::form::{Choice, Form};
use crate::engine::Event;
use serde_json::Value;
use std::collections::VecDeque;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc::UnboundedReceiver;

/// An answer that is being written.
pub enum Answer {
    Whole(Whole),
    Stream(Stream),
}

/// All choices, when they have come to their ends.
pub struct Whole {
    events: UnboundedReceiver<Event>,
    form: Form,
}

/// Server-sent events. One who drops it cancels the work.
pub struct Stream {
    events: UnboundedReceiver<Event>,
    form: Form,
    ready: VecDeque<String>,
    open: usize,
    tokens: usize,
}

impl Answer {
    pub(super) fn new(events: UnboundedReceiver<Event>, form: Form, stream: bool) -> Answer {
        if !stream {
            return Answer::Whole(Whole { events, form });
        }
        let ready = form.first().iter().map(event).collect();
        Answer::Stream(Stream { events, ready, open: form.choices, tokens: 0, form })
    }
}

impl Whole {
    /// Waits for all choices.
    pub async fn finish(mut self) -> Result<Value, ApiError> {
        let mut choices = vec![Choice::default(); self.form.choices];
        let mut open = choices.len();
        while open > 0 {
            match self.events.recv().await {
                Some(Event::Text { choice, text, note }) => {
                    choices[choice].text += &text;
                    choices[choice].notes.extend(note);
                }
                Some(Event::Done { choice, end, tokens }) => {
                    (choices[choice].end, choices[choice].tokens) = (Some(end), tokens);
                    open -= 1;
                }
                Some(Event::Failed(message)) => return Err(ApiError::internal(message)),
                None => return Err(ended()),
            }
        }
        Ok(self.form.whole(&choices))
    }
}

impl Stream {
    /// The next event as it is sent; nothing behind the last.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<String>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            if self.open == 0 {
                return Poll::Ready(None);
            }
            match ready!(self.events.poll_recv(context)) {
                Some(Event::Text { choice, text, note }) => {
                    self.ready.push_back(event(&self.form.part(choice, &text, note.as_ref())));
                }
                Some(Event::Done { choice, end, tokens }) => {
                    self.ready.push_back(event(&self.form.end(choice, end)));
                    self.open -= 1;
                    self.tokens += tokens;
                    if self.open == 0 {
                        self.ready.extend(self.form.last(self.tokens).iter().map(event));
                        self.ready.push_back("data: [DONE]\n\n".into());
                    }
                }
                Some(Event::Failed(message)) => self.fail(&ApiError::internal(message)),
                None => self.fail(&ended()),
            }
        }
    }

    fn fail(&mut self, error: &ApiError) {
        self.ready.push_back(event(&error.json()));
        self.open = 0;
    }
}

fn ended() -> ApiError {
    ApiError::internal("the model's thread has ended: restart the server")
}

fn event(json: &Value) -> String {
    format!("data: {json}\n\n")
}
