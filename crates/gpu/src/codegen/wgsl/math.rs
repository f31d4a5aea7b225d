//! Elementwise functions in WGSL. Drivers' own are too inexact: `log` may be off by 2⁻²¹ near 1, `sin` by 2⁻¹¹.

use std::sync::OnceLock;

const SOURCES: [&str; 3] =
    [include_str!("math.wgsl"), include_str!("casts.wgsl"), include_str!("random.wgsl")];

/// What the placeholders of the sources stand for in one kind of function.
struct Flavour {
    /// How the names of such functions end: where the source says so, and in which suffix.
    stem: &'static str,
    suffix: &'static str,
    types: [(&'static str, &'static str); 5],
}

const FLAVOURS: [Flavour; 3] = [
    Flavour {
        stem: "SFX",
        suffix: "",
        types: [("T", "f32"), ("U", "u32"), ("I", "i32"), ("B", "bool"), ("P", "vec2<f32>")],
    },
    Flavour {
        stem: "SFX",
        suffix: "4",
        types: [
            ("T", "vec4<f32>"),
            ("U", "vec4<u32>"),
            ("I", "vec4<i32>"),
            ("B", "vec4<bool>"),
            ("P", "mat2x4<f32>"),
        ],
    },
    // Functions of integers have one of 64 bits, too.
    Flavour {
        stem: "_iSFX",
        suffix: "_l",
        types: [("T", "f32"), ("U", "u32"), ("I", "i64"), ("B", "bool"), ("P", "vec2<f32>")],
    },
];

impl Flavour {
    /// A block of a source as a function of this kind.
    fn apply(&self, block: &str) -> String {
        let word = |word: &str| match self.types.iter().find(|(placeholder, _)| *placeholder == word) {
            Some((_, name)) => (*name).to_string(),
            None => match word.strip_suffix(self.stem) {
                Some(stem) => format!("{stem}{}", self.suffix),
                None => word.to_string(),
            },
        };
        words(block).map(|(text, is_word)| if is_word { word(text) } else { text.to_string() }).collect()
    }
}

/// All functions: those of scalars (`m_exp`; `m_mod_i` for i32, `m_mod_l` for i64) and those of vec4 (`m_exp4`).
pub(crate) fn definitions() -> &'static str {
    static ALL: OnceLock<String> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut text = String::new();
        for (name, block) in SOURCES.iter().flat_map(|source| blocks(source)) {
            if !name.ends_with("SFX") {
                text += &block;
                continue;
            }
            for flavour in FLAVOURS.iter().filter(|f| name.ends_with(f.stem)) {
                text += &flavour.apply(&block);
            }
        }
        text
    })
}

/// The functions of a source by their names there, without comments.
fn blocks(source: &'static str) -> Vec<(&'static str, String)> {
    let function = |block: &'static str| {
        let code = block.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: String = code.flat_map(|line| [line, "\n"]).collect();
        let (_, rest) = block.split_once("fn ").filter(|_| code.starts_with("fn "))?;
        Some((&rest[..rest.find('(')?], code))
    };
    source.split("\n\n").filter_map(function).collect()
}

/// The text cut into words, which are true here, and what is between them.
fn words(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let in_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_word = in_word(rest.chars().next()?);
        let end = rest.find(|c| in_word(c) != is_word).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some((piece, is_word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_functions_are_valid_and_none_is_there_twice() {
        let text = definitions();
        assert!(!text.contains("SFX") && !text.contains("//"));
        let names: Vec<&str> =
            text.lines().filter_map(|l| l.strip_prefix("fn ")?.split('(').next()).collect();
        assert!(names.iter().enumerate().all(|(k, name)| !names[..k].contains(name)));
        crate::snapshots::validate(text, naga::valid::Capabilities::SHADER_INT64);
    }
}
