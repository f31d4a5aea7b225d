//! What is said about a run that has diverged: where, what is left of it, and what to try.

use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use volta_lm::Config;
use volta_lm::config::Flags;

/// A run whose numbers are not finite any more.
pub struct Diverged {
    pub step: u64,
    /// What is not finite.
    pub what: String,
    /// What is left: both are from before.
    pub checkpoint: Option<PathBuf>,
    pub best: Option<PathBuf>,
}

impl Diverged {
    pub fn json(&self) -> Value {
        json!({
            "event": "diverged", "step": self.step, "what": self.what, "checkpoint": self.checkpoint,
            "best": self.best,
        })
    }

    /// What has happened, and what is there from before.
    pub fn what_is_left(&self) -> String {
        let Diverged { step, what, checkpoint, best } = self;
        let mut text =
            format!("the training has diverged and was stopped: in step {step}, {what} is NaN or infinite.");
        match checkpoint {
            Some(path) => {
                let path = path.display();
                let _ = write!(
                    text,
                    "\nThe last finite checkpoint, which may have been on the way there: {path}"
                );
            }
            None => text += "\nNo checkpoint was written before.",
        }
        if let Some(path) = best {
            let _ = write!(text, "\nThe best model so far: {}", path.display());
        }
        text
    }

    /// The whole message, with a command that begins where the numbers were good, or anew, with a lower rate.
    pub fn message(&self, flags: &Flags, config: &Config) -> String {
        let best = &self.best;
        let mut text = self.what_is_left();
        let rate = config.learning_rate / 10.0;
        let mut advice =
            vec![format!("a learning rate below {}", config.learning_rate), "a longer warmup".into()];
        let mut flags = flags.clone().with("learning-rate", rate.to_string());
        if config.clip == 0.0 {
            advice.push("gradients that are clipped".into());
            flags = flags.with("clip", "1");
        }
        if config.is_half() {
            advice.push("precision f32".into());
        }
        let beginning = match best {
            Some(path) => {
                flags = flags.with("from", path.display().to_string());
                "from the best model, with a new optimizer"
            }
            None => "from the beginning",
        };
        let _ =
            write!(text, "\nTry {}; {beginning}:\n  {}", advice.join(", "), config.command("train", &flags));
        text
    }
}
