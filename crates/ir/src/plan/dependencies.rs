//! Which groups of values wait for which, while groups are added and joined: a graph without cycles, kept in an order in which
//! nobody comes before what it waits for. A question about a few groups looks only at those that stand between them in that
//! order, from both ends at once, so it costs as much as there is between them, not as much as there is.
//!
//! The order is kept as in Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs" (2007); places
//! in it are numbers with room between them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Edges that one question follows at most; a join that would need more is not made. Graphs of a few thousand groups have fewer.
const MAX_STEPS: usize = 1 << 15;

/// Between places of neighbours, at first.
const GAP: u64 = 1 << 32;

struct Vertex {
    /// What it waits for, and who waits for it, directly. What was joined into another group stays a vertex of its own.
    before: Vec<u32>,
    after: Vec<u32>,
    /// Where it stands in the order, while it is not joined into another one.
    place: u64,
    /// The group that it was joined into, or itself.
    joined: u32,
}

#[derive(Default)]
pub(super) struct Dependencies {
    vertices: Vec<Vertex>,
    /// Groups by their places.
    order: BTreeMap<u64, u32>,
    search: RefCell<Search>,
}

/// Marks of a search, by vertex: the number of the last one that saw it.
#[derive(Default)]
struct Search {
    number: u32,
    inside: Vec<u32>,
    sides: [Vec<u32>; 2],
    /// Edges that were followed so far.
    #[cfg(test)]
    steps: usize,
}

/// What lies between groups and themselves, or others.
enum Between {
    /// A way that leads through a group outside.
    Way,
    /// None, and these are all that wait for them, up to the last of them in the order.
    NoneAfter(Vec<u32>),
    /// None, and these are all that they wait for, from the first of them on.
    NoneBefore(Vec<u32>),
    /// Nobody knows: there is too much to look at.
    TooMuch,
}

/// The part of a search that goes one way: what it has found, and how far it has looked.
struct Side {
    found: Vec<u32>,
    vertex: usize,
    edge: usize,
}

/// The way of a search that looks at what groups wait for; the other one looks at those who wait.
const BEFORE: usize = 0;

impl Dependencies {
    /// Adds a group that waits for others. Groups are numbered as they are added.
    pub fn push(&mut self, before: &[usize]) {
        let number = self.vertices.len() as u32;
        let place = self.order.last_key_value().map_or(0, |(place, _)| *place) + GAP;
        before.iter().for_each(|&g| self.vertices[g].after.push(number));
        let before = before.iter().map(|&g| g as u32).collect();
        self.vertices.push(Vertex { before, after: Vec::new(), place, joined: number });
        self.order.insert(place, number);
    }

    /// Whether no group outside `set` stands between two of them, or between one of them and `others`, for which one of them
    /// is to wait.
    pub fn is_acyclic_merge(&self, set: &[usize], others: &[usize]) -> bool {
        let between = self.between(set, others, |_, _| false, MAX_STEPS);
        matches!(between, Between::NoneAfter(_) | Between::NoneBefore(_))
    }

    /// Whether neither of two groups waits for the other, as far as can be told.
    pub fn are_apart(&self, a: usize, b: usize) -> bool {
        self.is_acyclic_merge(&[a], &[b]) && self.is_acyclic_merge(&[b], &[a])
    }

    /// Makes one group of `set`, which is `into` from now on: it waits for what any of them waited for, and for `others`; and
    /// whoever waited for one of them waits for `into`. They were found to be free to join.
    pub fn join(&mut self, into: usize, set: &[usize], others: &[usize]) {
        self.reorder(into, set, others);
        let is_new = |g: &u32| *g as usize != into;
        let mut before: Vec<u32> = Vec::new();
        for &g in set.iter().filter(|&&g| g != into) {
            before.extend(self.vertices[g].before.iter().copied().filter(is_new));
            self.vertices[g].joined = into as u32;
            for place in 0..self.vertices[g].after.len() {
                let waits = self.vertices[g].after[place];
                if !set.contains(&(waits as usize)) {
                    self.vertices[waits as usize].before.push(into as u32);
                    self.vertices[into].after.push(waits);
                }
            }
        }
        before.extend(others.iter().map(|&g| g as u32).filter(|g| !set.contains(&(*g as usize))));
        before.sort_unstable();
        before.dedup();
        before.iter().for_each(|&g| self.vertices[g as usize].after.push(into as u32));
        self.vertices[into].before.extend(before);
    }

