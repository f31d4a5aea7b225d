//! Text of others, made safe to print: names in files, corpora, what a model writes.
//!
//! A terminal obeys control characters: text may move the cursor, recolour the screen, answer questions that the terminal
//! asks, or reverse the order in which letters are shown. What is printed has them as escapes: `\u{1b}`, `\r`.

use std::borrow::Cow;
use std::fmt::Write;

/// Longer messages lose their middle.
const LONGEST_MESSAGE_CHARS: usize = 4000;

/// Whether a terminal may do something else than show this character.
fn is_control(c: char) -> bool {
    // Beside control characters: line separators, and what changes the direction of text.
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with each character that `escape` knows another spelling of written so.
fn replaced(text: &str, escape: impl Fn(&str, char) -> Option<String>) -> Cow<'_, str> {
    let mut safe = String::new();
    let mut copied = 0;
    for (at, c) in text.char_indices().filter(|&(_, c)| is_control(c)) {
        let after = at + c.len_utf8();
        if let Some(spelling) = escape(&text[after..], c) {
            safe.push_str(&text[copied..at]);
            safe.push_str(&spelling);
            copied = after;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    safe.push_str(&text[copied..]);
    Cow::Owned(safe)
}

/// The text with control characters as escapes, except line ends and tabs: for what may have several lines.
///
/// ```
/// assert_eq!(volta::text::printable("two\n\u{1b}[31mlines"), "two\n\\u{1b}[31mlines");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, |rest, c| match c {
        '\n' | '\t' => None,
        '\r' if rest.starts_with('\n') => None,
        c => Some(c.escape_default().to_string()),
    })
}

/// [`printable`] on one line: line ends and tabs are escapes, too. For names and cells of tables.
///
/// ```
/// assert_eq!(volta::text::printable_line("a\nname"), "a\\nname");
/// ```
pub fn printable_line(text: &str) -> Cow<'_, str> {
    replaced(text, |_, c| Some(c.escape_default().to_string()))
}

/// JSON on one line with the control characters that JSON allows in texts as JSON's own escapes: it means the same.
///
/// ```
/// assert_eq!(volta::text::printable_json("[\"\u{9b}\"]"), "[\"\\u009b\"]");
/// ```
pub fn printable_json(json: &str) -> Cow<'_, str> {
    replaced(json, |_, c| {
        let mut spelling = String::new();
        c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
            // Writing to a string cannot fail.
            let _ = write!(spelling, "\\u{unit:04x}");
        });
        Some(spelling)
    })
}

/// [`printable_line`] for a cell of a table: cut off if it is longer than `most` characters.
///
/// ```
/// assert_eq!(volta::text::printable_cell("a very\nlong name", 10), "a very\\nl…");
/// ```
pub fn printable_cell(text: &str, most: usize) -> String {
    let line = printable_line(text);
    let count = line.chars().count();
    if count <= most {
        return line.into_owned();
    }
    let beginning: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{beginning}…")
}

/// A message for people: without control characters, and with its middle left out if a file made it very long.
pub fn message(text: String) -> String {
    let text = match printable(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(safe) => safe,
    };
    // As many bytes are never more characters.
    if text.len() <= LONGEST_MESSAGE_CHARS {
        return text;
    }
    let count = text.chars().count();
    if count <= LONGEST_MESSAGE_CHARS {
        return text;
    }
    let end = LONGEST_MESSAGE_CHARS / 4;
    let beginning: String = text.chars().take(LONGEST_MESSAGE_CHARS - end).collect();
    let rest: String = text.chars().skip(count - end).collect();
    format!("{beginning} … ({} characters left out) … {rest}", count - LONGEST_MESSAGE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_all_else_stays() {
        let table = [
            ("plain, ünïcödé 🙂\u{200d}🙂", "plain, ünïcödé 🙂\u{200d}🙂"),
            ("a\tb\nc\r\nd", "a\tb\nc\r\nd"),
            ("gone\rback", "gone\\rback"),
            ("\u{1b}[2J\u{7}\u{8}\0\u{7f}", "\\u{1b}[2J\\u{7}\\u{8}\\u{0}\\u{7f}"),
            ("\u{9b}31m\u{9d}0;t\u{9c}", "\\u{9b}31m\\u{9d}0;t\\u{9c}"),
            ("evil\u{202e}txt.exe\u{2066}", "evil\\u{202e}txt.exe\\u{2066}"),
        ];
        for (text, expected) in table {
            assert_eq!(printable(text), expected);
            assert!(!printable_line(text).chars().any(is_control));
        }
        assert_eq!(printable_line("a\tb\r\n"), "a\\tb\\r\\n");
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let text = "a\u{1b}\u{9b}\u{202e}\n🙂";
        let json = serde_json::to_string(text).unwrap();
        let safe = printable_json(&json);
        assert!(!safe.chars().any(is_control), "{safe:?}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }

    #[test]
    fn long_messages_keep_their_ends() {
        let long = message(format!("begin {} end", "é".repeat(1_000_000)));
        assert!(long.starts_with("begin é") && long.ends_with("é end") && long.chars().count() < 4100);
        assert!(long.contains("996010 characters left out"), "{}", &long[5900..]);
        let short = "é".repeat(LONGEST_MESSAGE_CHARS);
        assert_eq!(message(short.clone()), short);
    }

    #[test]
    fn cells_have_an_end() {
        assert_eq!(printable_cell("abc", 3), "abc");
        assert_eq!(printable_cell("abcd", 3), "ab…");
        assert_eq!(printable_cell(&"\u{1b}".repeat(70_000), 10), "\\u{1b}\\u{…");
    }
}
