//! What may happen in a story. Each event looks whether it can happen, tells it, and changes the world.

use super::lexicon::PLACES;
use super::teller::{At, Teller};

/// The events; each returns whether it happened.
pub(super) const EVENTS: [fn(&mut Teller) -> bool; 13] =
    [give, ask, ask, trade, lose, hide, find, find, search_in_vain, play, comfort, go, who_has_it];

fn give(t: &mut Teller) -> bool {
    let Some((item, from)) = t.held() else { return false };
    let to = t.other(from);
    let (who, the) = (t.subject(from), t.the(item));
    if t.draw.once_in(2) {
        let to = t.people[to].name;
        t.say(Some(from), format!("{who} gave {the} to {to}."));
    } else {
        let whom = t.object(to, from);
        t.say(Some(from), format!("{who} gave {whom} {the}."));
    }
    receive(t, item, to, from);
    true
}

/// `to` has it now, and is glad, says so, or shows it.
fn receive(t: &mut Teller, item: usize, to: usize, from: usize) {
    t.items[item].at = At::With(to);
    let noun = t.items[item].thing.noun;
    let name = t.people[to].name;
    match t.draw.below(3) {
        0 => {
            let cause = match t.items[item].owner == to {
                true => format!("the {noun} was back"),
                false => format!("{} had the {noun} now", t.pronoun(to)),
            };
            t.feel(to, true, &cause);
        }
        1 => {
            let from = t.people[from].name;
            t.say(Some(to), format!("\"Thank you, {from}!\" said {name}."));
        }
        _ => t.say(Some(to), format!("Now {name} had the {noun}.")),
    }
}

fn ask(t: &mut Teller) -> bool {
    let Some((item, from)) = t.held() else { return false };
    let to = t.other(from);
    let noun = t.items[item].thing.noun;
    let (asker, holder) = (t.people[to].name, t.people[from].name);
    let owner = t.items[item].owner;
    let question = match owner == to {
        true => format!("\"May I have my {noun} back?\" asked {asker}."),
        false => format!("\"May I have the {noun}?\" asked {asker}."),
    };
    t.say(Some(to), question);
    // Nobody keeps what another one owns.
    if owner == from && t.draw.once_in(3) {
        t.say(Some(from), format!("\"No, it is my {noun},\" said {holder}."));
        let cause = format!("{} wanted the {noun}", t.pronoun(to));
        t.feel(to, false, &cause);
        return true;
    }
    let whom = t.object(to, from);
    let he = t.pronoun(from);
    t.say(Some(from), format!("\"Yes,\" said {holder}, and {he} gave {whom} the {noun}."));
    receive(t, item, to, from);
    true
}

fn trade(t: &mut Teller) -> bool {
    let Some((first, a)) = t.held() else { return false };
    let Some((second, b)) = t.held() else { return false };
    if a == b {
        return false;
    }
    let (one, two) = (t.items[first].thing.noun, t.items[second].thing.noun);
    let (who, name) = (t.people[a].name, t.people[b].name);
    (t.items[first].at, t.items[second].at) = (At::With(b), At::With(a));
    t.say(None, format!("{who} and {name} traded the {one} for the {two}."));
    t.say(None, format!("Now {who} had the {two} and {name} had the {one}."));
    true
}

fn lose(t: &mut Teller) -> bool {
    let Some((item, who)) = t.held() else { return false };
    let spot = t.draw.below(3);
    let (place, name, noun) = (t.place, t.subject(who), t.items[item].thing.noun);
    let (the, where_to) = (t.the(item), PLACES[place].spots[spot]);
    t.items[item].at = At::Spot { place, spot };
    if t.draw.once_in(2) {
        t.say(Some(who), format!("{name} dropped {the}, and it fell {where_to}."));
    } else {
        let (name, pronouns) = (t.people[who].name, t.people[who].pronouns);
        let what = if t.items[item].owner == who { format!("{} {noun}", pronouns.possessive) } else { the };
        t.say(Some(who), format!("{name} ran too fast and lost {what} {where_to}."));
    }
    let cause = format!("the {noun} was gone");
    t.feel(who, false, &cause);
    true
}

