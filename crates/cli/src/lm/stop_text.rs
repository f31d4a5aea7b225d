//! Text that is shown as it comes, up to a text that ends it.

use crate::output::{Output, say_part};

/// Shows what is sure not to be the beginning of the text that ends it.
pub struct StopText {
    stop: String,
    text: String,
    shown: usize,
    is_shown: bool,
    ended: bool,
}

impl StopText {
    /// An empty text for `stop` never ends early. Machines are shown nothing.
    pub fn new(stop: &str, output: Output) -> StopText {
        let (stop, text) = (stop.to_string(), String::new());
        StopText { stop, text, shown: 0, is_shown: !output.json, ended: false }
    }

    fn show(&mut self, up_to: usize) -> bool {
        if !self.is_shown || up_to <= self.shown {
            return true;
        }
        let part = &self.text[self.shown..up_to];
        self.shown = up_to;
        say_part(part)
    }

    /// Takes the next piece; false if nothing more is wanted.
    pub fn push(&mut self, piece: &str) -> bool {
        if self.ended {
            return false;
        }
        self.text.push_str(piece);
        if let Some(end) = (!self.stop.is_empty()).then(|| self.text.find(&self.stop)).flatten() {
            self.text.truncate(end);
            self.ended = true;
            return false;
        }
        let begins = |&n: &usize| self.stop.get(..n).is_some_and(|s| self.text.ends_with(s));
        let held = (1..self.stop.len()).rev().find(begins).unwrap_or(0);
        self.show(self.text.len() - held)
    }

    /// The whole text, the rest of it shown.
    pub fn finish(mut self) -> String {
        self.show(self.text.len());
        self.text
    }
}
