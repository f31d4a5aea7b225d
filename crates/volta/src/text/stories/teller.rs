//! The world of one story, and how sentences about it are worded.

use super::draw::StoryRng;
use super::lexicon::{COLORS, GLAD, PEOPLE, PLACES, Place, Pronouns, SAD, THINGS, TIMES, Thing};

/// Where a thing is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum At {
    /// With a person.
    With(usize),
    /// At a place's spot.
    Spot { place: usize, spot: usize },
}

pub(super) struct Item {
    pub thing: &'static Thing,
    pub owner: usize,
    pub at: At,
    color: &'static str,
}

pub(super) struct Person {
    pub name: &'static str,
    pub pronouns: &'static Pronouns,
    pub sad: bool,
}

pub(super) struct Teller<'a> {
    pub draw: &'a mut StoryRng,
    pub people: Vec<Person>,
    pub items: Vec<Item>,
    pub place: usize,
    /// The other place of the story, once they have been there.
    pub elsewhere: Option<usize>,
    text: String,
    /// Whom the last sentence was about, so that the next may say `she`.
    topic: Option<usize>,
}

impl<'a> Teller<'a> {
    /// Who is there, where, and with which things.
    pub fn open(draw: &'a mut StoryRng) -> Teller<'a> {
        let crowd = if draw.once_in(3) { 3 } else { 2 };
        let people = draw.several(crowd, PEOPLE.len()).into_iter().map(|p| {
            let (name, pronouns) = PEOPLE[p];
            Person { name, pronouns, sad: false }
        });
        let people: Vec<Person> = people.collect();
        let place = draw.below(PLACES.len());
        let count = 1 + draw.below(crowd);
        let things = draw.several(count, THINGS.len());
        let items = things.into_iter().enumerate().map(|(owner, thing)| {
            let color = *draw.pick(&COLORS);
            Item { thing: &THINGS[thing], owner, at: At::With(owner), color }
        });
        let items: Vec<Item> = items.collect();
        let mut teller =
            Teller { draw, people, items, place, elsewhere: None, text: String::new(), topic: None };
        let time = *teller.draw.pick(&TIMES);
        let names = list(teller.people.iter().map(|p| p.name.to_string()));
        teller.say(None, format!("{time}, {names} were {}.", teller.here()));
        for item in 0..teller.items.len() {
            let Item { thing, owner, color, .. } = teller.items[item];
            let who = teller.subject(owner);
            teller.say(Some(owner), format!("{who} had a {color} {}.", thing.noun));
        }
        teller
    }

    /// Says where everything ended up, and returns the story.
    pub fn close(mut self) -> String {
        self.topic = None;
        let things: Vec<String> = (0..self.items.len()).map(|item| self.whereabouts(item)).collect();
        self.say(None, format!("In the end {}.", things.join(" and ")));
        match self.people.iter().position(|p| p.sad) {
            Some(sad) => {
                let name = self.people[sad].name;
                self.say(None, format!("{name} was still sad, but tomorrow was a new day."));
            }
            None => self.say(None, "They all went home and slept well.".into()),
        }
        self.text + "\n\n"
    }

    /// `Mia had the ball`, or `the ball was still in the sand by the sea`.
    fn whereabouts(&self, item: usize) -> String {
        let noun = self.items[item].thing.noun;
        match self.items[item].at {
            At::With(person) => format!("{} had the {noun}", self.people[person].name),
            At::Spot { place, spot } => {
                format!("the {noun} was still {} {}", PLACES[place].spots[spot], place_name(&PLACES[place]))
            }
        }
    }

    /// Adds a sentence about somebody.
    pub fn say(&mut self, topic: Option<usize>, sentence: String) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(&capitalised(&sentence));
        self.topic = topic;
    }

    /// A person at the beginning of a sentence: `she` if the last one was about her.
    pub fn subject(&mut self, person: usize) -> String {
        let Person { name, pronouns, .. } = &self.people[person];
        let again = self.topic == Some(person) && !self.draw.once_in(4);
        if again { pronouns.subject.to_string() } else { name.to_string() }
    }

    /// Another person in a sentence about somebody: `her` where that cannot be misunderstood.
    pub fn object(&mut self, person: usize, subject: usize) -> String {
        let Person { name, pronouns, .. } = &self.people[person];
        let clear = pronouns.subject != self.people[subject].pronouns.subject && self.people.len() == 2;
        if clear && self.draw.once_in(2) { pronouns.object.to_string() } else { name.to_string() }
    }

    /// A place that nobody has been to.
    pub fn new_place(&mut self) -> usize {
        (self.place + 1 + self.draw.below(PLACES.len() - 1)) % PLACES.len()
    }

    /// Whether a thing lies at a place.
    pub fn lies_at(&self, there: usize) -> bool {
        self.items.iter().any(|item| matches!(item.at, At::Spot { place, .. } if place == there))
    }

    /// `in the sand`, and which place that is if nobody is there.
    pub fn at_spot(&self, place: usize, spot: usize) -> String {
        let there = &PLACES[place];
        if place == self.place {
            there.spots[spot].into()
        } else {
            format!("{} {}", there.spots[spot], place_name(there))
        }
    }

    /// `in the garden`, where everybody is.
    pub fn here(&self) -> String {
        place_name(&PLACES[self.place])
    }

    /// `the ball`, or with its colour `the red ball`.
    pub fn the(&mut self, item: usize) -> String {
        let Item { thing, color, .. } = self.items[item];
        if self.draw.once_in(3) {
            format!("the {color} {}", thing.noun)
        } else {
            format!("the {}", thing.noun)
        }
    }

    /// A thing that somebody holds, with the holder.
    pub fn held(&mut self) -> Option<(usize, usize)> {
        let held: Vec<(usize, usize)> = (0..self.items.len())
            .filter_map(|item| match self.items[item].at {
                At::With(person) => Some((item, person)),
                At::Spot { .. } => None,
            })
            .collect();
        (!held.is_empty()).then(|| *self.draw.pick(&held))
    }

    /// A thing that lies here, with its spot.
    pub fn lying(&mut self) -> Option<(usize, usize)> {
        let lying: Vec<(usize, usize)> = (0..self.items.len())
            .filter_map(|item| match self.items[item].at {
                At::Spot { place, spot } if place == self.place => Some((item, spot)),
                _ => None,
            })
            .collect();
        (!lying.is_empty()).then(|| *self.draw.pick(&lying))
    }

    /// Somebody else.
    pub fn other(&mut self, person: usize) -> usize {
        (person + 1 + self.draw.below(self.people.len() - 1)) % self.people.len()
    }

    pub fn anybody(&mut self) -> usize {
        self.draw.below(self.people.len())
    }

    /// Says how somebody feels, and why.
    pub fn feel(&mut self, person: usize, glad: bool, cause: &str) {
        let word = *self.draw.pick(if glad { &GLAD } else { &SAD });
        let who = self.subject(person);
        self.people[person].sad = !glad;
        self.say(Some(person), format!("{who} was {word} because {cause}."));
    }

    /// `she`, within a sentence about her.
    pub fn pronoun(&self, person: usize) -> &'static str {
        self.people[person].pronouns.subject
    }
}

fn place_name(place: &Place) -> String {
    format!("{} the {}", place.preposition, place.name)
}

fn capitalised(sentence: &str) -> String {
    let at = sentence.find(char::is_alphabetic).unwrap_or(0);
    let (before, rest) = sentence.split_at(at);
    let mut chars = rest.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase()).into_iter();
    before.chars().chain(first).chain(chars).collect()
}

/// `a, b and c`.
fn list(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}