fn hide(t: &mut Teller) -> bool {
    let Some((item, who)) = t.held() else { return false };
    let (place, spot) = (t.place, t.draw.below(3));
    let (name, the) = (t.subject(who), t.the(item));
    t.items[item].at = At::Spot { place, spot };
    t.say(Some(who), format!("{name} hid {the} {}.", PLACES[place].spots[spot]));
    true
}

fn find(t: &mut Teller) -> bool {
    let Some((item, spot)) = t.lying() else { return false };
    let finder = t.anybody();
    let (who, the) = (t.subject(finder), t.the(item));
    t.items[item].at = At::With(finder);
    t.say(Some(finder), format!("{who} looked {} and found {the}.", PLACES[t.place].spots[spot]));
    let owner = t.items[item].owner;
    let noun = t.items[item].thing.noun;
    if owner == finder {
        let cause = format!("the {noun} was back");
        t.feel(finder, true, &cause);
    } else if t.draw.once_in(2) {
        let (who, owner_name) = (t.subject(finder), t.people[owner].name);
        t.say(Some(finder), format!("{who} gave it back to {owner_name}."));
        receive(t, item, owner, finder);
    } else {
        let who = t.subject(finder);
        t.say(Some(finder), format!("{who} kept it."));
    }
    true
}

/// Looking for a thing where it is not.
fn search_in_vain(t: &mut Teller) -> bool {
    let Some((item, spot)) = t.lying() else { return false };
    let seeker = t.anybody();
    let wrong = (spot + 1 + t.draw.below(2)) % 3;
    let (who, noun) = (t.subject(seeker), t.items[item].thing.noun);
    t.say(
        Some(seeker),
        format!("{who} looked {}, but the {noun} was not there.", PLACES[t.place].spots[wrong]),
    );
    true
}

fn play(t: &mut Teller) -> bool {
    let Some((item, who)) = t.held() else { return false };
    let (name, the) = (t.subject(who), t.the(item));
    let thing = t.items[item].thing;
    t.say(Some(who), format!("{name} {} {the} {}.", thing.verb, thing.after));
    true
}

fn comfort(t: &mut Teller) -> bool {
    let Some(sad) = t.people.iter().position(|p| p.sad) else { return false };
    let friend = t.other(sad);
    let (who, name) = (t.people[friend].name, t.people[sad].name);
    let whom = t.people[sad].pronouns.object;
    t.people[sad].sad = false;
    t.say(Some(friend), format!("{who} saw that {name} was sad and hugged {whom}."));
    t.say(Some(sad), format!("{name} felt better."));
    true
}

/// Once to another place, and later only back to where something was left: two places are enough to remember.
fn go(t: &mut Teller) -> bool {
    let (there, went) = match t.elsewhere {
        None => (t.new_place(), "went"),
        Some(there) if t.lies_at(there) => (there, "went back"),
        Some(_) => return false,
    };
    t.elsewhere = Some(t.place);
    t.place = there;
    t.say(None, format!("Then they all {went} to the {}.", PLACES[there].name));
    true
}

/// Asks for what the story has told.
fn who_has_it(t: &mut Teller) -> bool {
    let item = t.draw.below(t.items.len());
    let noun = t.items[item].thing.noun;
    match t.items[item].at {
        At::With(holder) => {
            let asker = t.other(holder);
            let (asker, name) = (t.people[asker].name, t.people[holder].name);
            t.say(None, format!("\"Who has the {noun}?\" asked {asker}."));
            t.say(Some(holder), format!("\"I have it,\" said {name}."));
        }
        At::Spot { place, spot } => {
            let asker = t.anybody();
            let answerer = t.other(asker);
            let (asker, name) = (t.people[asker].name, t.people[answerer].name);
            let where_it_is = t.at_spot(place, spot);
            t.say(None, format!("\"Where is the {noun}?\" asked {asker}."));
            t.say(Some(answerer), format!("\"It is {where_it_is},\" said {name}."));
        }
    }
    true
}
