//! Tokenizers: text into numbers and back.
//!
//! Each scheme is a file: [`words`], [`chars`], [`bytes`], and [`pairs`] (byte-pair encodings, and whatever else
//! a `tokenizer.json` holds); `gguf` makes such a file of the vocabulary in a GGUF file. [`Tokenizer`] is the one type that users hold.

mod bytes;
mod chars;
mod gguf;
mod join;
mod json;
mod pairs;
mod split;
mod words;

use crate::call::Call;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::regular_file::{self, MAX_HEADER_BYTES};
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// How text is cut into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenizerKind {
    /// Words and marks of punctuation, by frequency; `<pad>` is 0 and `<unk>` is 1.
    Words,
    /// Characters; `<unk>` is 0.
    Chars,
    /// The 256 bytes of UTF-8. Nothing is trained, nothing is lost.
    Bytes,
    /// Byte-pair encoding: frequent sequences of bytes.
    Bpe,
}

impl TokenizerKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [TokenizerKind; 4] =
        [TokenizerKind::Words, TokenizerKind::Chars, TokenizerKind::Bytes, TokenizerKind::Bpe];

    /// `words`, `chars`, `bytes` or `bpe`.
    pub fn name(self) -> &'static str {
        match self {
            TokenizerKind::Words => "words",
            TokenizerKind::Chars => "chars",
            TokenizerKind::Bytes => "bytes",
            TokenizerKind::Bpe => "bpe",
        }
    }
}

impl fmt::Display for TokenizerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TokenizerKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => Ok(kind),
            None => bail!(Argument, "no tokenizer is called {name:?}; there are words, chars, bytes and bpe"),
        }
    }
}

/// What training a tokenizer may be told.
#[derive(Clone, Debug, Default)]
pub struct TokenizerOptions {
    /// The most tokens it may have. Without a limit there are as many as words or characters occur, and
    /// 4096 byte pairs. The rarest are left out, and become `<unk>`.
    pub vocabulary: Option<usize>,
}

/// What a scheme does; one implementation a file.
trait Scheme: Send + Sync {
    fn kind(&self) -> TokenizerKind;
    fn encode(&self, text: &str) -> Result<Vec<u32>>;
    /// With what a file says goes around a text.
    fn encode_with_special_tokens(&self, text: &str) -> Result<Vec<u32>> {
        self.encode(text)
    }
    fn size(&self) -> usize;
    fn token(&self, id: u32) -> Option<String>;
    /// What a token always adds to a text.
    fn token_bytes(&self, _id: u32) -> Option<Vec<u8>> {
        None
    }
    fn id(&self, token: &str) -> Option<u32>;
    fn pad(&self) -> Option<u32>;
    fn unknown(&self) -> Option<u32>;
    /// What [`json`] keeps besides the kind.
    fn content(&self) -> (&'static str, serde_json::Value);
    fn decoder(&self) -> Box<dyn Decoder + '_>;
}

/// Text from tokens as they come.
trait Decoder {
    /// The text that `id` completes.
    fn push(&mut self, id: u32) -> String;
    /// What is left.
    fn finish(&mut self) -> String;
}

/// Turns text into tokens and back.
///
/// Cloning is cheap: clones share the vocabulary.
///
/// ```
/// use volta::text::{Tokenizer, TokenizerKind, TokenizerOptions};
///
/// let t = Tokenizer::train(TokenizerKind::Words, "the cat saw the dog", &TokenizerOptions::default())?;
/// assert_eq!(t.encode("the cat saw a bird"), [2, 3, 4, 1, 1]);
/// assert_eq!(t.decode(&[2, 5]), "the dog");
/// assert_eq!(Tokenizer::from_json(&t.to_json())?, t);
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone)]
pub struct Tokenizer(Arc<dyn Scheme>);

impl Tokenizer {
    /// A tokenizer of a kind for a text. The same text and options give the same tokenizer.
    ///
    /// # Errors
    /// A vocabulary too small for the kind.
    #[track_caller]
    pub fn train(kind: TokenizerKind, text: &str, options: &TokenizerOptions) -> Result<Tokenizer> {
        let trained = Tokenizer::train_watched(kind, text, options, |_, _| ControlFlow::Continue(()))?;
        Ok(trained.expect("only whoever watches stops it"))
    }

