//! GPT-2's cut of text into the pieces inside of which bytes are merged, and its spelling of bytes as characters.

use std::sync::LazyLock;
use tokenizers::utils::SysRegex;

/// Contractions, words, numbers and marks, each with one space before it, and other whitespace.
static PATTERN: LazyLock<SysRegex> = LazyLock::new(|| {
    SysRegex::new(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
        .expect("the pattern is a constant")
});

/// The pieces of a text in order. Together they are the whole text.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut matches = PATTERN.find_iter(text);
    let mut done = 0;
    let mut held = None;
    std::iter::from_fn(move || {
        let (start, end) = match held.take() {
            Some(found) => found,
            None => match matches.next() {
                // What lies between two matches is a piece, too.
                Some((start, end)) if start > done => {
                    held = Some((start, end));
                    (done, start)
                }
                Some(found) => found,
                // The pattern gives up on very long whitespace.
                None if done < text.len() => (done, text.len()),
                None => return None,
            },
        };
        done = end;
        Some(&text[start..end])
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;

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