    /// The place of a group, or of what it was joined into.
    fn place(&self, mut v: u32) -> u64 {
        while self.vertices[v as usize].joined != v {
            v = self.vertices[v as usize].joined;
        }
        self.vertices[v as usize].place
    }

    /// Looks for a way from `set` through what is outside, unless it `ignores` that, back to `set` or to `others`.
    fn between(
        &self,
        set: &[usize],
        others: &[usize],
        ignores: impl Fn(&Vertex, u32) -> bool,
        most: usize,
    ) -> Between {
        let outside = others.iter().filter(|g| !set.contains(g)).map(|&g| g as u32);
        let outside: Vec<u32> = outside.collect();
        let places = || set.iter().map(|&g| self.place(g as u32));
        let (Some(first), Some(last)) = (places().min(), places().max()) else {
            return Between::NoneAfter(Vec::new());
        };
        let last = outside.iter().map(|&g| self.place(g)).fold(last, u64::max);
        let search = &mut *self.search.borrow_mut();
        let Search { number, inside, sides, .. } = search;
        *number += 1;
        let count = self.vertices.len();
        [&mut *inside].into_iter().chain(sides.iter_mut()).for_each(|marks| marks.resize(count, 0));
        set.iter().for_each(|&g| inside[g] = *number);
        let mut found: [Vec<u32>; 2] = [Vec::new(), Vec::new()];
        for &g in outside.iter().filter(|&&g| self.place(g) >= first) {
            if sides[BEFORE][g as usize] != *number {
                sides[BEFORE][g as usize] = *number;
                found[BEFORE].push(g);
            }
        }
        // What they start from is not a part of what they find.
        let roots = [found[BEFORE].len() + set.len(), set.len()];
        found.iter_mut().for_each(|found| found.extend(set.iter().map(|&g| g as u32)));
        let mut both = found.map(|found| Side { found, vertex: 0, edge: 0 });
        #[cfg(test)]
        let steps = &mut search.steps;
        for step in 0.. {
            #[cfg(test)]
            {
                *steps += 1;
            }
            let way = step % 2;
            let Side { found, vertex, edge } = &mut both[way];
            let Some(&at) = found.get(*vertex) else {
                let others = roots[way] - set.len();
                let found = std::mem::take(found);
                let all = found[..others].iter().chain(&found[roots[way]..]).copied().collect();
                return if way == BEFORE { Between::NoneBefore(all) } else { Between::NoneAfter(all) };
            };
            if step > most {
                return Between::TooMuch;
            }
            let v = &self.vertices[at as usize];
            let Some(&next) = (if way == BEFORE { &v.before } else { &v.after }).get(*edge) else {
                (*vertex, *edge) = (*vertex + 1, 0);
                continue;
            };
            *edge += 1;
            if inside[next as usize] == *number {
                if inside[at as usize] != *number {
                    return Between::Way;
                }
                continue;
            }
            let beyond = |place: u64| if way == BEFORE { place < first } else { place > last };
            if sides[way][next as usize] == *number
                || ignores(&self.vertices[next as usize], next)
                || beyond(self.place(next))
            {
                continue;
            }
            if sides[1 - way][next as usize] == *number {
                return Between::Way;
            }
            sides[way][next as usize] = *number;
            found.push(next);
        }
        unreachable!("one side comes to an end")
    }