    /// [`train`](Self::train) that can be watched and stopped: `watch` hears how many tokens were found and how many are
    /// looked for, and if it breaks off, there is no tokenizer. Only byte pairs take long enough to tell.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use volta::text::{Tokenizer, TokenizerKind, TokenizerOptions};
    ///
    /// let options = TokenizerOptions { vocabulary: Some(300) };
    /// let none = Tokenizer::train_watched(TokenizerKind::Bpe, "to be or not to be", &options, |found, _| {
    ///     if found < 258 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    /// assert!(none.is_none());
    /// # Ok::<(), volta::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`train`](Self::train).
    #[track_caller]
    pub fn train_watched(
        kind: TokenizerKind,
        text: &str,
        options: &TokenizerOptions,
        mut watch: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Option<Tokenizer>> {
        let _call = Call::enter("Tokenizer::train");
        let least = match kind {
            TokenizerKind::Words => 3,
            TokenizerKind::Chars => 2,
            TokenizerKind::Bytes => 256,
            TokenizerKind::Bpe => 257,
        };
        if let Some(size) = options.vocabulary.filter(|&size| size < least || size > u32::MAX as usize) {
            bail!(Argument, "a vocabulary of {size} tokens; {kind} need at least {least}");
        }
        if watch(0, 0).is_break() {
            return Ok(None);
        }
        let scheme: Arc<dyn Scheme> = match kind {
            TokenizerKind::Words => Arc::new(words::Words::train(text, options.vocabulary)),
            TokenizerKind::Chars => Arc::new(chars::Chars::train(text, options.vocabulary)),
            TokenizerKind::Bytes => Arc::new(bytes::Bytes),
            TokenizerKind::Bpe => match pairs::train(text, options.vocabulary, &mut watch)? {
                Some(pairs) => pairs,
                None => return Ok(None),
            },
        };
        Ok(Some(Tokenizer(scheme)))
    }

    /// The tokenizer that [`to_json`](Self::to_json) wrote, or that a Hugging Face `tokenizer.json` describes.
    ///
    /// # Errors
    /// Text that is neither, with what is wrong with it.
    #[track_caller]
    pub fn from_json(json: &str) -> Result<Tokenizer> {
        let _call = Call::enter("Tokenizer::from_json");
        json::read(json).map(Tokenizer)
    }

    /// [`from_json`](Self::from_json) of a file.
    ///
    /// # Errors
    /// A file that cannot be read, or that holds no tokenizer; the message names it.
    #[track_caller]
    pub fn from_file(path: impl AsRef<Path>) -> Result<Tokenizer> {
        let _call = Call::enter("Tokenizer::from_file");
        let path = path.as_ref();
        let text = regular_file::read_text(path, MAX_HEADER_BYTES)
            .map_err(|e| Error::io(path, &e, "read a tokenizer"))?;
        json::read(&text).map(Tokenizer).map_err(|error| error.with_context(&path.display().to_string()))
    }

    /// GPT-2's tokenizer from its older files: `vocab.json`, tokens with their ids, and `merges.txt`, a pair a line. Nothing stands for
    /// the end of a text: `<|endoftext|>` is a token only in a `tokenizer.json`.
    ///
    /// # Errors
    /// Files that do not belong together, with what is wrong.
    #[track_caller]
    pub fn from_vocabulary_and_merges(vocabulary: &str, merges: &str) -> Result<Tokenizer> {
        let _call = Call::enter("Tokenizer::from_vocabulary_and_merges");
        json::read_gpt2(vocabulary, merges).map(Tokenizer)
    }

    /// The tokenizer as JSON, for [`from_json`](Self::from_json).
    pub fn to_json(&self) -> String {
        json::write(self.0.as_ref())
    }

    /// How it cuts text. What came from a `tokenizer.json` counts as [`Bpe`](TokenizerKind::Bpe).
    pub fn kind(&self) -> TokenizerKind {
        self.0.kind()
    }

    /// The tokens of a text. What the vocabulary does not have becomes [`unknown`](Self::unknown).
    ///
    /// # Panics
    /// Where [`try_encode`](Self::try_encode) is an error.
    #[track_caller]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let _call = Call::enter("Tokenizer::encode");
        self.0.encode(text).unwrap_or_else(|error| error.raise())
    }

