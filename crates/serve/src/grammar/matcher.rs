//! Following a text through a grammar: an automaton whose states are made when they are first met.
//!
//! A place is a state of the grammar and what it goes back to: a stack, shared and numbered. A set of places is a state of the
//! automaton; what each byte leads to is remembered.

use super::{Edge, Grammar};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How deep objects and arrays may stand in each other.
const MAX_DEPTH: u32 = 96;
/// Sets that are kept: a thousand bytes each.
const MAX_SETS: usize = 8192;
/// The most places of a set.
const MAX_PLACES: usize = 4096;

/// A state of the grammar, and the number of its stack.
type Place = (u32, u32);

const UNKNOWN: u32 = u32::MAX;
/// The set of no place, from which nothing leads out.
const DEAD: u32 = 0;
/// The stack of the grammar's own start.
const BOTTOM: u32 = 0;

struct Set {
    places: Vec<Place>,
    /// Whether the text may end here.
    ends: bool,
    next: Box<[u32; 256]>,
}

/// A text on its way through a grammar.
pub struct Matcher {
    grammar: Arc<Grammar>,
    /// Where each stack goes back to, the stack below, and how many are below.
    stacks: Vec<(u32, u32, u32)>,
    stack_numbers: HashMap<(u32, u32), u32>,
    sets: Vec<Set>,
    set_numbers: HashMap<Vec<Place>, u32>,
    now: u32,
}

impl Matcher {
    pub fn new(grammar: Arc<Grammar>) -> Matcher {
        let mut matcher = Matcher {
            stacks: vec![(0, 0, 0)],
            stack_numbers: HashMap::new(),
            sets: Vec::new(),
            set_numbers: HashMap::new(),
            now: DEAD,
            grammar,
        };
        matcher.set_of(Vec::new(), false);
        matcher.now = matcher.closed(vec![(matcher.grammar.start, BOTTOM)]);
        matcher
    }

    /// Where the text stands.
    pub fn now(&self) -> u32 {
        self.now
    }

    /// Whether the text may end.
    pub fn may_end(&self) -> bool {
        self.sets[self.now as usize].ends
    }

    /// Whether nothing may follow.
    pub fn is_complete(&self) -> bool {
        let set = &self.sets[self.now as usize];
        set.ends && set.places.is_empty()
    }

    /// Where a byte leads, if it may come.
    pub fn step(&mut self, from: u32, byte: u8) -> Option<u32> {
        let known = self.sets[from as usize].next[byte as usize];
        let next = if known == UNKNOWN { self.find(from, byte) } else { known };
        (next != DEAD).then_some(next)
    }

    /// Goes on with bytes; false, and the text stays where it is, if they may not come.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let mut at = self.now;
        for &byte in bytes {
            match self.step(at, byte) {
                Some(next) => at = next,
                None => return false,
            }
        }
        self.now = at;
        if self.sets.len() > MAX_SETS {
            self.forget();
        }
        true
    }

    /// Forgets all sets but the present one.
    fn forget(&mut self) {
        let now = self.sets.swap_remove(self.now as usize);
        self.sets.clear();
        self.set_numbers.clear();
        self.set_of(Vec::new(), false);
        self.now = self.set_of(now.places, now.ends);
    }

    fn find(&mut self, from: u32, byte: u8) -> u32 {
        let mut places = Vec::new();
        for &(state, stack) in &self.sets[from as usize].places {
            for edge in &self.grammar.states[state as usize].edges {
                if let Edge::Bytes { from, to, next } = *edge
                    && (from..=to).contains(&byte)
                {
                    places.push((next, stack));
                }
            }
        }
        let next = self.closed(places);
        self.sets[from as usize].next[byte as usize] = next;
        next
    }

    /// The set of what places lead to without a byte.
    fn closed(&mut self, mut open: Vec<Place>) -> u32 {
        let (mut seen, mut kept, mut ends) = (HashSet::new(), Vec::new(), false);
        let grammar = self.grammar.clone();
        while let Some((state, stack)) = open.pop() {
            if !seen.insert((state, stack)) || seen.len() > MAX_PLACES {
                continue;
            }
            let state_of = &grammar.states[state as usize];
            if state_of.ends {
                if stack == BOTTOM {
                    ends = true;
                } else {
                    let (next, below, _) = self.stacks[stack as usize];
                    open.push((next, below));
                }
            }
            let mut reads = false;
            for edge in &state_of.edges {
                match *edge {
                    Edge::Bytes { .. } => reads = true,
                    Edge::Empty(next) => open.push((next, stack)),
                    Edge::Call { start, next } => {
                        open.extend(self.stacked(next, stack).map(|stack| (start, stack)));
                    }
                }
            }
            if reads {
                kept.push((state, stack));
            }
        }
        kept.sort_unstable();
        // What the text has come to its end with is no dead end.
        if kept.is_empty() && !ends {
            return DEAD;
        }
        self.set_of(kept, ends)
    }

    fn set_of(&mut self, places: Vec<Place>, ends: bool) -> u32 {
        let mut key = places.clone();
        // Sets of the same places may differ in whether the text may end: no place has this number.
        if ends {
            key.push((u32::MAX, u32::MAX));
        }
        if let Some(&number) = self.set_numbers.get(&key) {
            return number;
        }
        let number = self.sets.len() as u32;
        let unknown = if places.is_empty() { DEAD } else { UNKNOWN };
        self.sets.push(Set { places, ends, next: Box::new([unknown; 256]) });
        self.set_numbers.insert(key, number);
        number
    }

    /// The stack that goes back to a state, and then on to another stack; none where that would be too deep.
    fn stacked(&mut self, next: u32, below: u32) -> Option<u32> {
        if let Some(&number) = self.stack_numbers.get(&(next, below)) {
            return Some(number);
        }
        let depth = self.stacks[below as usize].2 + 1;
        if depth > MAX_DEPTH {
            return None;
        }
        let number = self.stacks.len() as u32;
        self.stacks.push((next, below, depth));
        self.stack_numbers.insert((next, below), number);
        Some(number)
    }
}
