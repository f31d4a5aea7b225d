//! `volta chat`: taking turns with a model.

use super::model_file::{self, DEFAULT_FOLDER, find, stem};
use super::sampling::Sampling;
use super::stop_text::StopText;
use crate::device::DeviceFlag;
use crate::output::{Failure, Outcome, Output, check, say_error, say_part};
use crate::pretrained;
use serde_json::json;
use std::io::BufRead;
use std::path::PathBuf;
use volta::models::Generation;
use volta_lm::write;

#[derive(clap::Args)]
pub struct Options {
    /// The model: its name or its file; a folder or GGUF file of others, or hf:OWNER/NAME; without one, the newest.
    model: Option<String>,
    /// The folder that models are in.
    #[arg(long, default_value = DEFAULT_FOLDER)]
    models: PathBuf,
    /// The most tokens of an answer [default: 200; 1024 of a model of others]
    #[arg(long, short, value_parser = clap::value_parser!(u64).range(1..))]
    pub length: Option<u64>,
    /// An answer ends before this text; by default at a blank line, and where a model of others ends it. Empty: it never ends early.
    #[arg(long)]
    pub stop: Option<String>,
    /// What a model of others is told before the first turn.
    #[arg(long)]
    pub system: Option<String>,
    #[command(flatten)]
    pub adapter: pretrained::Adapter,
    #[command(flatten)]
    device: DeviceFlag,
    #[command(flatten)]
    pub sampling: Sampling,
}

/// The most tokens of an answer, unless told otherwise.
const LENGTH: u64 = 200;
/// What ends an answer, unless told otherwise.
const STOP: &str = "\n\n";

/// What became of a line.
pub enum Turn {
    /// It says nothing that could be answered.
    Nothing,
    Answered,
}

/// Reads lines and answers each. What was said before stays in the context as far as it fits.
pub fn run(options: &Options, output: Output) -> Outcome {
    let device = options.device.open()?;
    if let Some(path) = pretrained::find(options.model.as_deref())? {
        return pretrained::chat::run(options, &path, output);
    }
    options.adapter.check_none()?;
    if options.system.is_some() {
        return Err(Failure::Usage(
            "a model that was trained here knows no roles: leave --system out".into(),
        ));
    }
    let path = find(options.model.as_deref(), &options.models)?;
    let model = model_file::load(&path, device)?;
    let sampler = options.sampling.sampler(&model.config, options.sampling.seed());
    let sampler = sampler.map_err(|error| Failure::usage(&error))?;
    let mut text = Generation::new(&model.gpt, sampler);
    output.note(format_args!(
        "{}: it goes on from what you type, and remembers {} tokens. An empty line lets it go on by itself; \
         Ctrl-D ends.",
        stem(&path),
        model.config.context
    ));
    let mut is_first = true;
    turns(output, |said| {
        if said.is_empty() && is_first {
            return Ok(Turn::Nothing);
        }
        let tokens = model.tokenizer.try_encode(said)?;
        if !said.is_empty() && tokens.is_empty() {
            return Ok(Turn::Nothing);
        }
        text.read(&tokens)?;
        is_first = false;
        let answer = answer(&mut text, &model.tokenizer, options, output)?;
        output.event(&json!({"prompt": said, "text": answer}));
        Ok(Turn::Answered)
    })
}

/// Reads lines, and lets each be answered, until there are no more.
pub fn turns(output: Output, mut answer: impl FnMut(&str) -> Result<Turn, Failure>) -> Outcome {
    loop {
        if !output.quiet && !output.json {
            say_part("> ");
        }
        check()?;
        let mut line = Vec::new();
        let read = std::io::stdin().lock().read_until(b'\n', &mut line);
        if read.map_err(|e| Failure::Failed(format!("cannot read standard input: {e}")))? == 0 {
            output.note("");
            return Ok(());
        }
        let said = match std::str::from_utf8(&line) {
            Ok(line) => line.trim_end_matches(['\r', '\n']),
            Err(error) => {
                refuse(&error, output);
                continue;
            }
        };
        if let Turn::Answered = answer(said)? {
            check()?;
            output.note("");
        }
    }
}

/// Says that a line cannot be answered: to machines as an answer, so that every line of theirs has one.
fn refuse(error: &std::str::Utf8Error, output: Output) {
    let reason = format!("that line is not UTF-8 (from byte {} on): it was left out", error.valid_up_to());
    if output.json {
        output.event(&json!({"error": reason}));
    } else {
        say_error(reason);
    }
}

/// Writes until the stop text or the length.
fn answer(
    text: &mut Generation<'_>,
    tokenizer: &volta::text::Tokenizer,
    options: &Options,
    output: Output,
) -> Result<String, Failure> {
    let mut shown = StopText::new(options.stop.as_deref().unwrap_or(STOP), output);
    write(text, tokenizer, options.length.unwrap_or(LENGTH), |piece| shown.push(piece))?;
    let answer = shown.finish();
    check()?;
    Ok(answer)
}