    /// Gives `into` a place behind all that one of `set` waits for, and `others`, and before all who wait for one of them, by
    /// moving the few that stand in the way.
    fn reorder(&mut self, into: usize, set: &[usize], others: &[usize]) {
        let joined = |v: &Vertex, number: u32| v.joined != number;
        let between = self.between(set, others, joined, usize::MAX);
        let place = |g: &usize| self.vertices[*g].place;
        let first = set.iter().map(place).min().expect("there is one");
        let last = set.iter().chain(others).map(place).max().expect("there is one");
        let by_place = |mut all: Vec<u32>| {
            all.sort_unstable_by_key(|&v| self.vertices[v as usize].place);
            all
        };
        let (moved, from_behind) = match between {
            Between::NoneAfter(all) => (by_place(all), false),
            Between::NoneBefore(all) => (by_place(all), true),
            Between::Way | Between::TooMuch => unreachable!("they were found to be free to join"),
        };
        let anchor = if from_behind { first } else { last };
        let owner = self.order[&anchor];
        for &g in set {
            self.order.remove(&self.vertices[g].place);
        }
        moved.iter().for_each(|&v| {
            self.order.remove(&self.vertices[v as usize].place);
        });
        if self.order.contains_key(&anchor) {
            // The last is one that it is to wait for.
            self.put_after(owner, into as u32);
        } else {
            self.put(anchor, into as u32);
        }
        let mut at = into as u32;
        if from_behind {
            for &v in moved.iter().rev() {
                self.put_before(at, v);
                at = v;
            }
        } else {
            for &v in &moved {
                self.put_after(at, v);
                at = v;
            }
        }
    }

    fn put(&mut self, place: u64, v: u32) {
        self.vertices[v as usize].place = place;
        self.order.insert(place, v);
    }

    fn put_after(&mut self, other: u32, v: u32) {
        let place = |all: &Dependencies| {
            let here = all.vertices[other as usize].place;
            let next = all.order.range((Excluded(here), Unbounded)).next();
            next.map_or(here + GAP, |(next, _)| here + (next - here) / 2)
        };
        if place(self) == self.vertices[other as usize].place {
            self.make_room();
        }
        self.put(place(self), v);
    }

    fn put_before(&mut self, other: u32, v: u32) {
        let place = |all: &Dependencies| {
            let here = all.vertices[other as usize].place;
            let next = all.order.range(..here).next_back().map_or(0, |(next, _)| *next);
            next + (here - next) / 2
        };
        if self.order.contains_key(&place(self)) || place(self) == 0 {
            self.make_room();
        }
        self.put(place(self), v);
    }

