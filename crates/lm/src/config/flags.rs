//! What a command line says about the configuration.

use std::path::PathBuf;

/// What a command line says about the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    /// The file to read first.
    pub config: Option<PathBuf>,
    /// Names of keys, with their values as they were written.
    pub values: Vec<(&'static str, String)>,
}

impl Flags {
    /// With another value of a key.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Flags {
        self.values.retain(|(key, _)| *key != name);
        self.values.push((name, value.into()));
        self
    }

    /// The flags as one would give them to a shell again.
    pub fn command_line(&self) -> String {
        let config = self.config.iter().map(|path| format!("--config={}", path.display()));
        let values = self.values.iter().map(|(key, value)| format!("--{key}={value}"));
        config.chain(values).map(|flag| quoted(&flag)).collect::<Vec<_>>().join(" ")
    }
}

/// A word that a shell takes as it is.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/+@%".contains(c);
    if word.chars().all(is_plain) { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
