//! What a run began with, as its checkpoints keep it: a run that goes on with something else would be neither the one nor
//! the other.

use super::config::Config;
use super::prepare::Prepared;
use crate::output::Failure;
use std::path::Path;
use volta::CheckpointFolder;

/// The name, the configuration and the text of a run when it began.
pub struct RunManifest {
    /// Without a number.
    pub name: String,
    config: Config,
    text: String,
    tokenizer: String,
}

impl RunManifest {
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

    /// What the last checkpoint in the folder of a run says; nothing if a program before this one wrote it.
    pub fn read(folder: &Path) -> Result<Option<RunManifest>, Failure> {
        let checkpoints = folder.join("checkpoints");
        // Of those that are damaged the trainer tells, which passes over them too.
        let (last, _) = match checkpoints.is_dir() {
            true => CheckpointFolder::open(&checkpoints)?.last_intact()?,
            false => (None, Vec::new()),
        };
        let Some(checkpoint) = last else {
            return Err(Failure::Usage(format!(
                "there is no checkpoint in {}: leave out --resume to start a new run, or remove this folder to go on \
                 with the run before it",
                folder.display()
            )));
        };
        let note = |name: &str| checkpoint.text(name).ok().map(str::to_string);
        let (Some(name), Some(config)) = (note("run"), note("config")) else { return Ok(None) };
        let (Some(text), Some(tokenizer)) = (note("text"), note("tokenizer")) else { return Ok(None) };
        let config = Config::from_toml(&config, &checkpoints).map_err(|e| Failure::Failed(e.to_string()))?;
        Ok(Some(RunManifest { name, config, text, tokenizer }))
    }

    /// Refuses to go on in `folder` with something else.
    pub fn check(&self, now: &RunManifest, folder: &Path) -> Result<(), Failure> {
        let mut changes = now.config.changes(&self.config);
        if self.text != now.text {
            changes.push(now.config.change_of("data", &self.config, "its text"));
        } else if self.tokenizer != now.tokenizer && changes.is_empty() {
            changes.push(now.config.change_of("tokenizer", &self.config, "what it makes of the text"));
        }
        if changes.is_empty() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "the run in {} cannot go on with what it did not begin with; give its values again, or leave out --resume to \
             start a new run:\n  {}",
            folder.display(),
            changes.join("\n  ")
        )))
    }
}

/// A number that texts hardly ever share: 64 bits of FNV-1a, which stays the same from version to version.
pub fn fingerprint(text: &str) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn fingerprints_are_those_of_the_published_function() {
        assert_eq!(fingerprint(""), "cbf29ce484222325");
        assert_eq!(fingerprint("a"), "af63dc4c8601ec8c");
        assert_eq!(fingerprint("foobar"), "85944171f73967e8");
    }
}
