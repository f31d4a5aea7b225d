//! Joining words and marks into text as one would write it.

/// Marks that stand close to what is before them.
const CLOSING: &str = ",.!?;:)]}%…’”»。，、！？；：）";
/// Marks that stand close to what is after them.
const OPENING: &str = "([{“‘«$£€#（";
/// Marks that stand close on both sides.
const TIGHT: &str = "-/'";

/// Where a straight quotation mark stands: they take turns.
#[derive(Clone, Copy, PartialEq)]
enum Quote {
    Outside,
    Inside,
}

/// Decides about the space before each token.
pub(super) struct Joiner {
    quote: Quote,
    /// Whether what comes next stands close to what was before; so does the first token.
    close: bool,
}

impl Joiner {
    pub fn new() -> Joiner {
        Joiner { quote: Quote::Outside, close: true }
    }

    /// The token as it is written after those before it.
    pub fn push(&mut self, token: &str) -> String {
        let shown = shown(token);
        let is_in = |marks: &str| shown.chars().all(|c| marks.contains(c));
        let tight = is_in(TIGHT);
        let (joins_before, joins_after) = match (shown, self.quote) {
            ("\"", Quote::Outside) => (false, true),
            ("\"", Quote::Inside) => (true, false),
            _ => (tight || is_in(CLOSING), tight || is_in(OPENING)),
        };
        if shown == "\"" {
            self.quote = if self.quote == Quote::Outside { Quote::Inside } else { Quote::Outside };
        }
        let space = if self.close || joins_before { "" } else { " " };
        self.close = joins_after;
        format!("{space}{shown}")
    }
}

/// WikiText writes `@-@` for a hyphen inside of a word, and so on.
fn shown(token: &str) -> &str {
    match token {
        "@-@" => "-",
        _ => token,
    }
}

#[cfg(test)]
mod tests {
    use super::Joiner;

    #[test]
    fn tokens_are_joined_as_one_writes() {
        let table = [
            ("the cat , sat .", "the cat, sat."),
            ("she said , \" come here ! \" and went", "she said, \"come here!\" and went"),
            ("( a ) [ b ]", "(a) [b]"),
            ("well - known , two @-@ year", "well-known, two-year"),
            ("$ 5 and 20 %", "$5 and 20%"),
            ("<unk> is unknown", "<unk> is unknown"),
        ];
        for (tokens, text) in table {
            let mut joiner = Joiner::new();
            let joined: String = tokens.split(' ').map(|token| joiner.push(token)).collect();
            assert_eq!(joined, text);
        }
    }
}
