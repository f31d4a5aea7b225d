//! Training byte pairs: the most frequent pair of neighbours becomes a token, again and again.
//!
//! Every pair knows where it occurs, and symbols are a linked list, so that a merge costs what it changes: the time grows
//! with the text, also where that is a single piece without spaces.

use super::pieces::{char_of, pieces};
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::ops::ControlFlow;

/// Two tokens that follow each other.
pub(super) type Pair = (u32, u32);

/// No symbol.
const NONE: u32 = u32::MAX;
/// Somebody hears about progress after so many pieces or merges.
const PIECES_PER_REPORT: usize = 1 << 14;

/// What training found.
pub(super) struct Vocabulary {
    /// By id, in GPT-2's spelling of bytes.
    pub tokens: Vec<String>,
    /// The pairs that are merged, in this order.
    pub merges: Vec<Pair>,
}

/// The ids of bytes: in the order of the characters that spell them.
pub(super) fn byte_ids() -> [u32; 256] {
    let mut order: Vec<u8> = (0..=255).collect();
    order.sort_unstable_by_key(|&b| char_of(b));
    let mut ids = [0; 256];
    for (&byte, id) in order.iter().zip(0..) {
        ids[usize::from(byte)] = id;
    }
    ids
}

/// Why there is no vocabulary.
pub(super) enum Ended {
    /// Whoever watches has had enough.
    Stopped,
    /// There are more different pieces than can be counted.
    TooLong,
}

