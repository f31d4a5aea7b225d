//! States and edges, as they are made.

use super::{Edge, Grammar, State};

/// The most states of a grammar: a request is answered soon, whatever it asks for.
const MAX_STATES: usize = 200_000;

#[derive(Default)]
pub struct Builder {
    states: Vec<State>,
}

impl Builder {
    pub fn state(&mut self) -> u32 {
        self.states.push(State::default());
        (self.states.len() - 1) as u32
    }

    /// Whether there are more states than a grammar may have.
    pub fn is_too_large(&self) -> bool {
        self.states.len() > MAX_STATES
    }

    pub fn edge(&mut self, state: u32, edge: Edge) {
        self.states[state as usize].edges.push(edge);
    }

    /// A byte of a range, to a state.
    pub fn range(&mut self, state: u32, from: u8, to: u8, next: u32) {
        self.edge(state, Edge::Bytes { from, to, next });
    }

    /// Any of some bytes, to a state.
    pub fn any_of(&mut self, state: u32, bytes: &[u8], next: u32) {
        for &byte in bytes {
            self.range(state, byte, byte, next);
        }
    }

    pub fn empty(&mut self, state: u32, next: u32) {
        self.edge(state, Edge::Empty(next));
    }

    /// A text; the state behind it.
    pub fn literal(&mut self, mut state: u32, text: &str) -> u32 {
        for &byte in text.as_bytes() {
            let next = self.state();
            self.range(state, byte, byte, next);
            state = next;
        }
        state
    }

    /// What begins at `start`; the state behind it.
    pub fn call(&mut self, state: u32, start: u32) -> u32 {
        let next = self.state();
        self.edge(state, Edge::Call { start, next });
        next
    }

    /// Marks where what was called ends.
    pub fn end(&mut self, state: u32) {
        self.states[state as usize].ends = true;
    }

    pub fn finish(self, start: u32) -> Grammar {
        Grammar { states: self.states, start }
    }
}