    /// Spreads all places evenly.
    fn make_room(&mut self) {
        for (number, (_, v)) in (1..).zip(std::mem::take(&mut self.order)) {
            self.put(number * GAP, v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by looking at everything: what each group waits for, directly and through others.
    #[derive(Default)]
    struct Plain {
        waits: Vec<Vec<bool>>,
    }

    impl Plain {
        fn push(&mut self, before: &[usize]) {
            let count = self.waits.len();
            let waits = (0..count).map(|g| before.iter().any(|&b| b == g || self.waits[b][g])).collect();
            self.waits.push(waits);
            self.waits.iter_mut().for_each(|waits: &mut Vec<bool>| waits.resize(count + 1, false));
        }

        fn is_acyclic_merge(&self, set: &[usize], others: &[usize]) -> bool {
            let waits_for_set = |g: usize| set.iter().any(|&s| self.waits[g][s]);
            let outside = |g: &usize| !set.contains(g);
            let stands_between = |g| waits_for_set(g) && set.iter().any(|&s| self.waits[s][g]);
            !others.iter().copied().filter(outside).any(waits_for_set)
                && !(0..self.waits.len()).filter(outside).any(stands_between)
        }

        fn join(&mut self, into: usize, set: &[usize], others: &[usize]) {
            let all: Vec<usize> = set.iter().chain(others).copied().collect();
            let is_new =
                |g: usize| all.iter().any(|&o| self.waits[o][g]) || others.contains(&g) && !set.contains(&g);
            let mut waits: Vec<bool> = (0..self.waits.len()).map(is_new).collect();
            for g in (0..self.waits.len()).filter(|g| !set.contains(g)) {
                if set.iter().any(|&s| self.waits[g][s]) {
                    self.waits[g][into] = true;
                    for (own, &new) in self.waits[g].iter_mut().zip(&waits) {
                        *own |= new;
                    }
                }
            }
            waits[into] = false;
            self.waits[into] = waits;
        }
    }

    /// Numbers that look random.
    struct Dice(u64);

    impl Dice {
        fn throw(&mut self, below: usize) -> usize {
            self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (self.0 >> 33) as usize % below
        }
    }

    #[test]
    fn groups_join_as_if_everything_was_looked_at() {
        let (mut joined, mut refused) = (0, 0);
        for seed in 0..60 {
            let mut dice = Dice(seed);
            let (mut plain, mut quick) = (Plain::default(), Dependencies::default());
            let mut alive: Vec<usize> = Vec::new();
            for step in 0..120 {
                let near = |dice: &mut Dice, alive: &[usize]| {
                    let reach = alive.len().min(if dice.throw(4) == 0 { alive.len() } else { 6 });
                    alive[alive.len() - 1 - dice.throw(reach)]
                };
                let some = |dice: &mut Dice, alive: &[usize], most: usize| {
                    let count = if alive.is_empty() { 0 } else { dice.throw(most + 1) };
                    let mut some: Vec<usize> = (0..count).map(|_| near(dice, alive)).collect();
                    some.sort_unstable_by(|a, b| b.cmp(a));
                    some.dedup();
                    some
                };
                if step % 3 != 2 {
                    let before = some(&mut dice, &alive, 3);
                    alive.push(plain.waits.len());
                    plain.push(&before);
                    quick.push(&before);
                    continue;
                }
                let (set, others) = (some(&mut dice, &alive, 3), some(&mut dice, &alive, 2));
                let may = plain.is_acyclic_merge(&set, &others);
                assert_eq!(
                    quick.is_acyclic_merge(&set, &others),
                    may,
                    "{set:?} with {others:?}, seed {seed}"
                );
                let Some(&into) = set.iter().min() else { continue };
                if may {
                    plain.join(into, &set, &others);
                    quick.join(into, &set, &others);
                    alive.retain(|g| *g == into || !set.contains(g));
                    joined += 1;
                } else {
                    refused += 1;
                }
                for (k, &a) in alive.iter().enumerate() {
                    for &b in &alive[..k] {
                        if plain.is_acyclic_merge(&[a], &[]) && plain.is_acyclic_merge(&[b], &[]) {
                            let apart = !plain.waits[a][b] && !plain.waits[b][a];
                            assert_eq!(quick.are_apart(a, b), apart, "{a} and {b}, seed {seed}");
                        }
                    }
                }
                // Nobody stands before what it waits for.
                for &g in &alive {
                    for &other in alive.iter().filter(|&&other| plain.waits[g][other]) {
                        assert!(quick.vertices[other].place < quick.vertices[g].place);
                    }
                }
            }
        }
        assert!(joined > 300 && refused > 300, "{joined} joined, {refused} refused");
    }

    #[test]
    fn places_never_run_out() {
        let mut all = Dependencies::default();
        all.push(&[]);
        (1..=200).for_each(|_| all.push(&[0]));
        // Each has to stand right before the same one.
        for g in 201..300 {
            all.push(&[]);
            assert!(all.is_acyclic_merge(&[0], &[g]));
            all.join(0, &[0], &[g]);
        }
        assert!((201..300).all(|g| all.vertices[g].place < all.vertices[0].place));
        assert!((1..=200).all(|g| all.vertices[g].place > all.vertices[0].place));
    }

    /// How many edges are followed to join what belongs together in a long chain, of which all read one early group.
    fn steps(length: usize) -> usize {
        let mut all = Dependencies::default();
        all.push(&[]);
        let mut last = 0;
        for g in 1..length {
            all.push(&[last, 0]);
            assert!(g < 4 || !all.is_acyclic_merge(&[0, g], &[]));
            if g % 3 == 0 {
                assert!(all.is_acyclic_merge(&[last, g], &[]));
                all.join(last, &[last, g], &[]);
            } else {
                last = g;
            }
        }
        all.search.into_inner().steps
    }

    #[test]
    fn questions_about_neighbours_cost_the_same_in_long_graphs() {
        let (short, long) = (steps(1000), steps(10_000));
        assert!(long <= 12 * short, "{short} and {long} steps");
    }
}