/// Finds up to `size` tokens in a text. Pairs that occur less often than `least` times are no tokens. `watch` hears how
/// many tokens there are.
pub(super) fn train(
    text: &str,
    size: usize,
    least: u64,
    watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Vocabulary, Ended> {
    let mut symbols = Symbols::new(text, watch)?;
    let ids = byte_ids();
    let mut tokens = vec![String::new(); 256];
    for byte in 0..=255u8 {
        tokens[ids[usize::from(byte)] as usize] = char_of(byte).to_string();
    }
    let mut known: HashMap<String, u32> = tokens.iter().cloned().zip(0..).collect();
    let mut merges = Vec::new();
    let mut pairs = symbols.pairs();
    // The most frequent first; of those as frequent, the one whose tokens are older.
    let mut queue: BinaryHeap<(u64, Reverse<Pair>)> =
        pairs.iter().map(|(&pair, found)| (found.count, Reverse(pair))).collect();
    while tokens.len() < size {
        let Some((count, Reverse(pair))) = queue.pop() else { break };
        let Some(now) = pairs.get(&pair).map(|found| found.count) else { continue };
        if now != count {
            queue.push((now, Reverse(pair)));
            continue;
        }
        if count < least {
            break;
        }
        let token = format!("{}{}", tokens[pair.0 as usize], tokens[pair.1 as usize]);
        let id = *known.entry(token).or_insert_with_key(|token| {
            tokens.push(token.clone());
            tokens.len() as u32 - 1
        });
        merges.push(pair);
        for grown in symbols.merge(pair, id, &mut pairs) {
            if let Some(found) = pairs.get(&grown) {
                queue.push((found.count, Reverse(grown)));
            }
        }
        if watch(tokens.len()).is_break() {
            return Err(Ended::Stopped);
        }
    }
    Ok(Vocabulary { tokens, merges })
}

/// Where a pair occurs.
#[derive(Default)]
struct Found {
    /// How often, with the numbers of the pieces it is in.
    count: u64,
    /// The places of its first half, and places where it was before something else was merged.
    places: Vec<u32>,
    /// The number of the last merge that made more of it.
    grown_at: u32,
}

/// The different pieces of a text, as lists of tokens.
struct Symbols {
    /// A place is a byte; a token stands at its first, and the others have none.
    ids: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// The piece that a place is in.
    piece: Vec<u32>,
    /// How often each piece occurs.
    counts: Vec<u64>,
    /// How many merges there were.
    merges: u32,
}

impl Symbols {
    fn new(text: &str, watch: &mut dyn FnMut(usize) -> ControlFlow<()>) -> Result<Symbols, Ended> {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut counts = Vec::new();
        let mut different: Vec<&str> = Vec::new();
        for (k, piece) in text.split_inclusive('\n').flat_map(pieces).enumerate() {
            let number = *numbers.entry(piece).or_insert_with(|| {
                different.push(piece);
                counts.push(0);
                counts.len() - 1
            });
            counts[number] += 1;
            if k % PIECES_PER_REPORT == 0 && watch(0).is_break() {
                return Err(Ended::Stopped);
            }
        }
        let length: usize = different.iter().map(|piece| piece.len()).sum();
        if length >= NONE as usize {
            return Err(Ended::TooLong);
        }
        let ids = byte_ids();
        let vec = || Vec::with_capacity(length);
        let mut symbols =
            Symbols { ids: vec(), next: vec(), previous: vec(), piece: vec(), counts, merges: 0 };
        for (piece, number) in different.iter().zip(0..) {
            let first = symbols.ids.len() as u32;
            let last = first + piece.len() as u32 - 1;
            symbols.ids.extend(piece.bytes().map(|b| ids[usize::from(b)]));
            symbols.next.extend((first..=last).map(|k| if k == last { NONE } else { k + 1 }));
            symbols.previous.extend((first..=last).map(|k| if k == first { NONE } else { k - 1 }));
            symbols.piece.extend((first..=last).map(|_| number));
        }
        Ok(symbols)
    }

    fn id(&self, place: u32) -> u32 {
        self.ids[place as usize]
    }

    fn count(&self, place: u32) -> u64 {
        self.counts[self.piece[place as usize] as usize]
    }

    /// The pair that begins at a place.
    fn pair_at(&self, place: u32) -> Option<Pair> {
        let next = self.next[place as usize];
        (next != NONE).then(|| (self.id(place), self.id(next)))
    }

    /// All pairs of neighbours.
    fn pairs(&self) -> HashMap<Pair, Found> {
        let all = || (0..self.ids.len() as u32).filter_map(|place| Some((place, self.pair_at(place)?)));
        let mut lengths: HashMap<Pair, usize> = HashMap::new();
        all().for_each(|(_, pair)| *lengths.entry(pair).or_default() += 1);
        let empty = |length| Found { places: Vec::with_capacity(length), ..Found::default() };
        let mut pairs: HashMap<Pair, Found> =
            lengths.into_iter().map(|(pair, length)| (pair, empty(length))).collect();
        for (place, pair) in all() {
            let found = pairs.entry(pair).or_default();
            found.count += self.count(place);
            found.places.push(place);
        }
        pairs
    }

    /// Writes the token `id` wherever `pair` is, from left to right. Gives the pairs that there are more of now.
    fn merge(&mut self, pair: Pair, id: u32, pairs: &mut HashMap<Pair, Found>) -> Vec<Pair> {
        let mut places = pairs.remove(&pair).unwrap_or_default().places;
        places.sort_unstable();
        self.merges += 1;
        let number = self.merges;
        let mut grown: Vec<Pair> = Vec::new();
        let mut more = |pairs: &mut HashMap<Pair, Found>, of: Pair, place: u32, count: u64| {
            let found = match pairs.entry(of) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(Found::default()),
            };
            if found.places.last() != Some(&place) {
                found.places.push(place);
            }
            found.count += count;
            if found.grown_at != number {
                found.grown_at = number;
                grown.push(of);
            }
        };
        let fewer = |pairs: &mut HashMap<Pair, Found>, of: Pair, count: u64| {
            if let Entry::Occupied(mut known) = pairs.entry(of) {
                let found = known.get_mut();
                found.count = found.count.saturating_sub(count);
                if found.count == 0 {
                    known.remove();
                }
            }
        };
        for place in places {
            if self.pair_at(place) != Some(pair) {
                continue;
            }
            let second = self.next[place as usize];
            let (before, after) = (self.previous[place as usize], self.next[second as usize]);
            let count = self.count(place);
            if before != NONE {
                fewer(pairs, (self.id(before), pair.0), count);
                more(pairs, (self.id(before), id), before, count);
            }
            if after != NONE {
                fewer(pairs, (pair.1, self.id(after)), count);
                more(pairs, (id, self.id(after)), place, count);
                self.previous[after as usize] = place;
            }
            self.ids[place as usize] = id;
            self.next[place as usize] = after;
            self.ids[second as usize] = NONE;
            self.next[second as usize] = NONE;
        }
        grown
    }
}
