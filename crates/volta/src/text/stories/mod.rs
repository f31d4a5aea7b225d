//! Simple English stories, made by a grammar over a small world: text to learn from where there is no file.
//!
//! A story has people, things and places. What happens follows from who has which thing and where each is, and
//! changes it, so that a model can learn to spell, then to build sentences, then to keep track: a thing that
//! was given away is with its new holder until the last sentence.

mod draw;
mod events;
mod lexicon;
mod teller;

use draw::StoryRng;
use teller::Teller;

/// At least `bytes` bytes of stories, whole ones, with an empty line after each. A seed always tells the same.
///
/// ```
/// let text = volta::text::stories(1, 1000);
/// assert!(text.len() >= 1000 && text.ends_with(".\n\n"));
/// assert!(volta::text::stories(1, 2000).starts_with(&text));
/// ```
pub fn stories(seed: u64, bytes: usize) -> String {
    let mut text = String::new();
    let mut draw = StoryRng::new(seed);
    while text.len() < bytes {
        text.push_str(&story(&mut draw));
    }
    text
}

fn story(draw: &mut StoryRng) -> String {
    let mut teller = Teller::open(draw);
    let mut left = 4 + teller.draw.below(4);
    let mut last = usize::MAX;
    while left > 0 {
        let event = teller.draw.below(events::EVENTS.len());
        // An event says whether it could happen; the same one twice in a row would be dull. Two always can: what
        // is held can be given and asked for, what lies here found and looked for, what lies elsewhere is asked
        // for and gone back to.
        if event != last && events::EVENTS[event](&mut teller) {
            last = event;
            left -= 1;
        }
    }
    teller.close()
}

#[cfg(test)]
mod tests {
    use super::stories;
    use std::collections::HashSet;

    #[test]
    fn a_seed_tells_the_same_and_another_seed_something_else() {
        assert_eq!(stories(3, 5000), stories(3, 5000));
        assert_ne!(stories(3, 5000), stories(4, 5000));
    }

    #[test]
    fn sentences_are_whole_and_words_are_few() {
        let text = stories(0, 200_000);
        assert!(!text.contains("  ") && !text.contains(" .") && text.is_ascii(), "odd spacing");
        for line in text.lines().filter(|line| !line.is_empty()) {
            let first = line.trim_start_matches('"').chars().next();
            assert!(first.is_some_and(char::is_uppercase), "a line begins small: {line}");
            assert!(line.ends_with(['.', '"', '?', '!']), "a line does not end: {line}");
            assert_eq!(line.matches('"').count() % 2, 0, "an open quotation: {line}");
        }
        let words: HashSet<&str> = text.split(|c: char| !c.is_alphabetic()).collect();
        assert!((150..400).contains(&words.len()), "{} different words", words.len());
    }

    /// Reads stories back: what a sentence says somebody has, and no later sentence moves, must end up there.
    #[test]
    fn who_has_what_at_the_end_is_what_was_told() {
        let moves = ["gave", "dropped", "lost", "hid", "traded", "found", "\"Yes"];
        let mut checked = 0;
        for story in stories(5, 300_000).split("\n\n").filter(|story| !story.is_empty()) {
            let (told, ending) = story.rsplit_once("In the end ").expect("every story has an ending");
            let sentences: Vec<&str> = told.split(". ").collect();
            for (at, sentence) in sentences.iter().enumerate() {
                let Some((who, thing)) = sentence.trim_start_matches("Now ").split_once(" had the ") else {
                    continue;
                };
                let moved = |later: &&str| moves.iter().any(|verb| later.contains(verb));
                if who.contains(' ') || thing.contains(' ') || sentences[at + 1..].iter().any(moved) {
                    continue;
                }
                checked += 1;
                assert!(
                    ending.contains(&format!("{who} had the {thing}")),
                    "{sentence:?} does not last: {story}"
                );
            }
        }
        assert!(checked > 30, "only {checked} were checked");
    }
}
