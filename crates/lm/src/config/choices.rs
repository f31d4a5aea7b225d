//! What the keys with a few named values can be.

use super::rule::{FromValue, Value};
use std::path::PathBuf;
use volta::text::TokenizerKind;

/// An enumeration whose values have names.
macro_rules! choices {
    ($(#[$doc:meta])* $type:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $(#[doc = concat!("`", $name, "`.")] $variant),* }

        impl $type {
            /// All of them.
            pub const NAMES: &[&str] = &[$($name),*];
        }

        impl FromValue for $type {
            fn from_value(value: Value) -> Self {
                match value.text() {
                    $($name => $type::$variant,)*
                    other => unreachable!("the rule let {other:?} through"),
                }
            }
        }
    };
}

choices! { /// How the model knows where a token stands.
Positions { Learned = "learned", Rotary = "rotary" } }
choices! { /// How values are normalised.
Norm { Layer = "layer", Rms = "rms" } }
choices! { /// What the feed-forward layers apply.
Activation { Gelu = "gelu", SwiGlu = "swiglu" } }
choices! { /// How weights are updated.
Optimizer { AdamW = "adamw", Adam = "adam", Sgd = "sgd", Lion = "lion", Muon = "muon" } }
choices! { /// How the learning rate goes on after the warmup.
Schedule { Constant = "constant", Linear = "linear", Cosine = "cosine", OneCycle = "one-cycle" } }
choices! { /// What products are computed in.
Precision { F32 = "f32", F16 = "f16" } }
choices! { /// How several devices share a batch.
Shares { Equal = "equal", Speed = "speed" } }

/// A kind of tokenizer to train, or the file of one that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenizerSource {
    /// One that is trained on the text.
    Train(TokenizerKind),
    /// One that is in a file.
    File(PathBuf),
}

impl TokenizerSource {
    /// The kinds.
    pub const NAMES: &[&str] = &["words", "chars", "bytes", "bpe"];
}

impl FromValue for TokenizerSource {
    fn from_value(value: Value) -> Self {
        match value.text().parse() {
            Ok(kind) => TokenizerSource::Train(kind),
            Err(_) => TokenizerSource::File(PathBuf::from(value.text())),
        }
    }
}
