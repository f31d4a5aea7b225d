//! What a run takes over from the model that it begins with.

use super::keys::{KEYS, Key};
use super::sources::Origin;
use super::{Config, ConfigError, check};

/// Keys that make the tokenizer.
const TOKENIZER: [&str; 2] = ["tokenizer", "vocabulary"];

/// Whether a key is a part of the model: its shape or its tokenizer.
fn is_of_model(key: &Key) -> bool {
    let shape = key.section == "Model" && !["from", "dropout"].contains(&key.name);
    shape || TOKENIZER.contains(&key.name)
}

impl Config {
    /// This configuration with the shape and the tokenizer of `model`, which the run begins with, and its text unless
    /// another one is given. What is given and differs from the model is wrong.
    pub fn beginning_with(&self, model: &Config) -> Result<Config, ConfigError> {
        let mut settings = self.settings.clone();
        let mut problems = Vec::new();
        for (k, key) in KEYS.iter().enumerate() {
            let (own, of_model) = (&mut settings[k], &model.settings[k]);
            let is_given = own.origin != Origin::Default;
            if is_of_model(key) && is_given && own.value != of_model.value {
                let from = self.cite("from");
                problems.push(format!("{}: the model has {}, {from}", self.cite(key.name), of_model.text));
            } else if is_of_model(key) || (key.name == "data" && !is_given) {
                *own = of_model.clone();
            }
        }
        let config = Config::of(settings);
        if problems.is_empty() {
            problems = check::combinations(&config);
        }
        if problems.is_empty() { Ok(config) } else { Err(ConfigError(problems)) }
    }
}
