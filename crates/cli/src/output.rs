//! What the program says, and to whom: people on standard error and out, machines as JSON lines, or hardly anything.
//!
//! Everything that any command writes goes through here. The first error of standard output is kept, and nothing more is
//! written then; long work looks at [`check`] and ends early, and [`finish`] makes it what the command ends with.

use serde_json::Value;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
use volta::text::{printable, printable_json};

/// Why standard output takes nothing any more.
static BROKEN: OnceLock<Failure> = OnceLock::new();

/// Keeps an error of standard output.
fn broken(error: &io::Error) {
    BROKEN.get_or_init(|| match error.kind() {
        ErrorKind::BrokenPipe => Failure::NobodyReads,
        _ => Failure::Failed(format!("cannot write to standard output: {error}")),
    });
}

/// An error if standard output takes nothing any more.
pub fn check() -> Outcome {
    BROKEN.get().map_or(Ok(()), |failure| Err(failure.clone()))
}

/// Writes to standard output at once; false if it takes nothing any more.
fn write(bytes: &[u8]) -> bool {
    if check().is_err() {
        return false;
    }
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| broken(&error)).is_ok()
}

/// Writes a line to standard output, with control characters of files as escapes.
pub fn say(line: impl Display) {
    write(format!("{}\n", printable(&line.to_string())).as_bytes());
}

/// Writes a line of JSON.
fn say_json(json: &Value) {
    write(format!("{}\n", printable_json(&json.to_string())).as_bytes());
}

/// Writes a part of a text at once, with control characters as escapes; false if standard output takes nothing any more.
pub fn say_part(text: &str) -> bool {
    write(printable(text).as_bytes())
}

/// Writes a line to standard error. If that takes nothing there is nobody left to tell.
pub fn say_error(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// How a command ends: by its own outcome, or, if that was well, by what became of its output.
pub fn finish(outcome: Outcome) -> ExitCode {
    match outcome.and_then(|()| check()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Shows what the parser of the command line says instead of a command: help or a version on standard output, a mistake on
/// standard error.
pub fn show(said: &clap::Error) -> ExitCode {
    let printed = said.print().and_then(|()| io::stdout().flush());
    if let Err(error) = printed
        && !said.use_stderr()
    {
        broken(&error);
    }
    if said.use_stderr() { ExitCode::from(2) } else { finish(Ok(())) }
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
#[derive(Clone, Debug)]
pub enum Failure {
    /// It was asked for something that cannot be: exit code 2, as for wrong flags.
    Usage(String),
    /// It was asked for something that did not work: exit code 1.
    Failed(String),
    /// Its numbers are not finite: exit code 3.
    NotFinite(String),
    /// Another process of the run has said why; with its exit code.
    Told(u8),
    /// Somebody pressed Ctrl-C, and all is saved: exit code 130, as shells have it.
    Interrupted,
    /// Whoever read its output has gone, as `head` does: it ends quietly, with 141, as shells have it for a program that
    /// writes to a closed pipe.
    NobodyReads,
}

impl From<volta::Error> for Failure {
    fn from(error: volta::Error) -> Failure {
        // Where in the program it was called is of no use to whoever typed the command.
        Failure::Failed(error.message().to_string())
    }
}

impl Failure {
    /// What is wrong with a value that was given.
    pub fn usage(error: &volta::Error) -> Failure {
        Failure::Usage(error.message().to_string())
    }

    /// Why it ended.
    pub fn message(&self) -> &str {
        match self {
            Failure::Usage(message) | Failure::Failed(message) | Failure::NotFinite(message) => message,
            Failure::Interrupted => "it was interrupted",
            Failure::NobodyReads => "nobody reads what it writes",
            Failure::Told(_) => "another rank has failed",
        }
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Failed(_) => 1,
            Failure::NotFinite(_) => 3,
            Failure::Interrupted => 130,
            Failure::NobodyReads => 141,
            Failure::Told(code) => *code,
        }
    }

    /// Whether other processes of a run know nothing of it.
    pub fn is_own(&self) -> bool {
        matches!(self, Failure::Usage(_) | Failure::Failed(_))
    }

    /// The same with what it was about in front.
    pub fn with_context(self, what: &str) -> Failure {
        match self {
            Failure::Usage(message) => Failure::Usage(format!("{what}: {message}")),
            Failure::Failed(message) => Failure::Failed(format!("{what}: {message}")),
            other => other,
        }
    }

    /// Says why, on standard error, unless whoever ended it knows, and gives the exit code.
    pub fn report(&self) -> ExitCode {
        if matches!(self, Failure::Usage(_) | Failure::Failed(_) | Failure::NotFinite(_)) {
            say_error(format_args!("error: {}", printable(self.message())));
        }
        ExitCode::from(self.code())
    }
}

/// What a command ends with.
pub type Outcome = Result<(), Failure>;
