//! What the program says, and to whom: people on standard error and out, machines as JSON lines, or hardly anything.

use serde_json::Value;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use volta::text::{printable, printable_json};

/// Writes a line to standard output, with control characters of files as escapes. Whoever reads it may have gone, which is
/// no reason to end a training.
pub fn say(line: impl Display) {
    let _ = writeln!(std::io::stdout(), "{}", printable(&line.to_string()));
}

/// Writes a line of JSON.
fn say_json(json: &Value) {
    let _ = writeln!(std::io::stdout(), "{}", printable_json(&json.to_string()));
}

/// Writes a part of a text at once, with control characters as escapes; false if nobody reads it any more.
pub fn say_part(text: &str) -> bool {
    let mut out = std::io::stdout();
    out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// How much is said, and how.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Output {
    /// Say only what was asked for, and errors.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Write results as JSON, one object a line.
    #[arg(long, global = true)]
    pub json: bool,
}

impl Output {
    /// Something that is nice to know; not for machines.
    pub fn note(&self, line: impl Display) {
        if !self.quiet && !self.json {
            say(line);
        }
    }

    /// A result: as JSON for machines, as text for people.
    pub fn result(&self, json: &Value, text: impl Display) {
        if self.json {
            say_json(json);
        } else {
            say(text);
        }
    }

    /// Something that happened, for machines only.
    pub fn event(&self, json: &Value) {
        if self.json {
            say_json(json);
        }
    }
}

/// Why a command ended early.
pub enum Failure {
    /// It was asked for something that cannot be: exit code 2, as for wrong flags.
    Usage(String),
    /// It was asked for something that did not work: exit code 1.
    Failed(String),
    /// Somebody pressed Ctrl-C, and all is saved: exit code 130, as shells have it.
    Interrupted,
}

impl From<volta::Error> for Failure {
    fn from(error: volta::Error) -> Failure {
        // Where in the program it was called is of no use to whoever typed the command.
        Failure::Failed(error.message().to_string())
    }
}

impl Failure {
    /// Why it ended.
    pub fn message(&self) -> &str {
        match self {
            Failure::Usage(message) | Failure::Failed(message) => message,
            Failure::Interrupted => "it was interrupted",
        }
    }

    /// Says why, on standard error, unless whoever pressed Ctrl-C knows it, and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let code = match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Failed(_) => ExitCode::FAILURE,
            Failure::Interrupted => return ExitCode::from(130),
        };
        eprintln!("error: {}", printable(self.message()));
        code
    }
}

/// What a command ends with.
pub type Outcome = Result<(), Failure>;
