//! The vocabulary that a file brings: tokens, their scores and kinds, merges and special tokens, as they stand there.

use super::Gguf;
use crate::error::Result;

/// What a token is, by llama.cpp's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum GgufTokenKind {
    /// A piece of text.
    Normal = 1,
    /// What stands for text that has no token.
    Unknown = 2,
    /// A mark that text never becomes by itself, as the end of a text.
    Control = 3,
    /// Text that is one token whatever stands around it.
    UserDefined = 4,
    /// A place that nobody uses.
    Unused = 5,
    /// One byte, written `<0x0A>`.
    Byte = 6,
}

impl GgufTokenKind {
    fn of(number: i32) -> Option<GgufTokenKind> {
        use GgufTokenKind::*;
        [Normal, Unknown, Control, UserDefined, Unused, Byte].into_iter().find(|&k| k as i32 == number)
    }
}

/// A tokenizer as a GGUF file describes it. Lists that belong together have one length, and special tokens are tokens of it.
#[derive(Clone, Debug)]
pub struct GgufVocabulary<'a> {
    /// The algorithm: `gpt2` (byte pairs), `llama` (SentencePiece), `bert` (WordPiece), `t5` (unigrams), …
    pub model: &'a str,
    /// How text is cut before byte pairs are merged: llama.cpp's name for it.
    pub pre: Option<&'a str>,
    /// The tokens in the order of their numbers.
    pub tokens: &'a [String],
    /// A score for each token, if the algorithm has them.
    pub scores: Option<&'a [f32]>,
    /// What each token is; all are normal where the file does not say.
    pub kinds: Vec<GgufTokenKind>,
    /// Pairs of tokens, with a space between them, the first to be merged first.
    pub merges: &'a [String],
    /// The number of the token that begins a text.
    pub bos: Option<u32>,
    /// The number of the token that ends a text.
    pub eos: Option<u32>,
    /// The number of the token that ends a turn of a chat, if it is another.
    pub eot: Option<u32>,
    /// The number of the token for what has none.
    pub unknown: Option<u32>,
    /// The number of the token that fills up.
    pub padding: Option<u32>,
    /// Whether texts get the first of these tokens, if the file says.
    pub add_bos: Option<bool>,
    /// Whether texts get the last of these tokens, if the file says.
    pub add_eos: Option<bool>,
    /// Whether texts get a space in front, if the file says.
    pub add_space_prefix: Option<bool>,
    /// The template of chats, in Jinja.
    pub chat_template: Option<&'a str>,
}

/// The byte that a token such as `<0x0A>` stands for: two hexadecimal digits and nothing else.
///
/// ```
/// use volta::io::gguf_byte;
///
/// assert_eq!(gguf_byte("<0x0A>"), Some(10));
/// assert_eq!(gguf_byte("<0x-1>"), None);
/// ```
pub fn gguf_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    let valid = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if valid { u8::from_str_radix(digits, 16).ok() } else { None }
}

impl Gguf {
    /// The vocabulary, with everything in it compared; an error if the file has none, or a contradictory one.
    #[track_caller]
    pub fn vocabulary(&self) -> Result<GgufVocabulary<'_>> {
        let key = |name: &str| format!("tokenizer.ggml.{name}");
        let tokens: &[String] = self.require(&key("tokens"))?;
        let same_length = |name: &str, length: usize| {
            if length == tokens.len() {
                return Ok(());
            }
            Err(self.wrong(format!(
                "it has {} tokens, and {:?} has {length} elements",
                tokens.len(),
                key(name)
            )))
        };
        let scores: Option<&[f32]> = self.get(&key("scores"))?;
        if let Some(scores) = scores {
            same_length("scores", scores.len())?;
        }
        let kinds = match self.get::<Vec<i32>>(&key("token_type"))? {
            None => vec![GgufTokenKind::Normal; tokens.len()],
            Some(numbers) => {
                same_length("token_type", numbers.len())?;
                let kind = |(k, &n): (usize, &i32)| {
                    let kind = GgufTokenKind::of(n);
                    kind.ok_or_else(|| self.wrong(format!("token {k} is said to be of kind {n}, of six")))
                };
                numbers.iter().enumerate().map(kind).collect::<Result<_>>()?
            }
        };
        for (k, token) in tokens.iter().enumerate() {
            if kinds[k] == GgufTokenKind::Byte && gguf_byte(token).is_none() {
                return Err(
                    self.wrong(format!("token {k}, {token:?}, is said to be a byte, as \"<0x0A>\" is"))
                );
            }
        }
        let special = |name: &str| -> Result<Option<u32>> {
            match self.get::<u32>(&key(name))? {
                // Some writers say so that there is none.
                Some(u32::MAX) => Ok(None),
                Some(id) if id as usize >= tokens.len() => {
                    Err(self.wrong(format!("{:?} is {id}, and it has {} tokens", key(name), tokens.len())))
                }
                id => Ok(id),
            }
        };
        Ok(GgufVocabulary {
            model: self.require(&key("model"))?,
            pre: self.get(&key("pre"))?,
            tokens,
            scores,
            kinds,
            merges: self.get(&key("merges"))?.unwrap_or_default(),
            bos: special("bos_token_id")?,
            eos: special("eos_token_id")?,
            eot: special("eot_token_id")?,
            unknown: special("unknown_token_id")?,
            padding: special("padding_token_id")?,
            add_bos: self.get(&key("add_bos_token"))?,
            add_eos: self.get(&key("add_eos_token"))?,
            add_space_prefix: self.get(&key("add_space_prefix"))?,
            chat_template: self.get("tokenizer.chat_template")?,
        })
    }
}