    /// [`encode`](Self::encode) for tokenizers from files.
    ///
    /// # Errors
    /// A `tokenizer.json` may hold patterns that give up on a text; nothing else can fail.
    #[track_caller]
    pub fn try_encode(&self, text: &str) -> Result<Vec<u32>> {
        let _call = Call::enter("Tokenizer::encode");
        self.0.encode(text)
    }

    /// [`try_encode`](Self::try_encode) with the tokens that a `tokenizer.json` puts around every text, such as one for its beginning.
    ///
    /// # Errors
    /// Those of `try_encode`.
    #[track_caller]
    pub fn try_encode_with_special_tokens(&self, text: &str) -> Result<Vec<u32>> {
        let _call = Call::enter("Tokenizer::encode_with_special_tokens");
        self.0.encode_with_special_tokens(text)
    }

    /// The text of tokens. Words are joined as one would write them; bytes that are no UTF-8 become `�`; ids
    /// outside the vocabulary and padding are left out.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let mut stream = self.decode_stream();
        let mut text = String::new();
        for &token in tokens {
            text.push_str(&stream.push(token));
        }
        text + &stream.finish()
    }

    /// Decodes tokens as they come, for showing text while it is generated.
    ///
    /// ```
    /// use volta::text::{Tokenizer, TokenizerKind, TokenizerOptions};
    ///
    /// let t = Tokenizer::train(TokenizerKind::Bytes, "", &TokenizerOptions::default())?;
    /// let mut stream = t.decode_stream();
    /// let shown: Vec<String> = t.encode("né").into_iter().map(|token| stream.push(token)).collect();
    /// assert_eq!(shown, ["n", "", "é"]);
    /// assert_eq!(stream.finish(), "");
    /// # Ok::<(), volta::Error>(())
    /// ```
    pub fn decode_stream(&self) -> DecodeStream<'_> {
        DecodeStream(self.0.decoder())
    }

    /// How many tokens there are: ids are smaller than this.
    pub fn vocabulary_size(&self) -> usize {
        self.0.size()
    }

    /// The token of an id, as it is written in the vocabulary; a byte that is no ASCII as `<0xE2>`.
    pub fn token(&self, id: u32) -> Option<String> {
        self.0.token(id)
    }

    /// The bytes that a token adds to a text, wherever it stands; nothing for special tokens, and for tokenizers whose tokens depend
    /// on what is around them.
    ///
    /// ```
    /// use volta::text::{Tokenizer, TokenizerKind, TokenizerOptions};
    ///
    /// let t = Tokenizer::train(TokenizerKind::Bytes, "", &TokenizerOptions::default())?;
    /// assert_eq!(t.token_bytes(0xE2), Some(vec![0xE2]));
    /// # Ok::<(), volta::Error>(())
    /// ```
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.0.token_bytes(id)
    }

    /// The id of a token as [`token`](Self::token) writes it.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.0.id(token)
    }

    /// The token that fills up short sequences, if there is one.
    pub fn pad(&self) -> Option<u32> {
        self.0.pad()
    }

    /// The token of what the vocabulary does not have, if there is one.
    pub fn unknown(&self) -> Option<u32> {
        self.0.unknown()
    }
}

impl PartialEq for Tokenizer {
    /// Whether they give the same tokens to the same text.
    fn eq(&self, other: &Tokenizer) -> bool {
        self.kind() == other.kind() && self.0.content() == other.0.content()
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokenizer({}, {} tokens)", self.kind(), self.vocabulary_size())
    }
}

/// Decodes tokens as they come, whole characters only; made by [`Tokenizer::decode_stream`].
///
/// What [`push`](Self::push) and [`finish`](Self::finish) return, put together, is what
/// [`Tokenizer::decode`] returns.
pub struct DecodeStream<'a>(Box<dyn Decoder + 'a>);

impl DecodeStream<'_> {
    /// The text that this token completes; empty in the middle of a character.
    pub fn push(&mut self, token: u32) -> String {
        self.0.push(token)
    }

    /// What is left at the end: `�` for a character that was begun and never finished.
    pub fn finish(&mut self) -> String {
        self.0.finish()
    }
}

/// An error of a file's content.
fn data_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Data, message)
}
