//! What a run began with, as its checkpoints keep it: a run that goes on with something else would be neither the one nor
//! the other.

use crate::config::{Config, ConfigError};
use crate::fingerprint::fingerprint;
use crate::prepare::Prepared;
use std::path::Path;
use volta::Checkpoint;

/// The name, the configuration and the text of a run when it began.
#[derive(Clone, Debug)]
pub struct RunManifest {
    /// Without a number.
    pub name: String,
    /// What it was told.
    pub config: Config,
    text: String,
    tokenizer: String,
}

impl RunManifest {
    /// What a run begins with.
    pub fn now(name: &str, config: &Config, prepared: &Prepared) -> RunManifest {
        RunManifest {
            name: name.to_string(),
            config: config.clone(),
            text: prepared.text.clone(),
            tokenizer: fingerprint(&prepared.tokenizer.to_json()),
        }
    }

    /// By the names that a checkpoint has for them.
    pub fn notes(&self) -> [(&'static str, String); 4] {
        [
            ("run", self.name.clone()),
            ("config", self.config.effective()),
            ("text", self.text.clone()),
            ("tokenizer", self.tokenizer.clone()),
        ]
    }

    /// What a checkpoint says; nothing if a program before this one wrote it. `path` is for errors.
    pub fn of(checkpoint: &Checkpoint, path: &Path) -> Result<Option<RunManifest>, ConfigError> {
        let note = |name: &str| checkpoint.text(name).ok().map(str::to_string);
        let (Some(name), Some(config)) = (note("run"), note("config")) else { return Ok(None) };
        let (Some(text), Some(tokenizer)) = (note("text"), note("tokenizer")) else { return Ok(None) };
        Ok(Some(RunManifest { name, config: Config::from_toml(&config, path)?, text, tokenizer }))
    }

    /// What the run cannot go on with, because it did not begin with it: a line each.
    pub fn changes(&self, now: &RunManifest) -> Vec<String> {
        let mut changes = now.config.changes(&self.config);
        if self.text != now.text {
            changes.push(now.config.change_of("data", &self.config, "its text"));
        } else if self.tokenizer != now.tokenizer && changes.is_empty() {
            changes.push(now.config.change_of("tokenizer", &self.config, "what it makes of the text"));
        }
        changes
    }
}
