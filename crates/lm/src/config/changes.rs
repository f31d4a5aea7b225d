//! What differs between the configuration that a run began with and the one that it is to go on with.

use super::Config;
use super::keys::{KEYS, Key};

/// Keys that say how long a run is and where it runs: it may go on for longer, and elsewhere, with more or less memory.
const FREE: [&str; 6] = ["epochs", "steps", "device", "shares", "memory", "zero"];

/// Keys whose meaning lies in files, which decide whether anything has changed. What a model began with lies in its
/// checkpoints, and its tokenizer and shape are looked at.
const IN_FILES: [&str; 3] = ["data", "tokenizer", "from"];

/// Whether a run cannot go on with another value.
fn is_fixed(key: &Key) -> bool {
    let shows_only = ["Watching", "Ranks", "Output"].contains(&key.section);
    !shows_only && !FREE.contains(&key.name) && !IN_FILES.contains(&key.name)
}

impl Config {
    /// Every value that must be what it was and is not, each in a line.
    pub fn changes(&self, before: &Config) -> Vec<String> {
        let settings = KEYS.iter().zip(self.settings.iter().zip(&before.settings));
        let changed = settings.filter(|(key, (now, then))| is_fixed(key) && now.value != then.value);
        changed
            .map(|(key, (_, then))| format!("{}: it began with {}", self.cite(key.name), then.text))
            .collect()
    }

    /// The line about a key whose value names something that is not the same any more.
    pub fn change_of(&self, key: &str, before: &Config, what: &str) -> String {
        let then = &before.setting(key).text;
        if *then == self.setting(key).text {
            return format!("{}: {what} has changed since", self.cite(key));
        }
        format!("{}: {what} is not that of {then}, which it began with", self.cite(key))
    }
}
