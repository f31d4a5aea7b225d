//! GPT-2's cut of text into the pieces inside of which bytes are merged, and its spelling of bytes as characters.

use super::letters::is_letter;

/// What a piece is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Space,
    Mark,
}

impl Class {
    fn of(c: char) -> Class {
        if c.is_whitespace() {
            Class::Space
        } else if is_letter(c) {
            Class::Letter
        } else if c.is_numeric() {
            Class::Number
        } else {
            Class::Mark
        }
    }
}

/// The ends of English words that are pieces of their own.
const CONTRACTIONS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// The pieces of a text in order. Together they are the whole text. A piece is a contraction; letters, numbers or marks, with one space
/// before them; or whitespace, which leaves its last character to what follows.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut left = text;
    std::iter::from_fn(move || {
        let length = first_piece(left)?;
        let (piece, rest) = left.split_at(length);
        left = rest;
        Some(piece)
    })
}

/// The length of the piece that a text begins with.
fn first_piece(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if let Some(end) = CONTRACTIONS.iter().find(|end| text.starts_with(**end)) {
        return Some(end.len());
    }
    let before = usize::from(first == ' ');
    let class = text[before..].chars().next().map_or(Class::Space, Class::of);
    if class != Class::Space {
        return Some(before + run(&text[before..], class));
    }
    let length = run(text, Class::Space);
    let last = text[..length].chars().next_back().map_or(0, char::len_utf8);
    // Whitespace at the end, and a single character of it, is whole.
    Some(if length == text.len() || length == last { length } else { length - last })
}

/// How far a text is of one class.
fn run(text: &str, class: Class) -> usize {
    text.find(|c| Class::of(c) != class).unwrap_or(text.len())
}

/// The character that a byte is written as in vocabularies: itself where that is visible, and else one beyond Latin-1.
pub(super) fn char_of(byte: u8) -> char {
    let is_visible = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..);
    if is_visible(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&b| !is_visible(b)).count() as u32;
    char::from_u32(256 + before).expect("characters from 256 on are letters")
}

/// The byte that a character of a vocabulary stands for.
pub(super) fn byte_of(c: char) -> Option<u8> {
    (0..=255).find(|&byte| char_of(byte) == c)
}

#[cfg(all(test, feature = "tokenizers"))]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;
    use tokenizers::utils::SysRegex;

    /// GPT-2's own words for it.
    const PATTERN: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

    fn by_pattern<'t>(pattern: &SysRegex, text: &'t str) -> Vec<&'t str> {
        pattern.find_iter(text).map(|(start, end)| &text[start..end]).collect()
    }

    #[test]
    fn pieces_are_those_of_the_pattern() {
        let pattern = SysRegex::new(PATTERN).unwrap();
        let parts = [
            "a", "é", "'s", "'", "'ll", "l", " ", "  ", "\n", "\t", "\u{a0}", "1", "²", "Ⅷ", ".", "🙂",
            "e\u{301}", "ा",
        ];
        let mut state = 7u32;
        for _ in 0..5_000 {
            let text: String = (0..12)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    parts[(state >> 16) as usize % parts.len()]
                })
                .collect();
            assert_eq!(pieces(&text).collect::<Vec<_>>(), by_pattern(&pattern, &text), "{text:?}");
        }
    }

    /// Characters that the pattern's Unicode does not have yet may be letters of the standard library's.
    #[test]
    fn letters_are_those_of_unicode() {
        let (letter, unassigned) = (SysRegex::new(r"\p{L}").unwrap(), SysRegex::new(r"\p{Cn}").unwrap());
        let is = |pattern: &SysRegex, c: char| pattern.find_iter(c.encode_utf8(&mut [0; 4])).next().is_some();
        let wrong: Vec<char> =
            ('\0'..=char::MAX).filter(|&c| is_letter(c) != is(&letter, c) && !is(&unassigned, c)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn bytes_are_spelt_as_the_crate_spells_them() {
        let own: HashSet<char> = (0..=255).map(char_of).collect();
        assert_eq!(own, ByteLevel::alphabet().into_iter().collect());
        assert_eq!((char_of(b'\n'), char_of(b' '), char_of(0xad)), ('Ċ', 'Ġ', 'Ń'));
    }

    #[test]
    fn pieces_make_the_text() {
        let text = "I'll go,  won't\n\n  you? 中文字。123abc \t end  ";
        let all: Vec<&str> = pieces(text).collect();
        assert_eq!(all.concat(), text);
        let expected =
            ["I", "'ll", " go", ",", " ", " won", "'t", "\n\n ", " you", "?", " 中文字", "。", "123", "abc"];
        assert_eq!(all[..14], expected);
    }
}
