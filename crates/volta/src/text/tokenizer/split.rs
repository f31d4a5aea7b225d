//! Cutting text into words and marks of punctuation.
//!
//! Whitespace separates. A word is a run of letters and digits; an apostrophe between letters (`don't`) and a
//! point or comma between digits (`3.14`, `1,000`) belong to it. Every other mark is a token of its own.

/// Tokens that stay whole where whitespace surrounds them: the reserved ones, which data sets such as WikiText
/// contain as text, and WikiText's marks inside of numbers and compounds.
const WHOLE: [&str; 5] = ["<pad>", "<unk>", "@-@", "@,@", "@.@"];

/// The words and marks of a text, in order.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().flat_map(|chunk| {
        let whole = WHOLE.contains(&chunk);
        let mut rest = chunk;
        std::iter::from_fn(move || {
            let length = if whole { rest.len() } else { first_piece(rest) };
            let (piece, after) = rest.split_at(length);
            rest = after;
            (length > 0).then_some(piece)
        })
    })
}

/// How many bytes of `chunk`, which has no whitespace, its first piece takes.
fn first_piece(chunk: &str) -> usize {
    let mut chars = chunk.char_indices().peekable();
    let Some((_, first)) = chars.next() else { return 0 };
    let mut last = first;
    while let Some(&(at, c)) = chars.peek() {
        let next = chunk[at + c.len_utf8()..].chars().next();
        let goes_on = attaches(c) || is_word(last) && (is_word(c) || next.is_some_and(|n| links(last, c, n)));
        if !goes_on {
            return at;
        }
        // A mark that attaches leaves what it is attached to open: `e` with an accent is still a letter.
        if !attaches(c) {
            last = c;
        }
        chars.next();
        if !is_word(c) && !attaches(c) {
            // The linked character comes along with its link.
            if let Some((_, linked)) = chars.next() {
                last = linked;
            }
        }
    }
    chunk.len()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `mark` between `before` and `after` is inside of a word or a number.
fn links(before: char, mark: char, after: char) -> bool {
    match mark {
        '\'' | '’' => before.is_alphabetic() && after.is_alphabetic(),
        '.' | ',' => before.is_numeric() && after.is_numeric(),
        _ => false,
    }
}

/// Combining marks, joiners and variation selectors belong to the character before them.
fn attaches(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{200C}'
        | '\u{200D}' | '\u{20D0}'..='\u{20FF}' | '\u{FE00}'..='\u{FE0F}' | '\u{FE20}'..='\u{FE2F}')
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn text_is_cut_into_words_and_marks() {
        let table: [(&str, &[&str]); 12] = [
            ("", &[]),
            (" \t\n", &[]),
            ("The cat, sat.", &["The", "cat", ",", "sat", "."]),
            ("don't 'quote'", &["don't", "'", "quote", "'"]),
            ("it costs 1,000.50!", &["it", "costs", "1,000.50", "!"]),
            ("1,2,3.", &["1,2,3", "."]),
            ("a <unk> word", &["a", "<unk>", "word"]),
            ("x<unk>", &["x", "<", "unk", ">"]),
            ("two @-@ year", &["two", "@-@", "year"]),
            ("well-known…", &["well", "-", "known", "…"]),
            ("e\u{301}te\u{301} 中文。", &["e\u{301}te\u{301}", "中文", "。"]),
            ("hi🙂\u{FE0F}!", &["hi", "🙂\u{FE0F}", "!"]),
        ];
        for (text, expected) in table {
            assert_eq!(pieces(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }

    #[test]
    fn nothing_but_whitespace_is_lost() {
        let text =
            "«Ach!» (s'il vous plaît) -- 3.x, ''; a.b'c'd e.\u{301} \u{301}x \u{200D}🙂\u{200D}🙂 １２，３";
        let joined: String = pieces(text).collect();
        assert_eq!(joined, text.split_whitespace().collect::<String>());
    }
}
