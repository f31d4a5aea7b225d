//! Text for language models: where it comes from, how it becomes numbers, and how the next token is picked.
//!
//! - [`Corpus`] finds the text: built in, a named set on disk, a file or a folder.
//! - [`Tokenizer`] turns text into tokens and back: words, characters, bytes or byte pairs.
//! - `ChatTemplate`, with the feature `chat`, makes one text of a chat.
//! - [`Sampler`] picks a token from a model's logits.
//! - [`stories`] writes the text that is built in.
//! - [`printable`] makes text of others safe to print.
//!
//! ```
//! use volta::text::{Corpus, CorpusOptions, Tokenizer, TokenizerKind, TokenizerOptions};
//!
//! let corpus = Corpus::load("short", &CorpusOptions::default())?;
//! let tokenizer = Tokenizer::train(TokenizerKind::Words, &corpus.train, &TokenizerOptions::default())?;
//! let tokens = tokenizer.encode("The river runs.");
//! assert_eq!(tokenizer.decode(&tokens), "The river runs.");
//! # Ok::<(), volta::Error>(())
//! ```

#[cfg(feature = "chat")]
mod chat_template;
mod corpus;
mod sampler;
mod stories;
mod tokenizer;

pub use crate::printable::{printable, printable_cell, printable_json, printable_line};
#[cfg(feature = "chat")]
pub use chat_template::{ChatMessage, ChatTemplate, SpecialTokens};
pub use corpus::{
    Corpus, CorpusOptions, NamedSet, RemoteFile, Split, cache_folder, data_folder, named_set, named_sets,
};
pub use sampler::{Sampler, SamplerOptions};
pub use stories::stories;
pub use tokenizer::{DecodeStream, Tokenizer, TokenizerKind, TokenizerOptions};
