//! The words of the stories.

/// How a person is spoken of.
pub(super) struct Pronouns {
    pub subject: &'static str,
    pub object: &'static str,
    pub possessive: &'static str,
}

const SHE: &Pronouns = &Pronouns { subject: "she", object: "her", possessive: "her" };
const HE: &Pronouns = &Pronouns { subject: "he", object: "him", possessive: "his" };

pub(super) const PEOPLE: [(&str, &Pronouns); 14] = [
    ("Mia", SHE),
    ("Tom", HE),
    ("Anna", SHE),
    ("Ben", HE),
    ("Lily", SHE),
    ("Sam", HE),
    ("Nora", SHE),
    ("Max", HE),
    ("Ella", SHE),
    ("Leo", HE),
    ("Ruth", SHE),
    ("Finn", HE),
    ("Ida", SHE),
    ("Jack", HE),
];

/// A thing, and what one does with it, before and after its name.
pub(super) struct Thing {
    pub noun: &'static str,
    pub verb: &'static str,
    pub after: &'static str,
}

const fn thing(noun: &'static str, verb: &'static str, after: &'static str) -> Thing {
    Thing { noun, verb, after }
}

pub(super) const THINGS: [Thing; 14] = [
    thing("ball", "kicked", "up and down"),
    thing("kite", "flew", "high in the sky"),
    thing("book", "read", "for a long time"),
    thing("drum", "beat", "very loudly"),
    thing("boat", "pulled", "along on a string"),
    thing("lamp", "held", "up to see better"),
    thing("hat", "wore", "and looked in the water"),
    thing("flute", "played", "softly"),
    thing("doll", "rocked", "in both arms"),
    thing("wagon", "pulled", "in a circle"),
    thing("bell", "rang", "three times"),
    thing("cup", "filled", "with cold water"),
    thing("shell", "held", "to one ear"),
    thing("blanket", "spread", "on the ground"),
];

pub(super) const COLORS: [&str; 7] = ["red", "blue", "green", "yellow", "white", "brown", "black"];

/// A place with its preposition, and where a thing may be there.
pub(super) struct Place {
    pub preposition: &'static str,
    pub name: &'static str,
    pub spots: [&'static str; 3],
}

const fn place(preposition: &'static str, name: &'static str, spots: [&'static str; 3]) -> Place {
    Place { preposition, name, spots }
}

pub(super) const PLACES: [Place; 8] = [
    place("in", "garden", ["behind the wall", "under the apple tree", "in the flowers"]),
    place("by", "river", ["under the bridge", "behind a big stone", "in the tall grass"]),
    place("on", "hill", ["behind the old tower", "in a hole", "under a bush"]),
    place("in", "forest", ["behind a tree", "in the leaves", "under a log"]),
    place("at", "market", ["under a table", "behind the baker", "in an empty box"]),
    place("by", "sea", ["in the sand", "behind the rocks", "under the pier"]),
    place("in", "barn", ["in the hay", "behind the door", "under the ladder"]),
    place("in", "kitchen", ["under the table", "behind the stove", "in the cupboard"]),
];

pub(super) const TIMES: [&str; 8] = [
    "One sunny morning",
    "One cold morning",
    "One warm day",
    "One rainy day",
    "One windy day",
    "One quiet evening",
    "On the first day of spring",
    "A long time ago",
];

pub(super) const GLAD: [&str; 4] = ["happy", "glad", "proud", "full of joy"];
pub(super) const SAD: [&str; 4] = ["sad", "angry", "upset", "very quiet"];
